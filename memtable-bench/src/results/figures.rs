//! What all rounds of a cell say together: for each workload and subject a median, its spread, and ratios to the best peers;
//! for each subject the memory it takes.

use serde::{Deserialize, Serialize};

use crate::round::{Memory, Outcome};
use crate::spec::{Role, Subject, Workload};

/// One round of one subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) round: u32,
    pub(crate) subject: Subject,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
}

impl Turn {
    pub(crate) fn new(round: u32, subject: Subject, result: Result<Outcome, String>) -> Self {
        let failure = |failed| Outcome { failed: Some(failed), ..Outcome::default() };
        Self { round, subject, outcome: result.unwrap_or_else(failure) }
    }
}

/// The growth of a process says nothing of tables below this size.
const LEAST_RESIDENT: u64 = 8 << 20;

/// The median and the ends of some measurements. One slow round moves no median.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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

    /// Of what a subject's rounds measured that did not fail.
    pub(super) fn over(turns: &[Turn], subject: Subject, measured: impl Fn(&Outcome) -> Option<f64>) -> Option<Self> {
        Self::of(outcomes(turns, subject).filter_map(measured))
    }
}

/// The outcomes of a subject's rounds.
pub(super) fn outcomes(turns: &[Turn], subject: Subject) -> impl Iterator<Item = &Outcome> {
    turns.iter().filter(move |turn| turn.subject == subject).map(|turn| &turn.outcome)
}

/// One subject at one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) workload: Workload,
    pub(crate) subject: Subject,
    /// Nanoseconds per operation in the rounds that did not fail; `None` if all did.
    pub(crate) ns_per_operation: Option<Spread>,
    /// How many times as fast as the best skip list among the peers: that one's median divided by this one's.
    pub(crate) times_best_skip_list_peer: Option<f64>,
    /// How many times as fast as the best peer.
    pub(crate) times_best_peer: Option<f64>,
}

impl Figure {
    /// Infinite if all rounds failed, so that the subject sorts last.
    pub(crate) fn median(&self) -> f64 {
        self.ns_per_operation.map_or(f64::INFINITY, |nanos| nanos.median)
    }
}

/// The memory of one subject beyond the bytes of keys and values, in bytes an entry.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Overhead {
    pub(crate) subject: Subject,
    /// By the growth of the process's peak, where the system tells and the table is large enough to show.
    pub(crate) resident: Option<f64>,
    /// By the table's own account, lost bytes included, if it keeps one.
    pub(crate) own_account: Option<f64>,
}

/// The figures of each workload, in the order of `workloads` and then of the subjects.
pub(super) fn figures(subjects: &[Subject], workloads: &[Workload], turns: &[Turn]) -> Vec<Figure> {
    workloads.iter().flat_map(|&workload| compared(workload, subjects, turns)).collect()
}

fn compared(workload: Workload, subjects: &[Subject], turns: &[Turn]) -> Vec<Figure> {
    let nanos = |subject, workload| Spread::over(turns, subject, |outcome| outcome.ns_per_operation(workload));
    let best = |roles: &[Role]| {
        let peers = subjects.iter().filter(|subject| roles.contains(&subject.role()));
        peers.filter_map(|&peer| Some(nanos(peer, workload.of_peers())?.median)).min_by(f64::total_cmp)
    };
    let (skip_list, peer) = (best(&[Role::ClosePeer]), best(&[Role::ClosePeer, Role::OtherPeer]));
    let figure = |&subject: &Subject| {
        let ns_per_operation = nanos(subject, workload);
        let times = |best: Option<f64>| Some(best? / ns_per_operation?.median);
        let (times_best_skip_list_peer, times_best_peer) = (times(skip_list), times(peer));
        Figure { workload, subject, ns_per_operation, times_best_skip_list_peer, times_best_peer }
    };
    subjects.iter().filter(|subject| subject.can(workload)).map(figure).collect()
}

/// The overhead of each subject in tables of this many entries: medians.
pub(super) fn overheads(subjects: &[Subject], entries: usize, turns: &[Turn]) -> Vec<Overhead> {
    let overhead = |&subject: &Subject| {
        let median = |bytes: fn(&Memory) -> Option<u64>| {
            let beyond = |Outcome { memory, .. }: &Outcome| Some(bytes(memory)? as f64 - memory.payload as f64);
            Spread::over(turns, subject, beyond).map(|spread| spread.median / entries as f64)
        };
        let resident = median(|memory| memory.resident.filter(|_| memory.payload >= LEAST_RESIDENT));
        Overhead { subject, resident, own_account: median(|memory| memory.used) }
    };
    subjects.iter().map(overhead).collect()
}

#[cfg(test)]
mod tests {
    use Subject::{Btreemap, CrossbeamSkiplist, Fastskip, FastskipPublished, Hashmap, Memtable as Ours, Skl};
    use Workload::{Get, GetMany, Insert, Sort};

    use super::*;
    use crate::round::Sample;

    /// Rounds of a subject with these nanoseconds per operation at a workload. One of no time failed.
    fn turns(subject: Subject, workload: Workload, nanos: &[u64]) -> Vec<Turn> {
        let turn = |&ns: &u64| {
            let samples = vec![Sample { workload, operations: 10, ns: ns * 10, ..Sample::default() }];
            let outcome = Outcome { samples, ..Outcome::default() };
            Turn::new(1, subject, if ns > 0 { Ok(outcome) } else { Err("signal: 11".into()) })
        };
        nanos.iter().map(turn).collect()
    }

    #[test]
    fn the_median_is_the_middle_of_sorted_rounds() {
        // Catches a median of unsorted rounds, one that an outlier moves, the upper or lower of two in the middle taken, and
        // an index past the end where all rounds failed.
        let spread = |median, min, max| Some(Spread { median, min, max });
        assert_eq!(Spread::of([9.0, 1.0, 1000.0, 3.0, 2.0]), spread(3.0, 1.0, 1000.0));
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 10.0]), spread(3.0, 1.0, 10.0));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn ratios_are_to_the_fastest_peer_that_ended_and_above_one_when_faster() {
        // Catches ratios upside down, to a subject of our own, to the map without order, or to a peer that never finished; a
        // crash counted as a fast round; a get-many without a ratio; and rows of what a subject was never asked to do.
        for (subject, workload, nanos, skip_list, peer) in [
            (Fastskip, Insert, &[100, 110, 90][..], Some(3.0), Some(2.0)),
            (Ours, Insert, &[50], Some(6.0), Some(4.0)),
            (Subject::MemtableBatch, GetMany, &[50], Some(5.0), Some(5.0)),
            (CrossbeamSkiplist, Insert, &[400], Some(0.75), Some(0.5)),
            (Skl, Insert, &[0, 0], None, None),
            (Hashmap, Insert, &[20], Some(15.0), Some(10.0)),
        ] {
            let peers = [(FastskipPublished, Insert, &[300][..]), (Btreemap, Insert, &[200, 0, 0]), (Skl, Get, &[250])];
            let peers = peers.map(|(subject, workload, nanos)| turns(subject, workload, nanos)).concat();
            let turns = [turns(subject, workload, nanos), peers].concat();
            let subjects = [subject, FastskipPublished, Btreemap, Skl];
            let figure = figures(&subjects, &[workload], &turns)[0].clone();
            assert_eq!((figure.subject, figure.workload), (subject, workload));
            assert_eq!((figure.times_best_skip_list_peer, figure.times_best_peer), (skip_list, peer), "{subject:?}");
        }
        let of = |workload| figures(&[Ours, Subject::Vec], &[workload], &[])[0].subject;
        assert_eq!([of(Sort), of(Get)], [Subject::Vec, Ours]);
    }

    #[test]
    fn overhead_is_what_an_entry_takes_beyond_its_bytes() {
        // Catches payload counted as overhead, and the growth of a process taken for that of a tiny table.
        let turn = |subject, payload, resident, used| {
            let memory = Memory { payload, resident: Some(resident), used };
            Turn::new(1, subject, Ok(Outcome { memory, ..Outcome::default() }))
        };
        let turns = [turn(Ours, 10 << 20, 11 << 20, Some((10 << 20) + 2800)), turn(Btreemap, 1 << 20, 5 << 20, None)];
        let found = overheads(&[Ours, Btreemap], 100, &turns).into_iter().map(|of| (of.resident, of.own_account));
        assert_eq!(found.collect::<Vec<_>>(), [(Some(10_485.76), Some(28.0)), (None, None)]);
    }
}
