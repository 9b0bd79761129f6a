//! Picks compactions without the write lock, and tells whether one can relieve level 0.

use std::sync::{Arc, MutexGuard};

use super::state::{Core, State};
use crate::compaction::{Context, Plan, Work, pick};
use crate::error::{Error, Result};

/// What `pick` chooses for the `work` that is wanted; nothing if none is. The current view has its inputs.
///
/// Picking takes time in proportion to the tables, and writers want the lock. So it is done on copies, without the lock, and done
/// again if anything that it depends on has changed when the lock is back. A flush does not matter to what was picked: its table is
/// newer than all that the plan takes. If nothing was picked, it may be what makes something due.
pub(crate) fn pick_unlocked<'a, W: Copy + PartialEq>(
    core: &'a Core,
    mut state: MutexGuard<'a, State>,
    work: impl Fn(&State) -> Option<W>,
    pick: impl Fn(&Context<'_>, W) -> Option<Plan>,
) -> (MutexGuard<'a, State>, Option<Plan>) {
    loop {
        let Some(wanted) = work(&state) else { return (state, None) };
        // Not the view: it would keep the files of tables that a compaction replaces meanwhile.
        let (version, in_progress) = (core.view.load().version.clone(), state.compacting.in_progress.clone());
        drop(state);
        let context = Context { version: &version, options: &core.store.options, in_progress: &in_progress };
        let plan = pick(&context, wanted);
        state = core.lock();
        if work(&state) != Some(wanted) || !state.compacting.in_progress.is_as(&in_progress) {
            continue;
        }
        match plan {
            Some(plan) => return (state, Some(plan)),
            None if Arc::ptr_eq(&core.view.load().version, &version) => return (state, None),
            None => {}
        }
    }
}

impl Core {
    /// Fails if level 0 is full, and what keeps compactions from relieving it is nothing that a wait would end.
    ///
    /// A compaction that wants space or file handles is waited for, as a flush is (rule 8). One that is at work, or can begin, is
    /// waited for too: one of deeper levels may be what is in the way. What is left is damage that all of level 0 overlaps, and other failures that are there to stay.
    /// Gives the lock away where that is asked of a plan.
    pub(crate) fn check_not_stalled<'a>(&'a self, state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, Result<()>) {
        let may_be_stalled = |state: &State| self.cause_of_stall(state).is_some().then_some(Work::Level0);
        let (state, plan) = pick_unlocked(self, state, may_be_stalled, pick);
        let stalled = match self.cause_of_stall(&state).filter(|_| plan.is_none()) {
            Some(cause) => Err(Error::Stalled { tables: self.view.load().version.runs(0).len(), cause: cause.into() }),
            None => Ok(()),
        };
        (state, stalled)
    }

    /// What keeps compactions from relieving level 0, if that is full and nothing that a wait would end is seen.
    fn cause_of_stall(&self, state: &State) -> Option<Error> {
        let failure = state.compacting.level_0_error.as_ref();
        let is_waited_for = state.compacting.in_progress.is_at_work() || failure.is_some_and(Error::is_transient);
        if is_waited_for || self.level_0_has_room() {
            return None;
        }
        state.compacting.in_progress.damage.cause().or(failure).cloned()
    }
}
