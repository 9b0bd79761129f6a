//! Runs the merges that the version needs, and replaces their inputs by their outputs.
//!
//! Order (rule 6): outputs are synced, then the directory, then the edit; the view is installed; the inputs are unlinked. Readers
//! that pinned an older view keep the inputs open (rule 14). An error leaves the inputs untouched, so an input that could not be
//! read is never dropped (rules 8, 9).
//!
//! Several merges may run at once. A plan is made and noted as in progress in one step under the write lock, and no plan is made
//! that conflicts with a noted one. So the inputs of a merge stay in the version until it installs.

use std::sync::Arc;
use std::time::Instant;

use crate::compaction::{Context, Plan, filter_bits_of_merge, pick, run};
use crate::db::core::{Core, Phase, State, View};
use crate::error::{Error, Result};

/// A merge that is noted as in progress.
pub(crate) struct Job {
    id: u64,
    pub(crate) plan: Plan,
    /// The view that it was planned on: it holds the inputs, until they are merged.
    view: Option<Arc<View>>,
}

impl Job {
    /// Notes `plan`, made on `view`, as running. The holder of the lock ends it by [`end`].
    pub(crate) fn begin(state: &mut State, plan: Plan, view: Arc<View>) -> Job {
        let id = state.in_progress.begin(&plan);
        Job { id, plan, view: Some(view) }
    }
}

/// Begins the merge that is needed most, if one is. The holder of the lock ends it by [`end`].
pub(super) fn begin(core: &Core, state: &mut State) -> Option<Job> {
    if state.ranges_waiting > 0 {
        return None;
    }
    let view = core.view.load_full();
    let plan = due(core, state, &view)?;
    Some(Job::begin(state, plan, view))
}

/// The merge that `view` needs most beside those under way.
fn due(core: &Core, state: &State, view: &View) -> Option<Plan> {
    pick(&Context { version: &view.version, options: &core.store.options, in_progress: &state.in_progress })
}

/// How many merges are under way, and whether another is due.
pub(crate) fn progress(core: &Core) -> (u64, bool) {
    let state = core.lock();
    (state.in_progress.len() as u64, due(core, &state, &core.view.load()).is_some())
}

/// Notes the end of a merge, installed or not. Wakes everything that waits for merges to end or to make way.
pub(crate) fn end(core: &Core, state: &mut State, job: &Job) {
    state.in_progress.end(job.id);
    core.wake_all();
}

/// Runs a merge to its end, unless the engine shuts down meanwhile. Afterwards the files of its inputs are gone, but for those that
/// readers still have.
pub(crate) fn run_job(core: &Core, job: &mut Job) -> Result<()> {
    let Some(view) = job.view.take() else { return Ok(()) };
    merge(core, &job.plan, &view)?;
    drop(view);
    core.store.tables.remove_obsolete();
    Ok(())
}

fn merge(core: &Core, plan: &Plan, view: &View) -> Result<()> {
    let begun = Instant::now();
    // After the view: a snapshot that is registered later sees nothing older than what is visible now (rule 16).
    let snapshots = core.snapshots.live();
    let filter_bits = filter_bits_of_merge(&core.store.options, &view.version, plan);
    let tables = view.tables();
    let Some(done) = run(&core.store, plan, filter_bits, tables, &snapshots, &core.cancel)? else { return Ok(()) };
    let (read, written) = (done.read_bytes(), done.written_bytes());
    let from_level_0 = done.edit.stats.levels[0].read;
    let Plan { action, output, .. } = plan;
    tracing::debug!(?action, level = output.level, inputs = plan.tables().count(), read, written, "merged tables");
    core.install(done.edit, &done.outputs, |counters| {
        counters.compactions.add(1);
        counters.compaction_bytes_read.add(read);
        counters.compaction_bytes_written.add(written);
    })?;
    done.obsolete.iter().for_each(|table| table.set_obsolete());
    if from_level_0 > 0 {
        core.lock().controller.merged(from_level_0, begun.elapsed());
    }
    Ok(())
}

/// A sync that failed for good leaves it unknown what is on the device: the engine is read-only from then on. After any
/// other failure of a merge all is as before.
pub(crate) fn fail_if_unsafe(core: &Core, state: &State, error: &Error) {
    if matches!(error, Error::Io { op: "sync", .. }) && !error.is_transient() {
        core.fail_locked(state, error);
    }
}

/// Waits until no merge is due or under way.
pub(crate) fn wait_idle(core: &Core) -> Result<()> {
    let mut state = core.lock();
    loop {
        core.check_usable()?;
        if state.phase != Phase::Open {
            return Err(Error::Closed);
        }
        if let Some(error) = &state.compaction_error {
            return Err(error.clone());
        }
        if state.in_progress.len() == 0 && due(core, &state, &core.view.load()).is_none() {
            return Ok(());
        }
        state = core.wait(&core.room, state);
    }
}
