//! What one round is asked for, and what it comes to.

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
        let sample = self.samples.iter().find(|sample| sample.workload == workload)?;
        Some(sample.ns as f64 / sample.operations as f64)
    }
}

/// What the clock says of one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) workload: Workload,
    /// Operations of all threads together: records stored, sorted or deleted, keys searched or gone to, entries read.
    pub(crate) operations: u64,
    /// The time until the last thread was done, in nanoseconds.
    pub(crate) ns: u64,
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
