//! Compactions on demand: of all entries within a range of keys, on the caller's thread.

use std::collections::HashSet;

use crate::compaction::{ManualCompaction, pick_manual};
use crate::db::background::{CompactionJob, end_compaction, fail_if_unsafe, flush_all, is_others_turn, run_job};
use crate::db::core::{Core, State, fail_on_unwind, pick_unlocked};
use crate::error::Result;
use crate::lock::wait;
use crate::types::OwnedBounds;

/// Compacts all present entries within `bounds` into one run, on the lowest level that holds any of them.
pub(crate) fn compact_range(core: &Core, bounds: OwnedBounds) -> Result<()> {
    flush_all(core)?;
    let (upto, made_from) = (core.visible(), first_number_since(core)?);
    let mut range = ManualCompaction { bounds, upto, made_from, minimal: HashSet::new() };
    let mut rest = Rest { core, pointer: None };
    while let Some(mut job) = begin_within(core, &range, &rest)? {
        if let Some(number) = job.rewrites_nothing(&core.store.keyspaces()) {
            range.minimal.insert(number);
            end_compaction(core, &mut core.lock(), &job);
            continue;
        }
        let result = fail_on_unwind(core, || run_job(core, &mut job));
        let mut state = core.lock();
        rest.take(&mut state, job.pointer);
        end_compaction(core, &mut state, &job);
        result.inspect_err(|error| fail_if_unsafe(core, &state, error))?;
    }
    Ok(())
}

/// A file number such that only tables of compactions planned from now on have it or a higher one. Waits for the running compactions, since they may
/// keep entries that no compaction has to keep any more.
fn first_number_since(core: &Core) -> Result<u64> {
    let mut state = core.lock();
    let last = state.compacting.in_progress.last_begun();
    loop {
        core.check_writable(&state)?;
        if !state.compacting.in_progress.is_at_work_upto(last) {
            return Ok(core.store.numbers.next());
        }
        state = wait(&core.room, state);
    }
}

/// The compact pointer of the last piece. No worker continues from it, because the caller's thread does. When `compact_range` returns, the whole
/// compaction is done, and the files of the inputs are removed. Only where space was short may workers continue a part that the range does not need.
struct Rest<'a> {
    core: &'a Core,
    pointer: Option<u64>,
}

impl Rest<'_> {
    /// Replaces the last pointer by another.
    fn take(&mut self, state: &mut State, pointer: Option<u64>) {
        if let Some(last) = std::mem::replace(&mut self.pointer, pointer) {
            state.compacting.in_progress.release(last);
        }
        if let Some(pointer) = pointer {
            state.compacting.in_progress.claim(pointer);
        }
    }
}

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        let core = self.core;
        self.take(&mut core.lock(), None);
        // After an error, some work may remain for the workers.
        core.wake_all();
    }
}

/// Begins the next compaction of `range` once it is its turn and no compaction in progress conflicts with it; `None` if the range is done.
fn begin_within(core: &Core, range: &ManualCompaction, rest: &Rest<'_>) -> Result<Option<CompactionJob>> {
    let mut state = core.lock();
    // Workers begin no compaction meanwhile; otherwise there might always be another conflicting one.
    state.compacting.ranges_waiting += 1;
    let begun = loop {
        let is_wanted = |state: &State| core.check_writable(state).is_ok().then_some(());
        let plan;
        (state, plan) = pick_unlocked(core, state, is_wanted, |context, ()| pick_manual(context, range, rest.pointer));
        let Some(plan) = plan else { break core.check_writable(&state).map(|()| None) };
        if !is_others_turn(core, &state) && !state.compacting.in_progress.conflicts_with(&plan) {
            break Ok(Some(CompactionJob::begin(&mut state, plan, &core.view.get())));
        }
        state = wait(&core.room, state);
    };
    state.compacting.ranges_waiting -= 1;
    core.work.notify_all();
    begun
}
