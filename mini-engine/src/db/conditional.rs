//! Writes that depend on existing entries: compare-and-swap, another expiry, and taking the first or the last entry.
//!
//! A compare-and-swap is a transaction that reads one key and writes it. The check of its commit finds every other write of the key, also of an equal
//! value; then it reads again.
//!
//! A pop is a transaction that reads the range up to the entry at its end and removes that entry. An entry that comes before it, or another pop that
//! takes it, is a conflict; then it reads again. What earlier pops have removed is skipped (`core/dead_ranges.rs`).

use std::sync::Arc;
use std::time::SystemTime;

use super::core::Core;
use super::read::Registered;
use super::transaction::{Reads, Transaction, commit};
use crate::error::{Error, Result};
use crate::iter::Direction;
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

/// Removes the entry at the end of `keyspace` where a scan in this direction begins, and returns it.
pub(crate) fn pop(core: &Arc<Core>, keyspace: &KeyspaceRef, direction: Direction) -> Result<Option<(Slice, Slice)>> {
    loop {
        let transaction = Transaction::begin_small(core);
        let Some(entry) = transaction.of_keyspace(keyspace).pop(direction)? else { return Ok(None) };
        match transaction.commit(core.store.options.durability) {
            Err(Error::Conflict { .. }) => {}
            committed => return committed.map(|_| Some(entry)),
        }
    }
}
