//! Runs the merge that the version needs, and puts its output in the place of its inputs.
//!
//! Order (rule 6): output synced, directory synced, edit synced, view installed, inputs unlinked. Readers that pinned
//! an older view have the inputs open and keep them (rule 14). After an error the inputs are untouched (rules 8, 9): an
//! input that could not be read is never dropped.

use super::state::Core;
use crate::compaction::{pick, run};
use crate::error::Result;

/// Whether the current version needs a merge.
pub(super) fn is_needed(core: &Core) -> bool {
    pick(&core.view.load().version, &core.store.options).is_some()
}

/// Runs one merge, if one is needed and the engine does not shut down meanwhile.
pub(super) fn compact_once(core: &Core) -> Result<()> {
    let view = core.view.load_full();
    let Some(plan) = pick(&view.version, &core.store.options) else { return Ok(()) };
    let snapshots = core.snapshots.live();
    // Flushes may install newer tables meanwhile; nothing but this thread removes tables, so the inputs stay.
    let Some(merged) = run(&core.store, &plan, &view.tables, &snapshots, &core.cancel)? else { return Ok(()) };
    core.install(merged.edit, merged.output)?;
    for number in plan.inputs {
        core.store.remove(number);
    }
    Ok(())
}
