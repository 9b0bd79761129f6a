//! Prints figures for people.

use std::fmt::{self, Display};

use super::document::{Document, Measured};
use super::figures::{Figure, Overhead};

/// Where a run comes from, as text.
pub(crate) struct Heading<'a>(pub(crate) &'a Document);

impl Display for Heading<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Document { machine, date, commit, optimised, .. } = self.0;
        let model = machine.model.as_deref().unwrap_or("processor unknown");
        let commit = commit.as_deref().unwrap_or("unknown");
        writeln!(f, "{} cores, {model}; {date}; commit {commit}", machine.cores)?;
        if !optimised {
            writeln!(f, "NOT OPTIMISED: this build's times mean nothing; build with --release")?;
        }
        writeln!(f, "Medians. Time by the operations of all threads; 2.00x is twice as fast as that peer.")?;
        writeln!(f, "get-many is compared with get, frozen-scan with scan: peers have nothing of the kind.")
    }
}

/// What a cell came to, as text.
pub(crate) struct Table<'a>(pub(crate) &'a Measured);

impl Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}", self.0.shape)?;
        for of_workload in self.0.figures.chunk_by(|a, b| a.workload == b.workload) {
            let name = of_workload.first().map_or("", |figure| figure.workload.name());
            writeln!(
                f,
                "\n{name:<20} {:>9} {:>17} {:>15} {:>13}",
                "ns/op", "min - max", "skip list peer", "best peer"
            )?;
            of_workload.iter().try_for_each(|figure| row(figure, f))?;
        }
        self.memory(f)?;
        self.failed(f)
    }
}

impl Table<'_> {
    fn memory(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = "bytes an entry beyond key and value";
        writeln!(f, "\n{title:<38} {:>17} {:>15}", "peak of process", "own account")?;
        let bytes = |bytes: Option<f64>| bytes.map_or_else(|| "-".into(), |bytes| format!("{bytes:.1}"));
        self.0.memory.iter().try_for_each(|Overhead { subject, resident, own_account }| {
            writeln!(f, "  {:<36} {:>17} {:>15}", subject.name(), bytes(*resident), bytes(*own_account))
        })
    }

    fn failed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &subject in &self.0.subjects {
            if let Some((failed, reason)) = self.0.failures(subject) {
                let all = self.0.rounds.iter().filter(|turn| turn.subject == subject).count();
                writeln!(f, "\n{}: {failed} of {all} rounds failed: {reason}", subject.name())?;
            }
        }
        Ok(())
    }
}

fn row(figure: &Figure, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let name = figure.subject.name();
    let Some(nanos) = figure.ns_per_operation else { return writeln!(f, "  {name:<18} {:>9}", "failed") };
    let range = format!("{:.1} - {:.1}", nanos.min, nanos.max);
    let times = |times: Option<f64>| times.map_or_else(|| "-".into(), |times| format!("{times:.2}x"));
    let (skip_list, peer) = (times(figure.times_best_skip_list_peer), times(figure.times_best_peer));
    writeln!(f, "  {name:<18} {:>9.1} {range:>17} {skip_list:>15} {peer:>13}", nanos.median)
}
