//! Runs the compactions that the version needs, and replaces their inputs by their outputs.
//!
//! Order (rule 6): outputs are synced, then the directory, then the edit; the view is installed; the inputs are unlinked. Readers
//! that pinned an older view keep the inputs open (rule 14). An error leaves the inputs untouched, so an input that could not be
//! read is never dropped (rules 8, 9).
//!
//! Several compactions may run at once. A plan begins only if, under the write lock, nothing has changed since it was made, and it conflicts with no
//! other plan in progress. So the inputs of a compaction stay in the version until it installs its result.

use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use crate::compaction::{OutputSizes, Plan, Work, filter_bits_of_merge, may_have_dropped, pick, run};
use crate::db::core::{Core, Phase, State, View, fail_on_unwind, pick_unlocked};
use crate::error::{Error, Result};
use crate::lock::wait;
use crate::manifest::{FileKind, KeyspaceSet, Version};
use crate::table::OpenRun;

type LockedState<'a> = MutexGuard<'a, State>;

/// A compaction that is recorded as in progress.
pub(crate) struct CompactionJob {
    id: u64,
    /// Recorded as a whole, although only its oldest part runs if space is short ([`Plan::leave_newest`]).
    pub(crate) plan: Plan,
    /// Held until the compaction ends. A whole view would also hold the files of all other tables, some of which another compaction may replace.
    inputs: Vec<OpenRun>,
    version: Arc<Version>,
    /// The compact pointer that this compaction has left.
    pub(crate) pointer: Option<u64>,
}

impl CompactionJob {
    /// Records `plan` as in progress; `view` contains its inputs. The caller must end it with [`end_compaction`].
    pub(crate) fn begin(state: &mut State, plan: Plan, view: &View) -> CompactionJob {
        let id = state.compacting.in_progress.begin(&plan);
        CompactionJob { id, inputs: view.inputs_of(&plan), version: view.version.clone(), plan, pointer: None }
    }

    /// The table that this compaction would rewrite in place without dropping any entry; `None` if the compaction is useful.
    pub(crate) fn rewrites_nothing(&self, keyspaces: &KeyspaceSet) -> Option<u64> {
        let [input] = &self.plan.inputs[..] else { return None };
        let [number] = input.tables[..] else { return None };
        let stays = (input.level, input.run) == (self.plan.output.level, self.plan.output.run);
        let table = self.inputs.first().filter(|_| stays)?.tables().first()?;
        if may_have_dropped(keyspaces, table.smallest(), table.largest()) {
            return None;
        }
        // A table that cannot be read is compacted anyway, so that the caller gets the error.
        table.is_minimal().unwrap_or(false).then_some(number)
    }
}

/// Begins the most needed compaction of `work`, if one is needed. Releases the lock meanwhile; the caller ends the compaction with
/// [`end_compaction`].
pub(super) fn begin<'a>(
    core: &'a Core,
    state: LockedState<'a>,
    work: Work,
) -> (LockedState<'a>, Option<CompactionJob>) {
    let work = |state: &State| {
        // The thread that is reserved for level 0 takes level 0 first, so that the others are free for deeper levels.
        let work = if work == Work::Any && !state.compacting.in_progress.takes_level_0() { Work::Deeper } else { work };
        (state.compacting.ranges_waiting == 0 && !is_others_turn(core, state)).then_some(work)
    };
    let (mut state, due) = pick_unlocked(core, state, work, pick);
    let job = due.map(|plan| CompactionJob::begin(&mut state, plan, &core.view.get()));
    (state, job)
}

/// Whether another compaction runs, and none may begin beside it: while space is short, one runs at a time, because each takes space.
pub(crate) fn is_others_turn(core: &Core, state: &State) -> bool {
    core.is_tight() && state.compacting.in_progress.is_at_work()
}

/// The number of running compactions, and whether another one is due.
pub(crate) fn progress(core: &Core) -> (u64, bool) {
    let (state, is_due) = is_due(core, core.lock());
    (state.compacting.in_progress.len() as u64, is_due)
}

/// Whether any compaction is due besides the running ones. Releases the lock meanwhile.
fn is_due<'a>(core: &'a Core, state: LockedState<'a>) -> (LockedState<'a>, bool) {
    let (state, due) = pick_unlocked(core, state, |_| Some(Work::Any), pick);
    // After a failure no compaction runs, but entries continue to expire.
    let is_due = due.is_some() && core.check_usable().is_ok();
    if is_due {
        // Entries may have expired since a worker last looked for work; nothing else wakes it for that.
        core.work.notify_all();
    }
    (state, is_due)
}

/// Records the end of a compaction, installed or not. Wakes all threads that wait for a compaction to end.
pub(crate) fn end_compaction(core: &Core, state: &mut State, job: &CompactionJob) {
    state.compacting.in_progress.end(job.id);
    core.wake_all();
}

/// Runs a compaction to its end, unless the engine shuts down meanwhile. On return the files of its inputs are removed, except those that readers
/// still hold.
pub(crate) fn run_job(core: &Core, job: &mut CompactionJob) -> Result<()> {
    let compacted = core.with_reserve(|| compact(core, job));
    job.inputs.clear();
    job.pointer = compacted?;
    // The next compaction may need the space of the inputs. Readers that are pinned, of any database, unpin soon.
    core.view.free_all_retired();
    core.remove_obsolete();
    Ok(())
}

/// The number of the compact pointer that this compaction leaves.
fn compact(core: &Core, CompactionJob { plan, inputs, version, .. }: &CompactionJob) -> Result<Option<u64>> {
    let (begun, is_tight) = (Instant::now(), core.is_tight());
    let (mut plan, mut inputs) = (plan.clone(), inputs.clone());
    if is_tight {
        // The plan may have been made before space was short.
        inputs.drain(..plan.leave_newest(version));
    }
    // Read after the view is loaded: a snapshot that is registered later sees no version older than those visible now (rule 16).
    let (snapshots, instants) = core.snapshots.live(|| core.clock.now());
    let filter_bits = filter_bits_of_merge(&core.store.options, version, &plan);
    let sizes = if is_tight { OutputSizes::small } else { OutputSizes::of };
    let outputs = (sizes(&core.store.options, version), filter_bits);
    let Some(done) = run(&core.store, &plan, outputs, &inputs, (&snapshots, &instants), &core.cancel)? else {
        return Ok(None);
    };
    let (read, written) = (done.read_bytes(), done.written_bytes());
    let from_level_0 = done.edit.stats.levels[0].read;
    let pointer = done.edit.pointers.first().map(|pointer| pointer.id);
    let Plan { action, output, .. } = &plan;
    tracing::debug!(?action, level = output.level, inputs = plan.tables().count(), read, written, "compacted tables");
    core.install(done.edit, done.outputs, |counters| {
        counters.compactions.add(1);
        counters.compaction_bytes_read.add(read);
        counters.compaction_bytes_written.add(written);
    })?;
    done.obsolete.iter().for_each(|table| table.set_obsolete());
    let mut state = core.lock();
    // These tables are obsolete, so the compaction has read them to their ends. A piece may have read only part of its other inputs, and a move reads
    // none.
    state.compacting.in_progress.damage.forget(done.obsolete.iter().map(|table| table.number()));
    if state.compacting.in_progress.damage.is_empty() {
        // A caller's compaction may have completed the failed one: then no worker needs to try it again.
        let is_mended = |error: &mut Error| error.unreadable_file().is_some();
        state.compacting.error.take_if(is_mended);
        state.compacting.level_0_error.take_if(is_mended);
    }
    // A compaction within level 0 removes no bytes from level 0.
    if from_level_0 > 0 && plan.output.level > 0 {
        state.controller.compacted(from_level_0, begun.elapsed());
    }
    Ok(pointer)
}

/// Compacts small tables of level 0 among themselves on the caller's thread, as long as such a compaction is due. This is the last step before the
/// workers end. Otherwise each of many short sessions would leave a table, and none would last long enough to compact them. Waits for a worker that
/// runs such a compaction; each takes about as long as a flush. A failure changes nothing, and leaves the rest to the next session.
pub(crate) fn settle_level_0(core: &Core) {
    while let Some(mut job) = begin_within_level_0(core) {
        let result = fail_on_unwind(core, || run_job(core, &mut job));
        let mut state = core.lock();
        let outcome = note_outcome(core, &mut state, &job, result);
        end_compaction(core, &mut state, &job);
        if outcome != Outcome::Installed {
            return;
        }
    }
}

fn begin_within_level_0(core: &Core) -> Option<CompactionJob> {
    let mut state = core.lock();
    loop {
        core.check_usable().ok().filter(|()| state.phase != Phase::Stopped)?;
        if !state.compacting.in_progress.writes_level_0() {
            break;
        }
        state = wait(&core.room, state);
    }
    let (mut state, due) = pick_unlocked(core, state, |_| Some(Work::Level0), pick);
    let small = |plan: &Plan| plan.output.level == 0 && plan.bytes <= core.store.options.memtable_bytes as u64;
    due.filter(small).map(|plan| CompactionJob::begin(&mut state, plan, &core.view.get()))
}

/// The next step of a worker after a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Installed,
    /// An input cannot be read: later compactions avoid that table.
    GoAround,
    TryAgainLater,
}

/// Records the result of a compaction, for the threads that wait for it and for later compactions. The caller ends the compaction.
pub(super) fn note_outcome(core: &Core, state: &mut State, job: &CompactionJob, result: Result<()>) -> Outcome {
    let relieves = job.plan.relieves_level_0();
    let Err(error) = result else {
        state.compacting.error = None;
        if relieves {
            state.compacting.level_0_error = None;
        }
        return Outcome::Installed;
    };
    tracing::warn!(%error, "a compaction failed; its inputs stay");
    fail_if_unsafe(core, state, &error);
    if relieves {
        state.compacting.level_0_error = Some(error.clone());
    }
    state.compacting.error = Some(error.clone());
    if note_damage(state, job, &error) {
        return Outcome::GoAround;
    }
    state.compacting.in_progress.pause(job.id);
    Outcome::TryAgainLater
}

/// Records the damage if the compaction failed because of one of its inputs, which later compactions then avoid; returns whether it did.
fn note_damage(state: &mut State, job: &CompactionJob, error: &Error) -> bool {
    let Some(file) = error.unreadable_file() else { return false };
    let kind = file.file_name().map(FileKind::of);
    // If an output cannot be read back, the inputs may still be sound.
    let Some(number) = job.plan.tables().find(|number| kind == Some(FileKind::Table(*number))) else { return false };
    state.compacting.in_progress.damage.note(number, file.to_path_buf(), error.clone(), Instant::now());
    true
}

/// After a sync that failed for good, the contents of the device are unknown: the engine is read-only from then on. After any other failure of a
/// compaction the state is unchanged.
pub(crate) fn fail_if_unsafe(core: &Core, state: &State, error: &Error) {
    if matches!(error, Error::Io { op: "sync", .. }) && !error.is_transient() {
        core.fail_locked(state, error);
    }
}

/// Waits until no compaction is due or running; fails if any work remains undone.
pub(crate) fn wait_idle(core: &Core) -> Result<()> {
    let mut state = core.lock();
    loop {
        // `is_due` comes first, because it releases the lock. The later checks stay valid as long as the lock is held.
        let mut is_due = true;
        if state.compacting.in_progress.len() == 0 {
            (state, is_due) = self::is_due(core, state);
        }
        core.check_usable()?;
        if state.phase != Phase::Open {
            return Err(Error::Closed);
        }
        if let Some(error) = &state.compacting.error {
            return Err(error.clone());
        }
        if state.compacting.in_progress.len() == 0 && !is_due {
            return state.compacting.in_progress.damage.cause().map_or(Ok(()), |cause| Err(cause.clone()));
        }
        state = wait(&core.room, state);
    }
}
