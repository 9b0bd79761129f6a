//! Creates the log for the next rotation (`core/next_log.rs`), and maintains the reserve (`core/reserve.rs`).

use std::sync::MutexGuard;
use std::time::Instant;

use super::backoff::{Backoff, FLUSH_MAX_BACKOFF};
use crate::db::core::{Core, Phase, State, create_log};
use crate::db::write::rotate;
use crate::error::Result;
use crate::lock::{wait, wait_timeout};
use crate::types::Durability;
use crate::wal;

/// The maximum space that a log gets in advance, in memtables.
const MAX_MEMTABLES: u64 = 2;

/// The space that a log gets in advance, in bytes, and its durability.
type Reserve = (u64, Durability);

enum Task {
    Make(Reserve),
    TakeReserve,
}

/// The time at which a tight database is checked next.
struct NextLook {
    at: Option<Instant>,
    backoff: Backoff,
}

/// Creates a log whenever one is wanted. If that fails, waiting writers get the error. When the loop ends, it cuts the unused space off the log,
/// since the next open would have to read it.
pub(super) fn log_loop(core: &Core) {
    let mut look = NextLook { at: None, backoff: Backoff::up_to(FLUSH_MAX_BACKOFF) };
    while let Some(task) = begin(core, &mut look) {
        match task {
            Task::Make(reserve) => {
                end(core, core.with_handles(|| core.with_reserve(|| make(core, reserve))));
            }
            Task::TakeReserve => core.take_reserve(),
        }
    }
    core.lock().logs.active.release_space();
}

/// Waits until there is something to do; `None` if the thread must end.
fn begin(core: &Core, look: &mut NextLook) -> Option<Task> {
    let mut state = core.lock();
    while state.phase != Phase::Stopped {
        if core.check_usable().is_ok() {
            if state.logs.next.attempts.begin() {
                return Some(Task::Make(reserve(core, &state)));
            }
            if !core.is_reserve_in_use() && state.cover.attempts.begin() {
                return Some(Task::TakeReserve);
            }
        }
        state = look.wait(core, state);
    }
    None
}

impl NextLook {
    /// Waits for work. While the database is tight, it sometimes flushes what it has, since that may free space, and tries to take the reserve.
    fn wait<'a>(&mut self, core: &'a Core, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if !core.is_tight() || state.phase != Phase::Open || core.check_usable().is_err() {
            (self.at, _) = (None, self.backoff.reset());
            return wait(&core.work, state);
        }
        let at = *self.at.get_or_insert_with(|| self.backoff.until());
        if let Some(left) = at.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            return wait_timeout(&core.work, state, left);
        }
        self.at = None;
        state.cover.want(0);
        let view = core.view.get();
        if view.frozen.is_empty() && !view.active.table.is_empty() && core.level_0_has_room() {
            // If this fails, a writer has failed before and ended all writing.
            if let Ok(false) = rotate(core, &mut state) {
                state.logs.next.want();
            }
        }
        state
    }
}

/// The expected size of the active log when its memtable is full, estimated from its present size; or the present size, if memtables are flushed
/// before they are half full. While the database closes, the log gets no space.
fn reserve(core: &Core, state: &State) -> Reserve {
    let (log, full) = (&state.logs.active, core.store.options.memtable_bytes);
    if state.phase != Phase::Open {
        return (0, Durability::Buffered);
    }
    let used = core.view.get().active.table.memory_usage();
    let used = if used < full / 2 { full } else { used.min(full) };
    let durability = if log.segment().is_synced_at_all() { Durability::Synced } else { Durability::Buffered };
    (log.expected_end(used, full).min(MAX_MEMTABLES * full as u64), durability)
}

fn make(core: &Core, (bytes, durability): Reserve) -> Result<wal::Writer> {
    let bytes = if core.is_tight() { 0 } else { bytes };
    let number = core.store.numbers.allocate()?;
    let mut log = create_log(core, number)?;
    // A log without frames does not matter to the next open, even if it cannot be removed.
    log.reserve(bytes, durability).inspect_err(|_| core.store.unlink(&core.dir().join(wal::file_name(number))))?;
    Ok(log)
}

fn end(core: &Core, made: Result<wal::Writer>) {
    let mut state = core.lock();
    if let Err(error) = &made {
        tracing::warn!(%error, "could not create a log");
        if !error.is_transient() {
            core.fail_locked(&state, error);
        }
    }
    state.logs.next.end(made);
    core.room.notify_all();
}
