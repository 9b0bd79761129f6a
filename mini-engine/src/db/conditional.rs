//! Writes that depend on existing entries: compare-and-swap, another expiry, and taking the first or the last entry.
//!
//! A compare-and-swap is a transaction that reads one key and writes it. The check of its commit finds every other write of the key, also of an equal
//! value; then it reads again.
//!
//! A pop reads the entry twice. The first read runs without the write lock, where it may take long: it decides what is removed, and brings the blocks
//! into the cache. The second read is the condition of the write, under the lock, so that no other write can change its result before the write. A
//! pop starts reading at the end that an earlier pop has noted (`core/entry_bounds.rs`), and notes its own result there. So pops do not walk over
//! each other's tombstones.

use std::sync::Arc;
use std::time::SystemTime;

use super::core::{Core, Edge, Edges, State};
use super::read::{Iter, Pinned, Registered};
use super::transaction::{Reads, commit};
use super::write::write_if;
use crate::error::{Error, Result};
use crate::types::{CompareAndSwapError, KeyspaceRef, Slice, WriteBatch};

/// Sets `key` of `keyspace` to `new` if its value is `expected`; `None` means no value.
pub(crate) fn compare_and_swap(
    core: &Arc<Core>,
    keyspace: &KeyspaceRef,
    key: &[u8],
    expected: Option<&[u8]>,
    new: Option<&[u8]>,
) -> Result<std::result::Result<(), CompareAndSwapError>> {
    let mut batch = WriteBatch::new();
    batch.note_keyspace(keyspace);
    match new {
        Some(value) => batch.insert_until_in(keyspace.prefix, key, value, core.default_expiry(keyspace))?,
        None => batch.remove_in(keyspace.prefix, key)?,
    }
    let stored = keyspace.prefix.stored(key);
    loop {
        let now = Registered::now(core)?;
        let (current, reads) = read_one(&now, keyspace, &stored)?;
        if current.as_deref() != expected {
            return Ok(Err(CompareAndSwapError { current }));
        }
        match commit(core, &batch, (&reads, now.seqno()), core.store.options.durability) {
            Err(Error::Conflict { .. }) => {}
            committed => return committed.map(|_| Ok(())),
        }
    }
}

/// The value of a stored key, and what a commit has to check about it.
fn read_one(now: &Registered, keyspace: &KeyspaceRef, stored: &[u8]) -> Result<(Option<Slice>, Reads)> {
    let (value, at) = now.read(keyspace, |point| point.get_with_expiry(stored))?.unzip();
    let mut reads = Reads::of_key(keyspace, stored);
    reads.note_expiry(stored, at.flatten());
    Ok((value, reads))
}

/// Gives the entry of `key` of `keyspace` another expiry. False if there is none.
pub(crate) fn set_expiry(core: &Arc<Core>, keyspace: &KeyspaceRef, key: &[u8], at: Option<SystemTime>) -> Result<bool> {
    let stored = keyspace.prefix.stored(key);
    loop {
        let now = Registered::now(core)?;
        let (Some(value), reads) = read_one(&now, keyspace, &stored)? else { return Ok(false) };
        let mut batch = WriteBatch::new();
        batch.note_keyspace(keyspace);
        batch.insert_until_in(keyspace.prefix, key, &value, at)?;
        match commit(core, &batch, (&reads, now.seqno()), core.store.options.durability) {
            Err(Error::Conflict { .. }) => {}
            committed => return committed.map(|_| true),
        }
    }
}

/// The first or the last of all entries of `keyspace`, all of which lie within `edges`.
fn entry_within(core: &Arc<Core>, keyspace: &KeyspaceRef, edges: &Edges, edge: Edge) -> Result<Option<(Slice, Slice)>> {
    let bounds = edges.within(keyspace.prefix.bounds(&..));
    let mut iter = Iter::new(Pinned::now(core, keyspace), keyspace.prefix, bounds);
    match edge {
        Edge::First => iter.next(),
        Edge::Last => iter.next_back(),
    }
    .transpose()
}

pub(crate) fn entry_at(core: &Arc<Core>, keyspace: &KeyspaceRef, edge: Edge) -> Result<Option<(Slice, Slice)>> {
    entry_within(core, keyspace, &Edges::default(), edge)
}

/// Removes the entry at an end, and returns it.
pub(crate) fn pop(core: &Arc<Core>, keyspace: &KeyspaceRef, edge: Edge) -> Result<Option<(Slice, Slice)>> {
    let (prefix, id) = (keyspace.prefix, keyspace.prefix.id());
    loop {
        let edges = core.lock().entry_bounds.of(id).clone();
        let found = match entry_within(core, keyspace, &edges, edge)? {
            // Meanwhile an entry may have been stored outside of these bounds, before the last entry within them was removed.
            None if edges != Edges::default() => entry_at_locked(core, keyspace, edge)?,
            found => found,
        };
        let Some(entry) = found else { return Ok(None) };
        let mut batch = WriteBatch::new();
        batch.note_keyspace(keyspace);
        batch.remove_in(prefix, &entry.0)?;
        let is_still_there = |state: &mut State| {
            let bounds = &mut state.entry_bounds;
            let is_there = entry_within(core, keyspace, bounds.of(id), edge)?.as_ref() == Some(&entry);
            if is_there {
                bounds.of(id).set(edge, prefix.with_stored(&entry.0, |stored| Slice::from(stored)));
            }
            Ok(is_there)
        };
        if write_if(core, &batch, core.store.options.durability, &is_still_there)?.is_some() {
            return Ok(Some(entry));
        }
    }
}

/// The first or last entry at one moment: no write begins meanwhile.
fn entry_at_locked(core: &Arc<Core>, keyspace: &KeyspaceRef, edge: Edge) -> Result<Option<(Slice, Slice)>> {
    let mut state = core.lock();
    core.wait_visible(state.last_seqno)?;
    entry_within(core, keyspace, state.entry_bounds.of(keyspace.prefix.id()), edge)
}
