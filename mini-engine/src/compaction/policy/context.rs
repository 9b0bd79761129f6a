//! The [`Context`] that is the input of every policy, and the plans that several of them make.

use std::collections::HashSet;

use super::neighbours::Candidate;
use crate::compaction::in_progress::InProgress;
use crate::compaction::plan::{self, Chosen, Plan};
use crate::manifest::{CompactPointer, KeyspaceSet, MAX_LEVELS, Run, RunId, Version};
use crate::options::Options;
use crate::table::TableMeta;
use crate::types::Millis;

pub(crate) const BOTTOM: usize = MAX_LEVELS - 1;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) version: &'a Version,
    pub(crate) options: &'a Options,
    pub(crate) in_progress: &'a InProgress,
    /// Whether the runs of level 0 were merged by many scans.
    pub(crate) is_scanned_often: bool,
    /// Whether space is short: every compaction that may free space is due, and each may use only little.
    pub(crate) is_tight: bool,
    pub(crate) keyspaces: &'a KeyspaceSet,
    /// The instant at which expiry is judged: entries that expire by then have expired for every reader.
    pub(crate) instant: Millis,
}

impl<'a> Context<'a> {
    /// The plan that moves `chosen` to `output`.
    pub(crate) fn plan(&self, chosen: Vec<Chosen<'a>>, output: RunId) -> Option<Plan> {
        plan::plan(self.version, self.options, chosen, output, |table| self.in_progress.is_free(table.number))
    }

    /// The next piece of the compaction of `pointer`; `None` if nothing is left of it. Its inputs are the tables above the output within the
    /// pointer's keys (the remaining ones and those that arrived since), and the narrowed table of the output's run.
    pub(crate) fn resume(&self, pointer: &CompactPointer) -> Option<Plan> {
        let goes = |run_id: RunId, table: &TableMeta| {
            let is_within = pointer.from <= table.smallest && table.largest <= pointer.upto;
            is_within && (table.narrowed || plan::is_newer(run_id, pointer.output))
        };
        let chosen = plan::expand_between(self.version, pointer.top, pointer.output, goes);
        // Crumbs before the pointer may be outputs of the last piece: if each piece included them, they could be its only progress.
        let is_free = |table: &TableMeta| self.in_progress.is_free(table.number) && table.largest >= pointer.from;
        let plan = plan::plan(self.version, self.options, chosen, pointer.output, is_free)?;
        Some(Plan { bytes: plan.bytes.max(pointer.bytes), resumes: Some(pointer.id), ..plan })
    }

    /// All tables of levels `from` to `to - 1`, and the tables of level `to` that they overlap.
    pub(super) fn expand_inputs(&self, from: usize, to: usize) -> Vec<Chosen<'a>> {
        plan::expand_inputs(self.version, from, to, |level, _| level < to)
    }

    /// The runs of `level`, as candidates for compactions with neighbours. A run with a narrowed table of an unfinished compaction is not free.
    pub(super) fn candidates(&self, level: usize) -> Vec<Candidate> {
        let resumable = self.version.pointers().iter().filter_map(|pointer| self.resume(pointer));
        let resumable = resumable.filter(|plan| self.in_progress.allows(plan));
        let resumable: HashSet<u64> = resumable.flat_map(|plan| plan.tables().collect::<Vec<_>>()).collect();
        let is_free = |table: &TableMeta| {
            self.in_progress.is_free(table.number) && !(table.narrowed && resumable.contains(&table.number))
        };
        let candidate = |run: &Run| Candidate { bytes: run.bytes(), is_free: run.tables().iter().all(is_free) };
        self.version.runs(level).iter().map(candidate).collect()
    }

    pub(super) fn level_0_is_due(&self) -> bool {
        self.version.runs(0).len() > self.options.level_0_tables()
    }

    /// The plan that joins all runs of `level` in the place of the oldest.
    pub(super) fn join_runs(&self, level: usize) -> Option<Plan> {
        let all = plan::expand_inputs(self.version, level, level, |_, _| true);
        self.plan(all, plan::oldest_run(self.version, level))
    }

    /// The plan that makes all tables of `level`, which is not level 0, a new run of the next level.
    pub(super) fn push_as_run(&self, level: usize) -> Option<Plan> {
        let all = plan::expand_inputs(self.version, level, level, |_, _| true);
        self.plan(all, plan::new_run(self.version, level + 1))
    }

    /// The plan that compacts everything between level 0 and the deepest level into the oldest run of the deepest level.
    pub(super) fn push_tiers(&self) -> Option<Plan> {
        self.plan(self.expand_inputs(1, BOTTOM), plan::oldest_run(self.version, BOTTOM))
    }

    /// Bytes of all levels between level 0 and the deepest.
    pub(super) fn tier_bytes(&self) -> u64 {
        (1..BOTTOM).map(|level| self.version.level_bytes(level)).sum()
    }

    /// Bytes of the tables of `level` that are free for a compaction.
    pub(super) fn free_bytes(&self, level: usize) -> u64 {
        let is_free = |table: &&TableMeta| self.in_progress.is_free(table.number);
        self.version.level(level).filter(is_free).map(|table| table.size).sum()
    }
}
