//! Prints figures for people.

use std::fmt::{self, Display};

use super::figures::{Figure, Rounds, failures};
use super::input::VALUE_LEN;
use super::plan::Plan;
use super::subjects::Subject;
use crate::{host, origin};

/// What a run came to, as text.
pub(crate) struct Table<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) results: &'a [(Subject, Rounds)],
    pub(crate) figures: &'a [Figure],
}

impl Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.heading(f)?;
        for of_workload in self.figures.chunk_by(|a, b| a.workload == b.workload) {
            let name = of_workload.first().map_or("", |figure| figure.workload.name());
            writeln!(
                f,
                "\n{name:<20} {:>9} {:>17} {:>15} {:>13}",
                "ns/op", "min - max", "skip list peer", "best peer"
            )?;
            of_workload.iter().try_for_each(|figure| row(figure, f))?;
        }
        self.failed(f)
    }
}

impl Table<'_> {
    fn heading(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { shape, rounds, .. } = self.plan;
        let (keys, entries, threads) = (shape.keys.name(), shape.entries, shape.threads);
        let threads = if threads == 1 { "1 thread".into() } else { format!("{threads} threads") };
        writeln!(f, "{entries} entries, {keys} keys, values of {VALUE_LEN} bytes, {threads}, rounds: {rounds}")?;
        let model = host::model().unwrap_or_else(|| "processor unknown".into());
        let commit = origin::commit().map_or_else(|| "commit unknown".into(), |commit| format!("commit {commit}"));
        writeln!(f, "{} cores, {model}; {}; {commit}", host::cores(), origin::now())?;
        if !origin::OPTIMISED {
            writeln!(f, "NOT OPTIMISED: this build's times mean nothing; build with --release")?;
        }
        writeln!(f, "Medians. Time by the operations of all threads; 2.00x is twice as fast as that peer.")
    }

    fn failed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (subject, rounds) in self.results {
            if let Some((failed, reason)) = failures(rounds) {
                let (name, all) = (subject.name(), rounds.len());
                writeln!(f, "\n{name}: {failed} of {all} rounds failed: {reason}")?;
            }
        }
        Ok(())
    }
}

fn row(figure: &Figure, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let name = figure.subject.name();
    let Some(nanos) = figure.nanos else { return writeln!(f, "  {name:<18} {:>9}", "failed") };
    let range = format!("{:.1} - {:.1}", nanos.min, nanos.max);
    let times = |times: Option<f64>| times.map_or_else(|| "-".into(), |times| format!("{times:.2}x"));
    let (skip_list, peer) = (times(figure.times_skip_list), times(figure.times_peer));
    writeln!(f, "  {name:<18} {:>9.1} {range:>17} {skip_list:>15} {peer:>13}", nanos.median)
}
