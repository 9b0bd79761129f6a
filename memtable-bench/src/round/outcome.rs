//! The request for one round, and its outcome.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::latency::{Latency, Percentile, Timeline};
use crate::spec::{Shape, Subject, Workload};

/// One round of one subject.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) subject: Subject,
    pub(crate) workloads: Vec<Workload>,
    pub(crate) shape: Shape,
}

/// The result of one workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) workload: Workload,
    /// The operations of all threads: records stored, sorted or deleted; keys searched or sought; entries read.
    pub(crate) operations: u64,
    /// The time until the last thread was done, in nanoseconds.
    pub(crate) ns: u64,
    /// The latencies of single operations: for engines, where a batch is one operation, and for inserts that were timed one by one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) latency: Latency,
    /// The timeline of an engine's workload that may stall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeline: Option<Timeline>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) facts: BTreeMap<Fact, f64>,
}

impl Sample {
    pub(crate) fn new(workload: Workload, operations: usize, time: Duration) -> Self {
        // No round lasts 584 years.
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self { workload, operations: operations as u64, ns, ..Self::default() }
    }

    /// The mean time of an operation; for inserts that were timed one by one, the median.
    pub(crate) fn ns_per_operation(&self) -> Option<f64> {
        match self.workload {
            Workload::InsertLatency => self.latency.get(&Percentile::P50).copied(),
            _ => Some(self.ns as f64 / self.operations as f64),
        }
    }
}

/// Costs of a workload other than time. The subject itself reports own-overhead and failed-cas of tables, and all from syncs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fact {
    /// Bytes by which the process grew for each entry of a table, beyond its key and value
    Overhead,
    /// Bytes that a table says it takes for each entry, beyond its key and value
    OwnOverhead,
    /// Links that changed between a writer's read and its compare-and-swap, for a million inserts
    FailedCas,
    /// System calls that write, for each operation
    WriteCalls,
    /// Bytes that went to the disk for each byte of the records that were stored
    DiskBytes,
    /// Bytes on the disk for each byte of the records that are there
    DiskSpace,
    /// The most anonymous memory that the database took, divided by its cache and two memtables
    Memory,
    /// Writes that a second thread did in a second
    WriterRate,
    /// Syncs of the log for each write
    Syncs,
    /// Bytes that flushes and compactions wrote for each byte flushed
    WriteAmplification,
    /// Data blocks looked at for each get
    ReadAmplification,
    /// Bytes of all tables for each byte of the oldest run
    SpaceAmplification,
}
