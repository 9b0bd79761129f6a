//! What one round is asked for, and what it comes to.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::latency::Latency;
use crate::spec::{Shape, Subject, Workload};

/// One round of one subject.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Request {
    pub(crate) subject: Subject,
    pub(crate) workloads: Vec<Workload>,
    pub(crate) shape: Shape,
}

/// A round that failed has no samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Outcome {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) memory: Memory,
    /// Compare-and-swaps that failed while the table was filled, if the table counts them.
    pub(crate) cas_failures: Option<u64>,
    /// If single inserts were timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency: Option<Latency>,
}

impl Outcome {
    /// The mean; of inserts that were timed by themselves, the median.
    pub(crate) fn ns_per_operation(&self, workload: Workload) -> Option<f64> {
        if workload == Workload::InsertLatency {
            return Some(self.latency?.p50);
        }
        let sample = self.sample(workload)?;
        Some(sample.ns as f64 / sample.operations as f64)
    }

    pub(crate) fn sample(&self, workload: Workload) -> Option<&Sample> {
        self.samples.iter().find(|sample| sample.workload == workload)
    }

    /// How long single operations took: inserts into a table, or those of an engine's workload.
    pub(crate) fn latency(&self, workload: Workload) -> Option<Latency> {
        if workload == Workload::InsertLatency { self.latency } else { self.sample(workload)?.latency }
    }
}

/// What the clock says of one workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) workload: Workload,
    /// Operations of all threads together: records stored, sorted or deleted, keys searched or gone to, entries read.
    pub(crate) operations: u64,
    /// The time until the last thread was done, in nanoseconds.
    pub(crate) ns: u64,
    /// Of single operations, of engines only; a batch is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) latency: Option<Latency>,
    /// Of engines where stalls may show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeline: Option<Timeline>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) facts: BTreeMap<Fact, f64>,
}

/// How many operations all threads together finished in each moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Timeline {
    /// The length of a moment in milliseconds.
    pub(crate) moment_ms: u64,
    pub(crate) operations: Vec<u64>,
}

/// What a workload took from the machine beside time. Those of the second half are the engine's own account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fact {
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
    /// Bytes that flushes and merges wrote for each byte flushed
    WriteAmplification,
    /// Data blocks looked at for each get
    ReadAmplification,
    /// Bytes of all tables for each byte of the oldest run
    SpaceAmplification,
}

/// What the filled table takes, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// Keys and values alone.
    pub(crate) payload: u64,
    /// By how much the peak of resident memory grew while the table was filled, where the system tells.
    pub(crate) resident: Option<u64>,
    /// What the table says it uses, if it does.
    pub(crate) used: Option<u64>,
}
