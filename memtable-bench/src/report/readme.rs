//! The README's table: the headline's figures as Markdown, and the run that measured them.

use crate::results::{Results, Run};
use crate::spec::{Role, Shape, Subject, Workload};
use crate::text::{Sheet, name, nanos, or_dash};

/// The measurement of a row of the README's table and of a tile of the page: a workload, whether it runs in batches, and a title.
pub(super) type Headline = (Workload, bool, &'static str);

pub(super) const HEADLINES: [Headline; 9] = [
    (Workload::Insert, false, "insert"),
    (Workload::Insert, true, "insert, 256 at a time"),
    (Workload::Get, false, "get"),
    (Workload::GetMany, true, "get, 256 at a time"),
    (Workload::Miss, false, "get of absent keys"),
    (Workload::Seek, false, "seek and read 100"),
    (Workload::Scan, false, "scan, an entry"),
    (Workload::Mixed, false, "half reads, half writes"),
    (Workload::Delete, false, "delete"),
];

/// The table as Markdown. Fails if the results have no peers.
pub(super) fn table(results: &Results) -> Result<String, String> {
    let shape = results.headline();
    let shape =
        shape.ok_or("expected a cell of random keys, one thread, ours and a skip list among the peers; found none")?;
    let of = |subject: Option<Subject>, workload| {
        results.figures(&shape, workload).into_iter().find(|figure| Some(figure.subject) == subject)
    };
    // Floors are not compared, and the batches of our tables share the column of their table.
    let has_column = |subject: &Subject| {
        let is_shown = subject.role() != Role::Floor && !subject.is_batched();
        is_shown && HEADLINES.iter().any(|(workload, ..)| of(Some(*subject), *workload).is_some())
    };
    let subjects: Vec<_> = Subject::all().iter().copied().filter(has_column).collect();
    let row = |&(workload, batched, title): &Headline| {
        let best = results.best_own(&shape, workload, batched)?;
        let cell = |subject: &Subject| {
            let figure = of(if batched { subject.batched() } else { Some(*subject) }, workload);
            or_dash(figure, |figure| nanos(figure.median()))
        };
        let times = or_dash(best.times_close_peer, |times| format!("**{times:.1}x**"));
        Some([title.to_owned()].into_iter().chain(subjects.iter().map(cell)).chain([times]).collect())
    };
    // Often there is only one skip list, so the text names the skip lists behind the ratio.
    let skip_lists: Vec<_> = subjects.iter().filter(|of| of.role() == Role::ClosePeer).copied().map(name).collect();
    let mut head = vec!["ns per operation".to_owned()];
    head.extend(subjects.iter().copied().map(name));
    head.push(format!("fastest of ours to {}", skip_lists.join(" or ")));
    Ok(Sheet::new(head, HEADLINES.iter().filter_map(row)).markdown() + "\n" + &source(results, &shape))
}

/// The run that measured `shape`.
fn source(results: &Results, shape: &Shape) -> String {
    let has_shape = |run: &&Run| run.cells.iter().any(|of| of.cell.shape == *shape);
    let Some(run) = results.runs.iter().find(has_shape) else { return String::new() };
    let model = run.machine.model.as_deref().unwrap_or("unknown processor");
    let commit = run.commit.as_deref().unwrap_or("unknown");
    let date = run.date.split('T').next().unwrap_or(&run.date);
    let allocator = run.allocator.as_deref().unwrap_or("the system's");
    let optimised = if run.optimised { "" } else { " NOT OPTIMISED: these times mean nothing." };
    format!(
        "{shape}; medians of {} rounds, subjects in turns. {} cores, {model}; allocator {allocator}; {date}, commit {}.{optimised}\n",
        run.rounds,
        run.machine.cores,
        commit.get(..12).unwrap_or(commit)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::measured_run;
    use crate::spec::{Cell, KeySet};

    #[test]
    fn rows_are_workloads_and_the_source_is_the_run_that_measured_the_shape() {
        // Catches figures under another subject's name, the rounds of another file, and a table with nothing to compare with.
        let run = |rounds, entries, subjects: &[Subject]| {
            let cell = Cell::new(Shape::new(KeySet::Random, entries), subjects, &[Workload::Insert, Workload::Get]);
            measured_run(rounds, &[cell])
        };
        let subjects = [Subject::Memtable, Subject::MemtableBatch, Subject::CrossbeamSkiplist, Subject::Vec];
        let both = Results::new(vec![run(9, 1000, &subjects), run(5, 1_000_000, &subjects)]).expect("cells");
        let table_of_both = table(&both).expect("a table");
        let lines: Vec<_> = table_of_both.lines().skip(1).collect();
        assert!(table_of_both.starts_with(
            "| ns per operation | memtable | crossbeam-skiplist | fastest of ours to crossbeam-skiplist |"
        ));
        let rows = ["| --- | ---: | ---: | ---: |", "| insert | 400 | 1,200 | **3.0x** |"];
        assert_eq!(lines[..3], [rows[0], rows[1], "| insert, 256 at a time | 400 | – | **3.0x** |"]);
        assert!(lines[5].starts_with("1,000,000 entries") && lines[5].contains("medians of 5 rounds"), "{}", lines[5]);
        let alone = Results::new(vec![run(5, 1000, &[Subject::Memtable])]).expect("cells");
        assert!(table(&alone).is_err());
    }
}
