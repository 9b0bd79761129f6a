//! Writes that depend on what is there: compare-and-swap, and taking the first or the last entry.
//!
//! What they depend on is read twice. First without the write lock, where a read may take long: that decides what is written, and
//! it brings the blocks into the cache. Then as the condition of the write, which finds what no other write can change before it.

use std::sync::Arc;

use super::core::Core;
use super::read::{Iter, Pinned, ScanBounds, get_now};
use super::write::write_if;
use crate::error::Result;
use crate::types::{CompareAndSwapError, Slice, WriteBatch};

/// Sets `key` to `new` if its value is `expected`; `None` stands for no value.
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
        let current = get_now(core, key)?;
        if current.as_deref() != expected {
            return Ok(Err(CompareAndSwapError { current }));
        }
        let is_unchanged = || Ok(get_now(core, key)?.as_deref() == expected);
        if write_if(core, &batch, core.store.options.durability, &is_unchanged)? {
            return Ok(Ok(()));
        }
    }
}

/// Which end of the order.
#[derive(Clone, Copy)]
pub(crate) enum At {
    First,
    Last,
}

/// The entry at an end of all entries.
pub(crate) fn entry_at(core: &Arc<Core>, end: At) -> Result<Option<(Slice, Slice)>> {
    let mut iter = Iter::new(Pinned::now(core), ScanBounds::all());
    match end {
        At::First => iter.next(),
        At::Last => iter.next_back(),
    }
    .transpose()
}

/// Removes the entry at an end, and returns it.
pub(crate) fn pop(core: &Arc<Core>, end: At) -> Result<Option<(Slice, Slice)>> {
    loop {
        let Some(entry) = entry_at(core, end)? else { return Ok(None) };
        let mut batch = WriteBatch::new();
        batch.remove(&entry.0)?;
        let is_still_there = || Ok(entry_at(core, end)?.as_ref() == Some(&entry));
        if write_if(core, &batch, core.store.options.durability, &is_still_there)? {
            return Ok(Some(entry));
        }
    }
}
