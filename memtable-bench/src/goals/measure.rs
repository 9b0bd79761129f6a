//! The measurements of the goals, and how to get them from a run. Every check compares medians of one run.

use crate::results::{CellResults, Figure};
use crate::round::{Fact, Percentile};
use crate::spec::{Shape, Subject, Workload};

pub(crate) struct Goal {
    pub(crate) name: &'static str,
    /// The requirement in a few words.
    pub(crate) asks: &'static str,
    pub(super) rows: &'static [Row],
}

/// A check for each of these shapes and workloads, and for each subject that can do the workload. With ordered keys, two threads store in ranges of
/// their own.
pub(super) type Row = (&'static [Subject], &'static [Workload], &'static [Shape], &'static [(Measure, Bound)]);

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// A description of a measurement, its unit, and how to get it from a run.
pub(super) struct Measure {
    pub(super) says: &'static str,
    pub(super) unit: &'static str,
    pub(super) of: fn(&Measurement<'_>) -> Option<f64>,
}

/// The measurements of a subject at a workload, in a cell of a run.
pub(super) struct Measurement<'r> {
    pub(super) run: &'r [CellResults],
    pub(super) cell: &'r CellResults,
    pub(super) subject: Subject,
    pub(super) workload: Workload,
}

impl Measurement<'_> {
    pub(super) fn shape(&self) -> Shape {
        self.cell.cell.shape
    }

    pub(super) fn nanos(&self) -> Option<f64> {
        self.cell.nanos(self.subject, self.workload)
    }

    pub(super) fn figure(&self) -> Option<Figure> {
        self.cell.figure(self.subject, self.workload)
    }

    pub(super) fn latency(&self, of: Percentile) -> Option<f64> {
        self.cell.latency(self.subject, self.workload, of)
    }

    pub(super) fn fact(&self, fact: Fact) -> Option<f64> {
        self.cell.fact(self.subject, self.workload, fact)
    }

    /// The speed relative to `other` at the same workload: 2 means twice as fast. Peers are compared in the same way.
    pub(super) fn times(&self, other: Subject) -> Option<f64> {
        self.times_at(other, self.workload.of_peers())
    }

    pub(super) fn times_at(&self, other: Subject, workload: Workload) -> Option<f64> {
        Some(self.cell.nanos(other, workload)? / self.nanos()?)
    }

    /// This time divided by the total time of all `others`.
    pub(super) fn share(&self, others: &[(Subject, Workload)]) -> Option<f64> {
        let others = others.iter().map(|&(other, workload)| self.cell.nanos(other, workload));
        Some(self.nanos()? / others.sum::<Option<f64>>()?)
    }

    pub(super) fn of_one_thread(&self) -> Option<f64> {
        let shape = self.shape().with_threads(1);
        self.run.iter().filter(|of| of.cell.shape == shape).find_map(|of| of.nanos(self.subject, self.workload))
    }

    /// The time of the slower of two lower bounds, divided by this time. The bounds are the memtable without a log, and a bare log of as many bytes
    /// as went to the disk.
    pub(super) fn of_floors(&self) -> Option<f64> {
        let log_bytes = self.cell.fact(Subject::Log, self.workload, Fact::DiskBytes)?;
        let log = self.cell.nanos(Subject::Log, self.workload)? / log_bytes * self.fact(Fact::DiskBytes)?;
        Some(self.cell.nanos(Subject::Memtable, Workload::Put)?.max(log) / self.nanos()?)
    }

    /// Megabytes of keys and values a second.
    pub(super) fn megabytes_per_second(&self) -> Option<f64> {
        Some(self.shape().payload() as f64 / self.shape().entries as f64 * 1e3 / self.nanos()?)
    }
}

impl Goal {
    /// Whether this is a goal of tables and the run has tables, or a goal of engines and the run has engines.
    pub(super) fn concerns(&self, run: &[CellResults]) -> bool {
        let is_table = |shape: &Shape| shape.store.is_table();
        let own = self.rows.iter().flat_map(|(.., shapes, _)| *shapes).all(is_table);
        run.is_empty() || run.iter().any(|results| is_table(&results.cell.shape) == own)
    }
}
