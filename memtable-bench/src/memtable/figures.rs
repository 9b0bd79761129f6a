//! What all rounds say together: of each workload and subject a median, its spread, and ratios to the best peers.

use super::round::Sample;
use super::subjects::{Role, Subject};
use super::workload::Workload;
use crate::statistics::Spread;

/// The outcomes of a subject's rounds, in their order: samples, or why there are none.
pub(crate) type Rounds = Vec<Result<Vec<Sample>, String>>;

/// One subject at one workload.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    pub(crate) workload: Workload,
    pub(crate) subject: Subject,
    /// Nanoseconds per operation in the rounds that did not fail; `None` if all did.
    pub(crate) nanos: Option<Spread>,
    /// How many times as fast as the best skip list among the peers: its median by this one's.
    pub(crate) times_skip_list: Option<f64>,
    /// How many times as fast as the best peer.
    pub(crate) times_peer: Option<f64>,
}

/// The figures of each workload, in the order of `workloads` and then of the subjects.
pub(crate) fn figures(workloads: &[Workload], results: &[(Subject, Rounds)]) -> Vec<Figure> {
    workloads.iter().flat_map(|&workload| compared(workload, results)).collect()
}

fn compared(workload: Workload, results: &[(Subject, Rounds)]) -> Vec<Figure> {
    let able = results.iter().filter(|(subject, _)| subject.can(workload));
    let spreads: Vec<_> = able.map(|(subject, rounds)| (*subject, spread(workload, rounds))).collect();
    let best = |roles: &[Role]| {
        let peers = spreads.iter().filter(|(subject, _)| roles.contains(&subject.role()));
        peers.filter_map(|(_, nanos)| nanos.map(|nanos| nanos.median)).min_by(f64::total_cmp)
    };
    let skip_list = best(&[Role::SkipListPeer]);
    let peer = best(&[Role::SkipListPeer, Role::OtherPeer]);
    let times = |best: Option<f64>, nanos: Option<Spread>| Some(best? / nanos?.median);
    let figure = |&(subject, nanos): &(Subject, Option<Spread>)| Figure {
        workload,
        subject,
        nanos,
        times_skip_list: times(skip_list, nanos),
        times_peer: times(peer, nanos),
    };
    spreads.iter().map(figure).collect()
}

fn spread(workload: Workload, rounds: &Rounds) -> Option<Spread> {
    let samples = rounds.iter().flatten().flatten().filter(|sample| sample.workload == workload);
    Spread::of(samples.map(Sample::nanos_per_operation))
}

/// The first reason for which a subject's rounds failed, and how many did.
pub(crate) fn failures(rounds: &Rounds) -> Option<(usize, &str)> {
    let mut reasons = rounds.iter().filter_map(|round| round.as_ref().err());
    let first = reasons.next()?;
    Some((1 + reasons.count(), first))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn rounds(nanos: &[u64]) -> Rounds {
        let round = |&nanos| {
            Ok(vec![Sample { workload: Workload::Insert, operations: 10, time: Duration::from_nanos(nanos * 10) }])
        };
        nanos.iter().map(round).collect()
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
            (Subject::Vec, rounds(&[10])),
        ];
        let figures = figures(&[Workload::Insert], &results);
        let ratios: Vec<_> = figures.iter().map(|figure| (figure.times_skip_list, figure.times_peer)).collect();
        assert_eq!(ratios[0], (Some(3.0), Some(2.0)));
        assert_eq!(ratios[3], (Some(0.75), Some(0.5)));
        assert_eq!(ratios[5], (Some(30.0), Some(20.0)));
        assert_eq!(figures[0].nanos, Some(Spread { median: 100.0, min: 90.0, max: 110.0 }));
    }

    #[test]
    fn failed_rounds_have_no_part_in_a_figure() {
        // Catches a crash counted as a fast round, and ratios to a peer that never finished.
        let mut crashed = rounds(&[300]);
        crashed.extend([Err("signal: 11".into()), Err("signal: 6".into())]);
        assert_eq!(failures(&crashed), Some((2, "signal: 11")));
        let results = [
            (Subject::Memtable, rounds(&[100])),
            (Subject::FastskipPublished, crashed[1..].to_vec()),
            (Subject::Btreemap, crashed),
        ];
        let figures = figures(&[Workload::Insert], &results);
        assert_eq!((figures[0].times_skip_list, figures[0].times_peer), (None, Some(3.0)));
        assert_eq!((figures[1].nanos, figures[1].times_peer), (None, None));
    }

    #[test]
    fn subjects_have_figures_only_of_what_they_can_do() {
        // Catches rows of nothing for workloads that a subject was never asked to do.
        let results = [(Subject::Memtable, rounds(&[1])), (Subject::Vec, rounds(&[1]))];
        let of = |workload| figures(&[workload], &results).iter().map(|figure| figure.subject).collect::<Vec<_>>();
        assert_eq!((of(Workload::Sort), of(Workload::Get)), (vec![Subject::Vec], vec![Subject::Memtable]));
    }
}
