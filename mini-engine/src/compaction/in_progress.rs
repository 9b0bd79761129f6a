//! The merges in progress, so that later ones do not conflict with them.
//!
//! Inputs stay in the version until their merge is installed. A plan that would pass over data in flight must, by the rule of
//! `plan.rs`, take the tables that hold it, and so shares an input with the merge. One more case is kept apart here: two outputs in
//! one run, each of which may fill gaps that the other's tables span.

use std::collections::HashSet;

use crate::compaction::key_range::KeyRange;
use crate::compaction::plan::Plan;
use crate::manifest::RunId;

/// The merges that were begun and not ended.
#[derive(Debug, Default)]
pub(crate) struct InProgress {
    jobs: Vec<Job>,
    busy: HashSet<u64>,
    begun: u64,
}

#[derive(Debug)]
struct Job {
    id: u64,
    inputs: Vec<u64>,
    output: RunId,
    key_range: KeyRange,
}

impl InProgress {
    /// Notes that `plan` is under way; the number by which it is to be ended.
    pub(crate) fn begin(&mut self, plan: &Plan) -> u64 {
        self.begun += 1;
        let inputs: Vec<u64> = plan.tables().collect();
        self.busy.extend(&inputs);
        self.jobs.push(Job { id: self.begun, inputs, output: plan.output, key_range: plan.key_range.clone() });
        self.begun
    }

    /// Keeps `key_range` of `run_id` free of the outputs of further merges, for tables that come from outside; the number by which
    /// that is to be ended.
    pub(crate) fn reserve(&mut self, run_id: RunId, key_range: KeyRange) -> u64 {
        self.begun += 1;
        self.jobs.push(Job { id: self.begun, inputs: Vec::new(), output: run_id, key_range });
        self.begun
    }

    /// Whether a merge under way may put a table into `key_range` of `run_id`.
    pub(crate) fn writes_into(&self, run_id: RunId, key_range: &KeyRange) -> bool {
        self.jobs.iter().any(|job| job.output == run_id && job.key_range.overlaps(key_range))
    }

    /// Notes the end of merge `id`, installed or not.
    pub(crate) fn end(&mut self, id: u64) {
        let Some(at) = self.jobs.iter().position(|job| job.id == id) else { return };
        for input in self.jobs.swap_remove(at).inputs {
            self.busy.remove(&input);
        }
    }

    /// How many merges are under way.
    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether table `number` goes into a merge under way.
    pub(crate) fn is_busy(&self, number: u64) -> bool {
        self.busy.contains(&number)
    }

    /// Whether `plan` has to wait for a merge under way.
    pub(crate) fn conflicts_with(&self, plan: &Plan) -> bool {
        let meets = |job: &Job| job.output == plan.output && job.key_range.overlaps(&plan.key_range);
        plan.tables().any(|table| self.is_busy(table)) || self.jobs.iter().any(meets)
    }
}
