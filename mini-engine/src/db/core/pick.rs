//! Picks compactions without the write lock, and checks whether one can relieve level 0.

use std::sync::{Arc, MutexGuard};

use super::state::{Core, State};
use crate::compaction::{Context, Plan, Work, pick};
use crate::error::{Error, Result};
use crate::manifest::{KeyspaceSet, Version};

/// The plan that `pick` chooses for `work`; `None` if no work is wanted. The current view contains the plan's inputs.
///
/// Picking takes time in proportion to the number of tables, and writers need the lock meanwhile. So `pick` runs on copies, without the lock, and
/// runs again if the originals have changed when the lock is taken again. A flush does not invalidate a plan: its table is newer than all tables of
/// the plan. If nothing was picked, a flush, or the drop of a keyspace, may have made a compaction due.
pub(crate) fn pick_unlocked<'a, W: Copy + PartialEq>(
    core: &'a Core,
    mut state: MutexGuard<'a, State>,
    work: impl Fn(&State) -> Option<W>,
    pick: impl Fn(&Context<'_>, W) -> Option<Plan>,
) -> (MutexGuard<'a, State>, Option<Plan>) {
    loop {
        let Some(wanted) = work(&state) else { return (state, None) };
        // This copies no view, because a view would hold the files of tables that a compaction replaces meanwhile.
        let inputs @ (version, keyspaces, is_scanned_often, is_tight) = &now(core);
        let in_progress = state.compacting.in_progress.clone();
        drop(state);
        let context = Context {
            version,
            options: &core.store.options,
            in_progress: &in_progress,
            is_scanned_often: *is_scanned_often,
            is_tight: *is_tight,
            keyspaces,
            instant: core.snapshots.oldest_instant(|| core.clock.now()),
        };
        let plan = pick(&context, wanted);
        state = core.lock();
        if work(&state) != Some(wanted) || !state.compacting.in_progress.is_as(&in_progress) {
            continue;
        }
        match plan {
            Some(plan) => return (state, Some(plan)),
            None if is_as(core, inputs) => return (state, None),
            None => {}
        }
    }
}

/// The version, the keyspaces, whether many scans have merged the version's runs, and whether the database is tight.
type Picked = (Arc<Version>, Arc<KeyspaceSet>, bool, bool);

fn now(core: &Core) -> Picked {
    let view = core.view.get();
    (view.version.clone(), core.store.keyspaces(), view.scans.is_at_limit(), core.is_tight())
}

/// Whether nothing has changed since the copies were made.
fn is_as(core: &Core, (version, keyspaces, is_scanned_often, is_tight): &Picked) -> bool {
    let (version_now, keyspaces_now, is_scanned_now, is_tight_now) = now(core);
    let are_same = Arc::ptr_eq(&version_now, version) && Arc::ptr_eq(&keyspaces_now, keyspaces);
    are_same && (is_scanned_now, is_tight_now) == (*is_scanned_often, *is_tight)
}

impl Core {
    /// Fails if level 0 is full and waiting would not help, because compactions cannot relieve it. A compaction that lacks space or file handles is
    /// worth waiting for, like a flush (rule 8). So is a compaction that is running or can begin: a compaction of deeper levels may be the obstacle.
    /// The remaining causes are damaged tables that all of level 0 overlaps, and other permanent failures. Releases the lock while it makes a plan
    /// for this check.
    pub(crate) fn check_not_stalled<'a>(&'a self, state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, Result<()>) {
        let may_be_stalled = |state: &State| self.cause_of_stall(state).is_some().then_some(Work::Level0);
        let (state, plan) = pick_unlocked(self, state, may_be_stalled, pick);
        let stalled = match self.cause_of_stall(&state).filter(|_| plan.is_none()) {
            Some(cause) => Err(Error::Stalled { tables: self.view.get().version.runs(0).len(), cause: cause.into() }),
            None => Ok(()),
        };
        (state, stalled)
    }

    /// The cause that keeps compactions from relieving level 0, if level 0 is full and waiting would not end it.
    fn cause_of_stall(&self, state: &State) -> Option<Error> {
        let failure = state.compacting.level_0_error.as_ref();
        let is_waited_for = state.compacting.in_progress.is_at_work() || failure.is_some_and(Error::is_transient);
        if is_waited_for || self.level_0_has_room() {
            return None;
        }
        state.compacting.in_progress.damage.cause().or(failure).cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::Path;

    use super::*;
    use crate::db::admin::{drop_keyspace, keyspace};
    use crate::db::recovery::open;
    use crate::disk::MemFs;
    use crate::options::Options;

    #[test]
    fn nothing_is_due_only_if_no_keyspace_was_dropped_while_a_plan_was_looked_for() {
        // Catches a worker that finds nothing to do before a drop, and sleeps after it: the keyspace would take its space until the next flush.
        let (core, _) = open(Arc::new(MemFs::default()), Path::new("/db"), Options::default()).unwrap();
        keyspace(&core, "a", None).unwrap();
        let found = RefCell::new(Vec::new());
        let pick = |context: &Context<'_>, ()| {
            let is_there = context.keyspaces.named("a").is_some();
            found.borrow_mut().push(is_there);
            if is_there {
                drop_keyspace(&core, "a").unwrap();
            }
            None
        };
        let (state, plan) = pick_unlocked(&core, core.lock(), |_| Some(()), pick);
        drop(state);
        assert!(plan.is_none());
        assert_eq!(found.into_inner(), [true, false]);
    }
}
