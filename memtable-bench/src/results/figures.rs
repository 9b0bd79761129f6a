//! What all rounds of a cell say together: for each workload and subject a median, its spread, and ratios to the best peers;
//! for each subject the memory it takes.

use serde::{Deserialize, Serialize};

use crate::round::{Memory, Outcome, Sample};
use crate::spec::{Role, Subject, Workload};

/// One round of one subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) round: u32,
    pub(crate) subject: Subject,
    #[serde(flatten)]
    pub(crate) result: TurnResult,
}

/// An outcome, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum TurnResult {
    Outcome(Outcome),
    Failure { failed: String },
}

impl Turn {
    pub(crate) fn new(round: u32, subject: Subject, result: Result<Outcome, String>) -> Self {
        let result = result.map_or_else(|failed| TurnResult::Failure { failed }, TurnResult::Outcome);
        Self { round, subject, result }
    }
}

/// The outcomes of a subject's rounds that did not fail.
pub(super) fn outcomes(turns: &[Turn], subject: Subject) -> impl Iterator<Item = &Outcome> {
    turns.iter().filter(move |turn| turn.subject == subject).filter_map(|turn| match &turn.result {
        TurnResult::Outcome(outcome) => Some(outcome),
        TurnResult::Failure { .. } => None,
    })
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
    pub(crate) fn of(measurements: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = measurements.into_iter().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let (below, above) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self { median: below.midpoint(above), min, max })
    }
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
    let best = |roles: &[Role]| {
        let peers = subjects.iter().filter(|subject| roles.contains(&subject.role()));
        peers.filter_map(|&peer| Some(spread(workload.of_peers(), turns, peer)?.median)).min_by(f64::total_cmp)
    };
    let skip_list = best(&[Role::SkipListPeer]);
    let peer = best(&[Role::SkipListPeer, Role::OtherPeer]);
    let figure = |&subject: &Subject| {
        let ns_per_operation = spread(workload, turns, subject);
        let times = |best: Option<f64>| Some(best? / ns_per_operation?.median);
        let (times_best_skip_list_peer, times_best_peer) = (times(skip_list), times(peer));
        Figure { workload, subject, ns_per_operation, times_best_skip_list_peer, times_best_peer }
    };
    subjects.iter().filter(|subject| subject.can(workload)).map(figure).collect()
}

fn spread(workload: Workload, turns: &[Turn], subject: Subject) -> Option<Spread> {
    let samples = outcomes(turns, subject).flat_map(|outcome| &outcome.samples);
    Spread::of(samples.filter(|sample| sample.workload == workload).map(Sample::nanos_per_operation))
}

/// The overhead of each subject in tables of this many entries: medians.
pub(super) fn overheads(subjects: &[Subject], entries: usize, turns: &[Turn]) -> Vec<Overhead> {
    let overhead = |&subject: &Subject| {
        let median = |bytes: fn(&Memory) -> Option<u64>| {
            let beyond = |memory: Memory| Some((bytes(&memory)? as f64 - memory.payload as f64) / entries as f64);
            let all = outcomes(turns, subject).filter_map(|outcome| beyond(outcome.memory));
            Spread::of(all).map(|spread| spread.median)
        };
        let resident = median(|memory| memory.resident.filter(|_| memory.payload >= LEAST_RESIDENT));
        Overhead { subject, resident, own_account: median(|memory| memory.used) }
    };
    subjects.iter().map(overhead).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Subjects with nanoseconds per operation at a workload, a round each.
    fn figures_of(workload: Workload, results: &[(Subject, Workload, &[u64])]) -> Vec<Figure> {
        let round = |subject, workload, nanos: u64| {
            let samples = vec![Sample { workload, operations: 10, ns: nanos * 10 }];
            // A round of no time is one that failed.
            let outcome = Outcome { samples, memory: Memory::default(), cas_failures: None };
            Turn::new(1, subject, if nanos > 0 { Ok(outcome) } else { Err("signal: 11".into()) })
        };
        let mut turns = Vec::new();
        for (subject, workload, nanos) in results {
            turns.extend(nanos.iter().map(|&nanos| round(*subject, *workload, nanos)));
        }
        let subjects: Vec<_> = results.iter().map(|(subject, ..)| *subject).collect();
        figures(&subjects, &[workload], &turns)
    }

    fn inserts<'a>(results: &[(Subject, &'a [u64])]) -> Vec<(Subject, Workload, &'a [u64])> {
        results.iter().map(|&(subject, nanos)| (subject, Workload::Insert, nanos)).collect()
    }

    #[test]
    fn the_median_is_the_middle_of_sorted_rounds() {
        // Catches a median of unsorted rounds, one that an outlier moves, the upper or lower of two in the middle taken, and
        // an index past the end where all rounds failed.
        let spread = |median, min, max| Some(Spread { median, min, max });
        assert_eq!(Spread::of([9.0, 1.0, 1000.0, 3.0, 2.0]), spread(3.0, 1.0, 1000.0));
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 10.0]), spread(3.0, 1.0, 10.0));
        assert_eq!(Spread::of([7.5]), spread(7.5, 7.5, 7.5));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn ratios_are_to_the_fastest_peer_and_above_one_when_faster() {
        // Catches ratios upside down, to a subject of our own, or to the vec that finds nothing.
        use Subject::{Btreemap, CrossbeamSkiplist, Fastskip, FastskipPublished, Hashmap, Memtable, Vec};
        let peers = [(FastskipPublished, &[300][..]), (CrossbeamSkiplist, &[400]), (Btreemap, &[200])];
        let all =
            [&[(Fastskip, &[100, 110, 90][..]), (Memtable, &[50])], &peers[..], &[(Hashmap, &[20]), (Vec, &[10])]];
        let figures = figures_of(Workload::Insert, &inserts(&all.concat()));
        let ratios = [0, 3, 6].map(|of: usize| (figures[of].times_best_skip_list_peer, figures[of].times_best_peer));
        assert_eq!(ratios, [(Some(3.0), Some(2.0)), (Some(0.75), Some(0.5)), (Some(30.0), Some(20.0))]);
        assert_eq!(figures[0].ns_per_operation, Some(Spread { median: 100.0, min: 90.0, max: 110.0 }));
    }

    #[test]
    fn batches_are_compared_with_what_peers_do_one_by_one() {
        // Catches a get-many without a ratio (no peer has one), and rows of workloads that a subject was never asked to do.
        let figures = figures_of(
            Workload::GetMany,
            &[
                (Subject::MemtableBatch, Workload::GetMany, &[50]),
                (Subject::Memtable, Workload::Get, &[100]),
                (Subject::Skl, Workload::Get, &[250]),
            ],
        );
        assert_eq!((figures.len(), figures[0].times_best_skip_list_peer), (1, Some(5.0)));
        let of = |workload| figures_of(workload, &inserts(&[(Subject::Memtable, &[1]), (Subject::Vec, &[1])]));
        assert_eq!([of(Workload::Sort)[0].subject, of(Workload::Get)[0].subject], [Subject::Vec, Subject::Memtable]);
    }

    #[test]
    fn failed_rounds_have_no_part_in_a_figure() {
        // Catches a crash counted as a fast round, and ratios to a peer that never finished.
        let crashed = [(Subject::FastskipPublished, &[0, 0][..]), (Subject::Btreemap, &[300, 0, 0])];
        let figures =
            figures_of(Workload::Insert, &inserts(&[&[(Subject::Memtable, &[100][..])], &crashed[..]].concat()));
        assert_eq!((figures[0].times_best_skip_list_peer, figures[0].times_best_peer), (None, Some(3.0)));
        assert_eq!((figures[1].ns_per_operation, figures[1].times_best_peer), (None, None));
    }

    #[test]
    fn overhead_is_what_an_entry_takes_beyond_its_bytes() {
        // Catches payload counted as overhead, and the growth of a process taken for that of a tiny table.
        let turn = |subject, payload, resident, used| {
            let memory = Memory { payload, resident: Some(resident), used };
            Turn::new(1, subject, Ok(Outcome { samples: Vec::new(), memory, cas_failures: None }))
        };
        let ours = turn(Subject::Memtable, 10 << 20, 11 << 20, Some((10 << 20) + 2800));
        let turns = [ours, turn(Subject::Btreemap, 1 << 20, 5 << 20, None)];
        let overheads = overheads(&[Subject::Memtable, Subject::Btreemap], 100, &turns);
        let found: Vec<_> = overheads.iter().map(|of| (of.resident, of.own_account)).collect();
        assert_eq!(found, [(Some(10_485.76), Some(28.0)), (None, None)]);
    }
}
