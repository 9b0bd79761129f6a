//! Writes that depend on existing entries: compare-and-swap, and taking the first or the last entry.
//!
//! The existing entries are read twice. The first read runs without the write lock, where it may take long: it decides what is written, and brings
//! the blocks into the cache. The second read is the condition of the write, under the lock, so that no other write can change its result before
//! the write.
//!
//! A pop starts reading at the end that an earlier pop has noted (`core/entry_bounds.rs`), and notes its own result there. So pops do not walk over
//! each other's tombstones.

use std::sync::Arc;

use super::core::{Core, Edge, EntryBounds};
use super::read::{Iter, Pinned, read_now};
use super::write::write_if;
use crate::error::Result;
use crate::types::{CompareAndSwapError, Slice, WriteBatch};

/// Sets `key` to `new` if its value is `expected`; `None` means no value.
pub(crate) fn compare_and_swap(
    core: &Core,
    key: &[u8],
    expected: Option<&[u8]>,
    new: Option<&[u8]>,
) -> Result<std::result::Result<(), CompareAndSwapError>> {
    let mut batch = WriteBatch::new();
    match new {
        Some(value) => batch.insert(key, value)?,
        None => batch.remove(key)?,
    }
    loop {
        let current = read_now(core, |point| point.get(key))?;
        if current.as_deref() != expected {
            return Ok(Err(CompareAndSwapError { current }));
        }
        let is_unchanged = |_: &mut EntryBounds| Ok(read_now(core, |point| point.get(key))?.as_deref() == expected);
        if write_if(core, &batch, core.store.options.durability, &is_unchanged)? {
            return Ok(Ok(()));
        }
    }
}

/// The first or the last of all entries, all of which lie within `bounds`.
fn entry_within(core: &Arc<Core>, bounds: &EntryBounds, edge: Edge) -> Result<Option<(Slice, Slice)>> {
    let mut iter = Iter::new(Pinned::now(core), bounds.as_range());
    match edge {
        Edge::First => iter.next(),
        Edge::Last => iter.next_back(),
    }
    .transpose()
}

pub(crate) fn entry_at(core: &Arc<Core>, edge: Edge) -> Result<Option<(Slice, Slice)>> {
    entry_within(core, &EntryBounds::default(), edge)
}

/// Removes the entry at an end, and returns it.
pub(crate) fn pop(core: &Arc<Core>, edge: Edge) -> Result<Option<(Slice, Slice)>> {
    loop {
        let bounds = core.lock().entry_bounds.clone();
        let found = match entry_within(core, &bounds, edge)? {
            // Meanwhile an entry may have been stored outside of these bounds, before the last entry within them was removed.
            None if bounds != EntryBounds::default() => entry_at_locked(core, edge)?,
            found => found,
        };
        let Some(entry) = found else { return Ok(None) };
        let mut batch = WriteBatch::new();
        batch.remove(&entry.0)?;
        let is_still_there = |bounds: &mut EntryBounds| {
            let is_there = entry_within(core, bounds, edge)?.as_ref() == Some(&entry);
            if is_there {
                bounds.set(edge, entry.0.clone());
            }
            Ok(is_there)
        };
        if write_if(core, &batch, core.store.options.durability, &is_still_there)? {
            return Ok(Some(entry));
        }
    }
}

/// The first or last entry at one moment: no write begins meanwhile.
fn entry_at_locked(core: &Arc<Core>, edge: Edge) -> Result<Option<(Slice, Slice)>> {
    let state = core.lock();
    core.wait_visible(state.last_seqno)?;
    entry_within(core, &state.entry_bounds, edge)
}
