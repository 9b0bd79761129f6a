//! What goals may ask for, and what a run says of it.

use std::slice::from_ref;

use crate::results::CellResults;
use crate::round::{Fact, Percentile};
use crate::spec::{Shape, Subject, Workload};
use crate::text::name;

pub(crate) struct Goal {
    pub(crate) name: &'static str,
    /// In a few words.
    pub(crate) asks: &'static str,
    pub(super) rows: &'static [Row],
}

/// Checks for each shape, workload and subject that can do it. Two threads store keys in order in ranges of their own.
pub(super) struct Row {
    pub(super) subjects: &'static [Subject],
    pub(super) workloads: &'static [Workload],
    pub(super) shapes: &'static [Shape],
    pub(super) checks: &'static [(Measure, Bound)],
}

/// What is measured. Every check compares medians of one run.
pub(super) enum Measure {
    /// How many times as fast as the fastest skip-list peer in the same cell.
    TimesSkipLists,
    /// How many times as fast as this.
    Times(Base),
    /// The time divided by that of all of these together.
    TimeIn(&'static [Base]),
    /// The rate divided by that of one thread.
    TimesOneThread,
    /// p99.9 of single inserts divided by their median.
    TailRatio,
    /// What the workload took beside time.
    Itself(Fact),
    /// The same, times the number of threads.
    FactTimesThreads(Fact),
    /// The time of the slower of two floors, divided by this one: the memtable without a log, and a log of as many bytes as went to
    /// the disk.
    ShareOfFloors,
    /// The time of an operation.
    Millis,
    /// Bytes of keys and values.
    MegabytesPerSecond,
}

/// What a check compares with. `None` is the subject of the check itself, or its workload as peers do it.
pub(super) type Base = (Option<Subject>, Option<Workload>);

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Measure {
    pub(super) fn says(&self) -> String {
        let bases = match self {
            Self::Times(base) => from_ref(base),
            Self::TimeIn(bases) => bases,
            _ => &[],
        };
        let base = |(subject, workload): &Base| {
            subject.map(name).into_iter().chain(workload.map(name)).collect::<Vec<_>>().join(" ")
        };
        let bases = bases.iter().map(base).collect::<Vec<_>>().join(" and ");
        match self {
            Self::TimesSkipLists => "times as fast as the fastest skip-list peer".into(),
            Self::Times(_) => format!("times as fast as {bases}"),
            Self::TimeIn(_) => format!("time divided by that of {bases}"),
            Self::TimesOneThread => "rate divided by that of one thread".into(),
            Self::TailRatio => "p99.9 divided by the median".into(),
            Self::Itself(fact) => name(*fact),
            Self::FactTimesThreads(fact) => format!("{}, times threads", name(*fact)),
            Self::ShareOfFloors => "times as fast as the slower of memtable and log".into(),
            Self::Millis | Self::MegabytesPerSecond => "itself".into(),
        }
    }

    pub(super) fn unit(&self) -> &'static str {
        match self {
            Self::Itself(_) | Self::FactTimesThreads(_) => "",
            Self::Millis => " ms",
            Self::MegabytesPerSecond => " MB/s",
            _ => "x",
        }
    }

    /// From the first cell of the shape that has what it takes.
    pub(super) fn of(&self, run: &[CellResults], shape: Shape, subject: Subject, workload: Workload) -> Option<f64> {
        let first = |shape: Shape, of: &dyn Fn(&CellResults) -> Option<f64>| {
            run.iter().filter(|results| results.cell.shape == shape).find_map(of)
        };
        let nanos = |cell: &CellResults| cell.nanos(subject, workload);
        let base = |cell: &CellResults, base: &Base| {
            cell.nanos(base.0.unwrap_or(subject), base.1.unwrap_or_else(|| workload.of_peers()))
        };
        let fact = |cell: &CellResults, fact: &Fact| cell.fact(subject, workload, *fact);
        first(shape, &|cell| match self {
            Self::TimesSkipLists => cell.figure(subject, workload)?.times_close_peer,
            Self::Times(of) => Some(base(cell, of)? / nanos(cell)?),
            Self::TimeIn(bases) => Some(nanos(cell)? / bases.iter().map(|of| base(cell, of)).sum::<Option<f64>>()?),
            Self::TailRatio => cell.latency(subject, workload, Percentile::TailRatio),
            Self::Itself(of) => fact(cell, of),
            Self::FactTimesThreads(of) => Some(fact(cell, of)? * shape.threads as f64),
            Self::ShareOfFloors => {
                let (memtable, log) = (Subject::Memtable, Subject::Log);
                let bytes = |subject| cell.fact(subject, workload, Fact::DiskBytes);
                let log = cell.nanos(log, workload)? / bytes(log)? * bytes(subject)?;
                Some(cell.nanos(memtable, Workload::Put)?.max(log) / nanos(cell)?)
            }
            Self::Millis => Some(nanos(cell)? / 1e6),
            Self::MegabytesPerSecond => Some(shape.payload() as f64 / shape.entries as f64 * 1e3 / nanos(cell)?),
            Self::TimesOneThread => Some(first(Shape { threads: 1, ..shape }, &nanos)? / nanos(cell)?),
        })
    }
}

impl Goal {
    /// Whether it is one of tables, or of engines, and the run has any.
    pub(super) fn concerns(&self, run: &[CellResults]) -> bool {
        let is_table = |shape: &Shape| shape.store.is_table();
        let own = self.rows.iter().flat_map(|row| row.shapes).all(is_table);
        run.is_empty() || run.iter().any(|results| is_table(&results.cell.shape) == own)
    }
}
