//! Merges on demand: all that lies within a range of keys, on the caller's thread.

use std::ops::Bound;

use crate::compaction::{Context, ManualCompaction, pick_manual};
use crate::db::background::{Job, end, fail_if_unsafe, flush_all, run_job};
use crate::db::core::{Core, fail_on_unwind};
use crate::error::Result;

/// Merges all that lies within `bounds` now down to one run, on the lowest level that holds any of it.
pub(crate) fn compact_range(core: &Core, bounds: (Bound<Vec<u8>>, Bound<Vec<u8>>)) -> Result<()> {
    flush_all(core)?;
    let range = ManualCompaction { bounds, upto: core.visible(), made_from: core.store.numbers.next() };
    while let Some(mut job) = begin_within(core, &range)? {
        let result = fail_on_unwind(core, || run_job(core, &mut job));
        let mut state = core.lock();
        end(core, &mut state, &job);
        result.inspect_err(|error| fail_if_unsafe(core, &state, error))?;
    }
    Ok(())
}

/// Begins the next merge of `range` once no merge in progress conflicts with it; `None` if the range is done.
fn begin_within(core: &Core, range: &ManualCompaction) -> Result<Option<Job>> {
    let mut state = core.lock();
    // Workers begin nothing meanwhile, or there might always be another merge in the way.
    state.ranges_waiting += 1;
    let begun = loop {
        if let Err(error) = core.check_writable(&state) {
            break Err(error);
        }
        let view = core.view.load_full();
        let context = Context { version: &view.version, options: &core.store.options, in_progress: &state.in_progress };
        let Some(plan) = pick_manual(&context, range) else { break Ok(None) };
        if !state.in_progress.conflicts_with(&plan) {
            break Ok(Some(Job::begin(&mut state, plan, view)));
        }
        state = core.wait(&core.room, state);
    };
    state.ranges_waiting -= 1;
    core.work.notify_all();
    begun
}
