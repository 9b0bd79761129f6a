//! The compactions in progress, so that later ones do not conflict with them, and the damaged tables that they avoid.
//!
//! Inputs stay in the version until their compaction is installed. A plan whose inputs would pass over the inputs of a running compaction must
//! include those inputs (the rule of `plan.rs`), and so it conflicts with that compaction. One more case is checked here: two outputs in one run,
//! where each may fill gaps between the tables of the other.

use std::collections::HashSet;

use crate::compaction::damage::Damage;
use crate::compaction::key_range::KeyRange;
use crate::compaction::plan::Plan;
use crate::manifest::RunId;

/// The compactions that have begun and not ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct InProgress {
    plans: Vec<BegunPlan>,
    busy: HashSet<u64>,
    claimed: HashSet<u64>,
    begun: u64,
    /// The number of changes to this struct.
    changes: u64,
    pub(crate) damage: Damage,
}

#[derive(Clone, Debug)]
struct BegunPlan {
    id: u64,
    inputs: Vec<u64>,
    output: RunId,
    key_range: KeyRange,
    relieves_level_0: bool,
    /// The compaction has failed, and will be tried again later.
    is_paused: bool,
}

impl InProgress {
    /// Records that `plan` is running. Returns the number to pass to `end`.
    pub(crate) fn begin(&mut self, plan: &Plan) -> u64 {
        let inputs: Vec<u64> = plan.tables().collect();
        self.busy.extend(&inputs);
        self.push(inputs, plan.output, plan.key_range.clone(), plan.relieves_level_0())
    }

    /// Reserves `key_range` of `run_id` for ingested tables: no compaction may put an output there. Returns the number to pass to `end`.
    pub(crate) fn reserve(&mut self, run_id: RunId, key_range: KeyRange) -> u64 {
        self.push(Vec::new(), run_id, key_range, false)
    }

    fn push(&mut self, inputs: Vec<u64>, output: RunId, key_range: KeyRange, relieves_level_0: bool) -> u64 {
        (self.begun, self.changes) = (self.begun + 1, self.changes + 1);
        self.plans.push(BegunPlan { id: self.begun, inputs, output, key_range, relieves_level_0, is_paused: false });
        self.begun
    }

    /// Whether a running compaction may put a table into `key_range` of `run_id`.
    pub(crate) fn writes_into(&self, run_id: RunId, key_range: &KeyRange) -> bool {
        self.plans.iter().any(|begun| begun.output == run_id && begun.key_range.overlaps(key_range))
    }

    /// Records the end of compaction `id`, installed or not.
    pub(crate) fn end(&mut self, id: u64) {
        let Some(at) = self.plans.iter().position(|begun| begun.id == id) else { return };
        self.changes += 1;
        for input in self.plans.swap_remove(at).inputs {
            self.busy.remove(&input);
        }
    }

    /// Records that compaction `id` has failed and does no work until it ends.
    pub(crate) fn pause(&mut self, id: u64) {
        self.changes += 1;
        self.plans.iter_mut().filter(|begun| begun.id == id).for_each(|begun| begun.is_paused = true);
    }

    /// Whether a compaction that takes tables from level 0 is running or paused.
    pub(crate) fn takes_level_0(&self) -> bool {
        self.plans.iter().any(|begun| begun.relieves_level_0)
    }

    /// Whether a compaction that takes tables from level 0 is running and not paused.
    pub(crate) fn relieves_level_0(&self) -> bool {
        self.plans.iter().any(|begun| begun.relieves_level_0 && !begun.is_paused)
    }

    pub(crate) fn is_at_work(&self) -> bool {
        self.is_at_work_upto(self.begun)
    }

    /// Whether a compaction with number `last` or a lower one is running and not paused.
    pub(crate) fn is_at_work_upto(&self, last: u64) -> bool {
        self.plans.iter().any(|begun| begun.id <= last && !begun.is_paused)
    }

    pub(crate) fn last_begun(&self) -> u64 {
        self.begun
    }

    /// Whether a compaction within level 0 is running and not paused.
    pub(crate) fn writes_level_0(&self) -> bool {
        self.plans.iter().any(|begun| begun.relieves_level_0 && begun.output.level == 0 && !begun.is_paused)
    }

    /// Keeps workers from continuing the compaction of compact pointer `id`, until the pointer is released.
    pub(crate) fn claim(&mut self, id: u64) {
        self.changes += 1;
        self.claimed.insert(id);
    }

    pub(crate) fn release(&mut self, id: u64) {
        self.changes += 1;
        self.claimed.remove(&id);
    }

    /// Whether a caller is continuing the compaction of compact pointer `id`.
    pub(crate) fn is_claimed(&self, id: u64) -> bool {
        self.claimed.contains(&id)
    }

    /// Whether nothing has changed since the copy `before` was made. Then a plan that was made with the copy may begin. Its inputs still exist, since
    /// only the end of a compaction or an ingest removes tables, and a flush adds no table between them and the output.
    pub(crate) fn is_as(&self, before: &InProgress) -> bool {
        (self.changes, self.damage.changes()) == (before.changes, before.damage.changes())
    }

    pub(crate) fn is_unused(&self) -> bool {
        self.begun == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.plans.len()
    }

    /// Whether table `number` is the input of a running compaction.
    fn is_busy(&self, number: u64) -> bool {
        self.busy.contains(&number)
    }

    /// Whether table `number` may be an input of a new compaction: no other compaction has it, and it is not avoided as damaged.
    pub(crate) fn is_free(&self, number: u64) -> bool {
        !self.is_busy(number) && !self.damage.is_avoided(number)
    }

    /// Whether all tables are free.
    pub(crate) fn is_idle(&self) -> bool {
        self.busy.is_empty() && self.damage.is_empty()
    }

    /// Whether `plan` can begin now.
    pub(crate) fn allows(&self, plan: &Plan) -> bool {
        !self.conflicts_with(plan) && !plan.tables().any(|table| self.damage.is_avoided(table))
    }

    /// Whether `plan` has to wait for a running compaction.
    pub(crate) fn conflicts_with(&self, plan: &Plan) -> bool {
        let meets = |begun: &BegunPlan| begun.output == plan.output && begun.key_range.overlaps(&plan.key_range);
        plan.tables().any(|table| self.is_busy(table)) || self.plans.iter().any(meets)
    }
}
