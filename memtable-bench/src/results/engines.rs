//! Results of engines as text: ratios of ours to each peer, and what workloads took beside time.

use clap::ValueEnum;

use super::run::CellResults;
use crate::round::Fact;
use crate::spec::{Role, Subject, Workload};
use crate::text::{Sheet, micros, name, or_dash};

/// Every workload of our engine, and how many times as fast it is as each peer, in these cells.
pub(crate) fn ratios_sheet<'c>(cells: impl IntoIterator<Item = &'c CellResults>) -> Sheet {
    let cells: Vec<_> = cells.into_iter().filter(|cell| !cell.shape.store.is_table()).collect();
    let is_peer = |subject: &Subject| matches!(subject.role(), Role::ClosePeer | Role::OtherPeer);
    let is_there = |subject: &Subject| cells.iter().any(|cell| cell.subjects.contains(subject));
    let peers: Vec<_> = Subject::all().iter().copied().filter(|of| is_peer(of) && is_there(of)).collect();
    let row = |cell: &CellResults, workload: Workload| {
        let ours = cell.nanos(Subject::MiniEngine, workload)?;
        let times: Vec<_> = peers.iter().map(|&peer| Some(cell.nanos(peer, workload)? / ours)).collect();
        let best = times.iter().copied().flatten().min_by(f64::total_cmp);
        let times = [best].into_iter().chain(times).map(|of| or_dash(of, "–", |of| format!("{of:.2}x")));
        Some([name(workload), cell.shape.brief(), micros(ours)].into_iter().chain(times).collect())
    };
    let rows = cells.iter().flat_map(|cell| cell.workloads.iter().filter_map(move |&workload| row(cell, workload)));
    let head = ["workload", "database", "ours, µs", "best peer"].map(String::from);
    Sheet::new(head.into_iter().chain(peers.iter().copied().map(name)), rows)
}

/// The same as text.
pub(crate) fn ratios(cells: &[CellResults]) -> String {
    format!("\nTimes as fast as each peer: 2.00x is half its time.\n\n{}", ratios_sheet(cells))
}

/// What each subject took beside time in these cells: a row for each workload, a column for each fact that is known.
pub(crate) fn facts<'c>(cells: impl IntoIterator<Item = &'c CellResults>) -> Sheet {
    let cells: Vec<_> = cells.into_iter().collect();
    let all = || cells.iter().flat_map(|cell| cell.figures.iter().map(move |figure| (cell, figure)));
    let known = |fact: &Fact| all().any(|(cell, of)| cell.fact(of.subject, of.workload, *fact).is_some());
    let columns: Vec<_> = Fact::value_variants().iter().copied().filter(known).collect();
    let rows = all().filter_map(|(cell, of)| {
        let facts: Vec<_> = columns.iter().map(|&fact| cell.fact(of.subject, of.workload, fact)).collect();
        facts.iter().any(Option::is_some).then_some(())?;
        let shown = facts.into_iter().map(|fact| or_dash(fact, "–", |fact| format!("{fact:.2}")));
        Some([name(of.subject), name(of.workload), cell.shape.brief()].into_iter().chain(shown).collect())
    });
    let head = ["beside time", "workload", "database"].map(String::from);
    Sheet::new(head.into_iter().chain(columns.iter().copied().map(name)), rows)
}
