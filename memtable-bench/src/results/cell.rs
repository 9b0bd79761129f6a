//! Every round of a cell, and the figures over all rounds: for each workload and subject a median, its spread, and ratios to the best peers.

use serde::{Deserialize, Serialize};

use crate::round::{Fact, Percentile, Sample, Timeline};
use crate::spec::{Cell, Role, Subject, Workload};

/// One round of one subject. A failed round has no samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) round: u32,
    pub(crate) subject: Subject,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
    #[serde(default)]
    pub(crate) samples: Vec<Sample>,
}

impl Turn {
    pub(crate) fn new(round: u32, subject: Subject, result: Result<Vec<Sample>, String>) -> Self {
        let (failed, samples) = result.map_or_else(|why| (Some(why), Vec::new()), |samples| (None, samples));
        Self { round, subject, failed, samples }
    }
}

/// All measurements of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CellResults {
    #[serde(flatten)]
    pub(crate) cell: Cell,
    /// In the order in which they ran.
    pub(crate) rounds: Vec<Turn>,
}

/// The median, the minimum and the maximum of some measurements. One slow round does not move the median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` without measurements. The median of an even number is the mean of the two in the middle.
    fn of(measurements: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = measurements.into_iter().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let (below, above) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self { median: below.midpoint(above), min, max })
    }
}

/// One subject at one workload.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    pub(crate) workload: Workload,
    pub(crate) subject: Subject,
    /// Nanoseconds per operation in the rounds that did not fail.
    pub(crate) nanos: Spread,
    /// The ratio of the time of the best similar peer (a close peer) to this time, from medians.
    pub(crate) times_close_peer: Option<f64>,
    /// The ratio of the best peer's time to this time.
    pub(crate) times_best_peer: Option<f64>,
}

impl Figure {
    pub(crate) fn median(&self) -> f64 {
        self.nanos.median
    }
}

impl CellResults {
    /// The samples of `subject` at `workload`, from the rounds that did not fail.
    fn samples(&self, subject: Subject, workload: Workload) -> impl Iterator<Item = &Sample> {
        let turns = self.rounds.iter().filter(move |turn| turn.subject == subject);
        turns.filter_map(move |turn| turn.samples.iter().find(|sample| sample.workload == workload))
    }

    fn spread(&self, subject: Subject, workload: Workload, of: impl Fn(&Sample) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.samples(subject, workload).filter_map(of))
    }

    /// The median of `subject` at `workload`, in nanoseconds per operation.
    pub(crate) fn nanos(&self, subject: Subject, workload: Workload) -> Option<f64> {
        Some(self.spread(subject, workload, Sample::ns_per_operation)?.median)
    }

    /// The figure of `subject` at `workload`, unless all of its rounds failed.
    pub(crate) fn figure(&self, subject: Subject, workload: Workload) -> Option<Figure> {
        let nanos = self.spread(subject, workload, Sample::ns_per_operation)?;
        let times = |roles: &[Role]| {
            let peers = self.cell.subjects.iter().filter(|subject| roles.contains(&subject.role()));
            let all = peers.filter_map(|&peer| self.nanos(peer, workload.of_peers()));
            Some(all.min_by(f64::total_cmp)? / nanos.median)
        };
        let (times_close_peer, times_best_peer) =
            (times(&[Role::ClosePeer]), times(&[Role::ClosePeer, Role::OtherPeer]));
        Some(Figure { workload, subject, nanos, times_close_peer, times_best_peer })
    }

    /// The existing figures of a workload, in the order of the subjects.
    pub(crate) fn figures_at(&self, workload: Workload) -> impl Iterator<Item = Figure> {
        self.cell.subjects.iter().filter_map(move |&subject| self.figure(subject, workload))
    }

    /// The latency of single operations of `subject`: the median over its rounds.
    pub(crate) fn latency(&self, subject: Subject, workload: Workload, of: Percentile) -> Option<f64> {
        Some(self.spread(subject, workload, |sample| sample.latency.get(&of).copied())?.median)
    }

    /// A cost of `subject` other than time: the median over its rounds.
    pub(crate) fn fact(&self, subject: Subject, workload: Workload, of: Fact) -> Option<f64> {
        Some(self.spread(subject, workload, |sample| sample.facts.get(&of).copied())?.median)
    }

    /// The timeline of `subject`, from its first round that did not fail.
    pub(crate) fn timeline(&self, subject: Subject, workload: Workload) -> Option<&Timeline> {
        self.samples(subject, workload).next()?.timeline.as_ref()
    }
}

/// Subjects with failed rounds in any of the cells: the number of failed rounds, of all rounds, and the first reason.
pub(crate) fn failures(cells: &[CellResults]) -> Vec<(Subject, usize, usize, &str)> {
    let of = |&subject: &Subject| {
        let turns = cells.iter().flat_map(|of| &of.rounds).filter(|turn| turn.subject == subject);
        let reasons: Vec<_> = turns.clone().filter_map(|turn| turn.failed.as_deref()).collect();
        Some((subject, reasons.len(), turns.count(), *reasons.first()?))
    };
    Subject::all().iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use Subject::{Btreemap, CrossbeamSkiplist, Fastskip, FastskipPublished, Hashmap, Memtable as Ours, Skl};
    use Workload::{Get, GetMany, Insert};

    use super::*;
    use crate::spec::{KeySet, Shape};

    /// Rounds of a subject with these nanoseconds per operation at a workload. A round of 0 ns has failed.
    fn turns(subject: Subject, workload: Workload, nanos: &[u64]) -> Vec<Turn> {
        let turn = |&ns: &u64| {
            let facts = [(Fact::FailedCas, ns as f64)].into();
            let latency = [(Percentile::TailRatio, ns as f64)].into();
            let sample = Sample { workload, operations: 10, ns: ns * 10, facts, latency, timeline: None };
            Turn::new(1, subject, if ns > 0 { Ok(vec![sample]) } else { Err("signal: 11".into()) })
        };
        nanos.iter().map(turn).collect()
    }

    #[test]
    fn the_median_is_the_middle_of_sorted_rounds() {
        // Catches a median of unsorted rounds, a median that an outlier moves, a median of an even number that is not the
        // mean of the middle two, and an index past the end where all rounds failed.
        let spread = |median, min, max| Some(Spread { median, min, max });
        assert_eq!(Spread::of([9.0, 1.0, 1000.0, 3.0, 2.0]), spread(3.0, 1.0, 1000.0));
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 10.0]), spread(3.0, 1.0, 10.0));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn ratios_are_to_the_fastest_peer_that_ended_and_above_one_when_faster() {
        // Catches inverted ratios, and ratios to our own subjects, to the unordered map, or to a peer that never finished.
        // Also catches a crash counted as a fast round or as one without failed swaps, and a get-many without a ratio.
        for (subject, workload, nanos, skip_list, peer) in [
            (Fastskip, Insert, &[100, 110, 90][..], Some(3.0), Some(2.0)),
            (Ours, Insert, &[50], Some(6.0), Some(4.0)),
            (Subject::MemtableBatch, GetMany, &[50], Some(5.0), Some(5.0)),
            (CrossbeamSkiplist, Insert, &[400], Some(0.75), Some(0.5)),
            (Hashmap, Insert, &[20], Some(15.0), Some(10.0)),
        ] {
            let peers = [(FastskipPublished, Insert, &[300][..]), (Btreemap, Insert, &[200, 0, 0]), (Skl, Get, &[250])];
            let peers = peers.map(|(subject, workload, nanos)| turns(subject, workload, nanos)).concat();
            let rounds = [turns(subject, workload, nanos), peers].concat();
            let subjects = vec![subject, FastskipPublished, Btreemap, Skl];
            let cell = Cell { shape: Shape::new(KeySet::Random, 10), subjects, workloads: vec![workload] };
            let results = CellResults { cell, rounds };
            let figure = results.figure(subject, workload).expect("measured");
            assert_eq!((figure.times_close_peer, figure.times_best_peer), (skip_list, peer), "{subject:?}");
            assert_eq!(results.figure(Skl, Insert), None);
            assert_eq!(failures(from_ref(&results)), [(Btreemap, 2, 3, "signal: 11")]);
            assert_eq!(results.fact(Btreemap, Insert, Fact::FailedCas), Some(200.0));
            assert_eq!(results.latency(subject, workload, Percentile::TailRatio), Some(figure.median()));
        }
    }
}
