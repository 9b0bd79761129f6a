//! What all rounds say together: of each workload and subject a median, its spread, and ratios to the best peers; of each
//! subject the memory it takes.

use serde::{Deserialize, Serialize};

use super::round::{Memory, Outcome, Sample};
use super::subjects::{Role, Subject};
use super::workload::Workload;
use crate::statistics::Spread;

/// The outcomes of a subject's rounds, in their order, or why there is none.
pub(crate) type Rounds = Vec<Result<Outcome, String>>;

/// Tables below this are lost among what else the process holds: their growth says nothing.
const LEAST_RESIDENT: u64 = 8 << 20;

/// One subject at one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) workload: Workload,
    pub(crate) subject: Subject,
    /// Nanoseconds per operation in the rounds that did not fail; `None` if all did.
    pub(crate) ns_per_operation: Option<Spread>,
    /// How many times as fast as the best skip list among the peers: its median by this one's.
    pub(crate) times_best_skip_list_peer: Option<f64>,
    /// How many times as fast as the best peer.
    pub(crate) times_best_peer: Option<f64>,
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
pub(crate) fn figures(workloads: &[Workload], results: &[(Subject, Rounds)]) -> Vec<Figure> {
    workloads.iter().flat_map(|&workload| compared(workload, results)).collect()
}

fn compared(workload: Workload, results: &[(Subject, Rounds)]) -> Vec<Figure> {
    let best = |roles: &[Role]| {
        let peers = results.iter().filter(|(subject, _)| roles.contains(&subject.role()));
        let medians = peers.filter_map(|(_, rounds)| Some(spread(workload.of_peers(), rounds)?.median));
        medians.min_by(f64::total_cmp)
    };
    let skip_list = best(&[Role::SkipListPeer]);
    let peer = best(&[Role::SkipListPeer, Role::OtherPeer]);
    let figure = |(subject, rounds): &(Subject, Rounds)| {
        let ns_per_operation = spread(workload, rounds);
        let times = |best: Option<f64>| Some(best? / ns_per_operation?.median);
        let (times_best_skip_list_peer, times_best_peer) = (times(skip_list), times(peer));
        Figure { workload, subject: *subject, ns_per_operation, times_best_skip_list_peer, times_best_peer }
    };
    results.iter().filter(|(subject, _)| subject.can(workload)).map(figure).collect()
}

fn spread(workload: Workload, rounds: &Rounds) -> Option<Spread> {
    let samples = rounds.iter().flatten().flat_map(|outcome| &outcome.samples);
    Spread::of(samples.filter(|sample| sample.workload == workload).map(Sample::nanos_per_operation))
}

/// The overhead of each subject in tables of this many entries: medians.
pub(crate) fn overheads(entries: usize, results: &[(Subject, Rounds)]) -> Vec<Overhead> {
    let overhead = |(subject, rounds): &(Subject, Rounds)| {
        let median = |bytes: fn(&Memory) -> Option<u64>| {
            let memory = rounds.iter().flatten().map(|outcome| outcome.memory);
            let beyond = |memory: Memory| Some((bytes(&memory)? as f64 - memory.payload as f64) / entries as f64);
            Spread::of(memory.filter_map(beyond)).map(|spread| spread.median)
        };
        let resident = median(|memory| memory.resident.filter(|_| memory.payload >= LEAST_RESIDENT));
        Overhead { subject: *subject, resident, own_account: median(|memory| memory.used) }
    };
    results.iter().map(overhead).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(samples: Vec<Sample>) -> Outcome {
        Outcome { samples, memory: Memory::default(), cas_failures: None }
    }

    fn rounds_of(workload: Workload, nanos: &[u64]) -> Rounds {
        nanos.iter().map(|&nanos| Ok(outcome(vec![Sample { workload, operations: 10, ns: nanos * 10 }]))).collect()
    }

    fn rounds(nanos: &[u64]) -> Rounds {
        rounds_of(Workload::Insert, nanos)
    }

    #[test]
    fn ratios_are_to_the_fastest_peer_and_above_one_when_faster() {
        // Catches ratios upside down, to a subject of our own, or to the vec that finds nothing.
        let results = [
            (Subject::Fastskip, rounds(&[100, 110, 90])),
            (Subject::Memtable, rounds(&[50])),
            (Subject::FastskipPublished, rounds(&[300])),
            (Subject::CrossbeamSkiplist, rounds(&[400])),
            (Subject::Btreemap, rounds(&[200])),
            (Subject::Hashmap, rounds(&[20])),
            (Subject::Vec, rounds(&[10])),
        ];
        let figures = figures(&[Workload::Insert], &results);
        let ratios: Vec<_> =
            figures.iter().map(|figure| (figure.times_best_skip_list_peer, figure.times_best_peer)).collect();
        assert_eq!(ratios[0], (Some(3.0), Some(2.0)));
        assert_eq!(ratios[3], (Some(0.75), Some(0.5)));
        assert_eq!(ratios[6], (Some(30.0), Some(20.0)));
        assert_eq!(figures[0].ns_per_operation, Some(Spread { median: 100.0, min: 90.0, max: 110.0 }));
    }

    #[test]
    fn batches_are_compared_with_what_peers_do_one_by_one() {
        // Catches a get-many without a ratio: no peer has one.
        let results = [
            (Subject::MemtableBatch, rounds_of(Workload::GetMany, &[50])),
            (Subject::Memtable, rounds_of(Workload::Get, &[100])),
            (Subject::Skl, rounds_of(Workload::Get, &[250])),
        ];
        let figures = figures(&[Workload::GetMany], &results);
        assert_eq!(figures.len(), 1);
        assert_eq!(figures[0].times_best_skip_list_peer, Some(5.0));
    }

    #[test]
    fn failed_rounds_have_no_part_in_a_figure() {
        // Catches a crash counted as a fast round, and ratios to a peer that never finished.
        let mut crashed = rounds(&[300]);
        crashed.extend([Err("signal: 11".into()), Err("signal: 6".into())]);
        let results = [
            (Subject::Memtable, rounds(&[100])),
            (Subject::FastskipPublished, crashed[1..].to_vec()),
            (Subject::Btreemap, crashed),
        ];
        let figures = figures(&[Workload::Insert], &results);
        assert_eq!((figures[0].times_best_skip_list_peer, figures[0].times_best_peer), (None, Some(3.0)));
        assert_eq!((figures[1].ns_per_operation, figures[1].times_best_peer), (None, None));
    }

    #[test]
    fn subjects_have_figures_only_of_what_they_can_do() {
        // Catches rows of nothing for workloads that a subject was never asked to do.
        let results = [(Subject::Memtable, rounds(&[1])), (Subject::Vec, rounds(&[1]))];
        let of = |workload| figures(&[workload], &results).iter().map(|figure| figure.subject).collect::<Vec<_>>();
        assert_eq!((of(Workload::Sort), of(Workload::Get)), (vec![Subject::Vec], vec![Subject::Memtable]));
    }

    #[test]
    fn overhead_is_what_an_entry_takes_beyond_its_bytes() {
        // Catches payload counted as overhead, and the growth of a process taken for that of a tiny table.
        let memory = |payload, resident, used| {
            let memory = Memory { payload, resident, used };
            vec![Ok(Outcome { samples: Vec::new(), memory, cas_failures: None })]
        };
        let results = [
            (Subject::Memtable, memory(10 << 20, Some(11 << 20), Some((10 << 20) + 2800))),
            (Subject::Btreemap, memory(1 << 20, Some(5 << 20), None)),
        ];
        let [ours, small] = overheads(100, &results)[..] else { panic!("two subjects") };
        assert_eq!((ours.resident, ours.own_account), (Some(10_485.76), Some(28.0)));
        assert_eq!((small.resident, small.own_account), (None, None));
    }
}
