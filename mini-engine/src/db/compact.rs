//! Runs the merges that the version needs, and puts their outputs in the place of their inputs.
//!
//! Order (rule 6): outputs synced, directory synced, edit synced, view installed, inputs unlinked. Readers that pinned an
//! older view have the inputs open and keep them (rule 14). After an error the inputs are untouched (rules 8, 9): an input
//! that could not be read is never dropped.
//!
//! Several merges may run at once: a plan is made and noted as running in one step under the write lock, and no plan is
//! made that gets into the way of one that is noted. So the inputs of a merge stay in the version until it installs.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

use super::state::{Core, Phase, State, fail_on_unwind};
use super::view::View;
use super::{flush, write};
use crate::compaction::{Context, Plan, Range, filter_bits_of_merge, pick, pick_within, run};
use crate::error::{Error, Result};

/// A merge that is noted as running.
pub(super) struct Job {
    id: u64,
    pub(super) plan: Plan,
    /// The view that it was planned on: it holds the inputs.
    view: Arc<View>,
}

/// Begins the merge that is needed most, if one is. The holder of the lock ends it by [`end`].
pub(super) fn begin(core: &Core, state: &mut State) -> Option<Job> {
    if state.ranges_waiting > 0 {
        return None;
    }
    let view = core.view.load_full();
    let plan = due(core, state, &view)?;
    let id = state.running.begin(&plan);
    Some(Job { id, plan, view })
}

/// The merge that `view` needs most beside those under way.
fn due(core: &Core, state: &State, view: &View) -> Option<Plan> {
    pick(&Context { version: &view.version, options: &core.store.options, running: &state.running })
}

/// How many merges are under way, and whether another is due.
pub(super) fn progress(core: &Core) -> (u64, bool) {
    let state = core.lock();
    (state.running.len() as u64, due(core, &state, &core.view.load()).is_some())
}

/// Notes the end of a merge, installed or not. Wakes those who wait for merges, and those for whom it was in the way.
pub(super) fn end(core: &Core, state: &mut State, job: &Job) {
    state.running.end(job.id);
    core.wake_all();
}

/// Runs a merge to its end, unless the engine shuts down meanwhile.
pub(super) fn run_job(core: &Core, job: &Job) -> Result<()> {
    let begun = Instant::now();
    // After the view: a snapshot that is registered later sees nothing older than what is visible now (rule 16).
    let snapshots = core.snapshots.live();
    let filter_bits = filter_bits_of_merge(&core.store.options, &job.view.version, &job.plan);
    let tables = job.view.tables();
    let Some(done) = run(&core.store, &job.plan, filter_bits, tables, &snapshots, &core.cancel)? else { return Ok(()) };
    let (read, written) = (done.read_bytes(), done.written_bytes());
    let from_level_0 = done.edit.work.levels[0].read;
    let Plan { action, output, .. } = &job.plan;
    tracing::debug!(?action, level = output.level, inputs = job.plan.tables().count(), read, written, "merged tables");
    core.install(done.edit, &done.outputs, |counters| {
        counters.compactions.add(1);
        counters.compaction_bytes_read.add(read);
        counters.compaction_bytes_written.add(written);
    })?;
    for number in done.obsolete {
        core.store.remove(number);
    }
    if from_level_0 > 0 {
        core.lock().pace.merged(from_level_0, begun.elapsed());
    }
    Ok(())
}

/// A sync that failed for good leaves it unknown what is on the device: the engine is read-only from then on. After any
/// other failure of a merge all is as before.
pub(super) fn fail_if_unsafe(core: &Core, state: &State, error: &Error) {
    if matches!(error, Error::Io { op: "sync", .. }) && !error.is_transient() {
        core.fail_locked(state, error);
    }
}

/// Waits until no merge is due or under way.
pub(super) fn wait_idle(core: &Core) -> Result<()> {
    let mut state = core.lock();
    loop {
        core.check_usable()?;
        if state.phase != Phase::Open {
            return Err(Error::Closed);
        }
        if let Some(error) = &state.compaction_error {
            return Err(error.clone());
        }
        if state.running.len() == 0 && due(core, &state, &core.view.load()).is_none() {
            return Ok(());
        }
        state = core.wait(&core.room, state);
    }
}

/// Merges all that lies within `bounds` now down to one run, on the lowest level that holds any of it.
pub(super) fn compact_range(core: &Core, bounds: (Bound<Vec<u8>>, Bound<Vec<u8>>)) -> Result<()> {
    let log = write::freeze_active(core, Core::check_writable)?;
    flush::wait_flushed(core, log)?;
    let range = Range { bounds, upto: core.visible(), made_from: core.store.numbers.next() };
    while let Some(job) = begin_within(core, &range)? {
        let result = fail_on_unwind(core, || run_job(core, &job));
        let mut state = core.lock();
        end(core, &mut state, &job);
        result.inspect_err(|error| fail_if_unsafe(core, &state, error))?;
    }
    Ok(())
}

/// Begins the next merge of `range`, once none under way is in its way; `None` if there is nothing left to do.
fn begin_within(core: &Core, range: &Range) -> Result<Option<Job>> {
    let mut state = core.lock();
    // Workers begin nothing meanwhile, or there might always be another merge in the way.
    state.ranges_waiting += 1;
    let begun = loop {
        if let Err(error) = core.check_writable(&state) {
            break Err(error);
        }
        let view = core.view.load_full();
        let context = Context { version: &view.version, options: &core.store.options, running: &state.running };
        let Some(plan) = pick_within(&context, range) else { break Ok(None) };
        if !state.running.conflicts_with(&plan) {
            let id = state.running.begin(&plan);
            break Ok(Some(Job { id, plan, view }));
        }
        state = core.wait(&core.room, state);
    };
    state.ranges_waiting -= 1;
    core.work.notify_all();
    begun
}
