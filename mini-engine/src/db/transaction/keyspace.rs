//! [`KeyspaceTransaction`]: the reads and writes of a transaction in one keyspace.

use std::time::SystemTime;

use super::iter::TransactionIter;
use super::state::TransactionState;
use super::writes::Expiring;
use crate::db::read::Iter;
use crate::error::Result;
use crate::types::{
    KeyBounds, KeyPrefix, KeyspaceRef, Slice, check_bounds, check_expiring_value, check_key, check_value, millis,
    prefix_bounds, start_and_end,
};

/// The reads and writes of a [`Transaction`](crate::Transaction) in one keyspace; created by [`Transaction::keyspace`](crate::Transaction::keyspace).
/// They become part of the transaction. Each method behaves like the method of the same name of [`Transaction`](crate::Transaction), which uses the
/// default keyspace.
#[derive(Debug)]
pub struct KeyspaceTransaction<'a> {
    state: &'a TransactionState,
    keyspace: KeyspaceRef,
}

impl<'a> KeyspaceTransaction<'a> {
    pub(super) fn new(state: &'a TransactionState, keyspace: KeyspaceRef) -> KeyspaceTransaction<'a> {
        KeyspaceTransaction { state, keyspace }
    }

    /// See [`Transaction::get`](crate::Transaction::get).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.key_prefix().with_stored(key.as_ref(), |key| {
            self.state.read_key(&self.keyspace, key, Slice::clone, |read| read.get_with_expiry(key))
        })
    }

    /// See [`Transaction::contains_key`](crate::Transaction::contains_key).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let found = self.key_prefix().with_stored(key.as_ref(), |key| {
            self.state.read_key(&self.keyspace, key, |_| (), |read| read.contains_with_expiry(key))
        });
        found.map(|found| found.is_some())
    }

    /// See [`Transaction::get_many`](crate::Transaction::get_many).
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Slice>>> {
        self.key_prefix().with_all_stored(keys, |keys| self.get_all(keys))
    }

    /// The values of stored keys.
    fn get_all(&self, keys: &[&[u8]]) -> Result<Vec<Option<Slice>>> {
        let snapshot = self.state.snapshot_for(&self.keyspace)?;
        let mut pending = self.state.pending.borrow_mut();
        let (mut values, mut unwritten) = (vec![None; keys.len()], Vec::new());
        for (at, &key) in keys.iter().enumerate() {
            match pending.writes.get(key) {
                Some(own) => values[at] = own.cloned(),
                None => {
                    pending.note_key(key)?;
                    unwritten.push((at, key));
                }
            }
        }
        let (places, keys): (Vec<_>, Vec<_>) = unwritten.into_iter().unzip();
        if snapshot.instant() == 0 {
            // No entry of the database expires (K2 of `core/clock.rs`).
            let found = snapshot.read_in(&self.keyspace, |read| read.get_many(&keys))?;
            places.into_iter().zip(found).for_each(|(at, value)| values[at] = value);
            return Ok(values);
        }
        for (place, key) in places.into_iter().zip(keys) {
            if let Some((value, at)) = snapshot.read_in(&self.keyspace, |read| read.get_with_expiry(key))? {
                pending.reads.note_expiry(key, at);
                values[place] = Some(value);
            }
        }
        Ok(values)
    }

    /// See [`Transaction::first`](crate::Transaction::first).
    pub fn first(&self) -> Result<Option<(Slice, Slice)>> {
        self.iter().next().transpose()
    }

    /// See [`Transaction::last`](crate::Transaction::last).
    pub fn last(&self) -> Result<Option<(Slice, Slice)>> {
        self.iter().next_back().transpose()
    }

    /// See [`Transaction::pop_first`](crate::Transaction::pop_first).
    pub fn pop_first(&self) -> Result<Option<(Slice, Slice)>> {
        self.pop(self.first()?)
    }

    /// See [`Transaction::pop_last`](crate::Transaction::pop_last).
    pub fn pop_last(&self) -> Result<Option<(Slice, Slice)>> {
        self.pop(self.last()?)
    }

    /// Removes the entry that was found at one end, and returns it.
    fn pop(&self, found: Option<(Slice, Slice)>) -> Result<Option<(Slice, Slice)>> {
        found.iter().try_for_each(|(key, _)| self.remove(key))?;
        Ok(found)
    }

    /// See [`Transaction::iter`](crate::Transaction::iter).
    pub fn iter(&self) -> TransactionIter<'a> {
        self.range(..)
    }

    /// See [`Transaction::range`](crate::Transaction::range).
    pub fn range(&self, bounds: impl KeyBounds) -> TransactionIter<'a> {
        let bounds = self.key_prefix().bounds(&bounds);
        let scan = self.state.snapshot_for(&self.keyspace).and_then(|snapshot| snapshot.scan_in(&self.keyspace));
        // The transaction's own writes at the ends of the range are stepped over only once (`pending.rs`).
        let left = self.state.pending.borrow_mut().without_written_ends(&bounds);
        let committed = Iter::new(scan, KeyPrefix::NONE, left.clone());
        TransactionIter::new(&self.state.pending, (committed, left), self.key_prefix(), bounds)
    }

    /// See [`Transaction::prefix`](crate::Transaction::prefix).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> TransactionIter<'a> {
        self.range(prefix_bounds(prefix.as_ref()))
    }

    /// See [`Transaction::insert`](crate::Transaction::insert).
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.insert_until(key.as_ref(), value.as_ref(), self.state.core.default_expiry(&self.keyspace))
    }

    /// See [`Transaction::insert_with_expiry`](crate::Transaction::insert_with_expiry).
    pub fn insert_with_expiry(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        at: impl Into<Option<SystemTime>>,
    ) -> Result<()> {
        self.insert_until(key.as_ref(), value.as_ref(), at.into())
    }

    /// See [`Transaction::remove`](crate::Transaction::remove).
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write_key(key.as_ref(), None)
    }

    /// See [`Transaction::remove_range`](crate::Transaction::remove_range).
    pub fn remove_range(&self, bounds: impl KeyBounds) -> Result<()> {
        check_bounds(&bounds)?;
        let Some((start, end)) = start_and_end(&self.key_prefix().bounds(&bounds)) else { return Ok(()) };
        self.state.pending.borrow_mut().remove_range(Slice::from(start), Slice::from(end))
    }

    /// See [`Transaction::remove_prefix`](crate::Transaction::remove_prefix).
    pub fn remove_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.remove_range(prefix_bounds(prefix.as_ref()))
    }

    fn insert_until(&self, key: &[u8], value: &[u8], at: Option<SystemTime>) -> Result<()> {
        let Some(at) = at.map(millis) else {
            check_value(value)?;
            return self.write_key(key, Some((value, None)));
        };
        check_expiring_value(value)?;
        let is_later = at > self.state.instant()?;
        self.write_key(key, is_later.then_some((value, Some(at))))
    }

    fn write_key(&self, key: &[u8], value: Option<Expiring<&[u8]>>) -> Result<()> {
        check_key(key)?;
        self.key_prefix().with_stored(key, |key| self.state.pending.borrow_mut().set(key, value))
    }

    fn key_prefix(&self) -> KeyPrefix {
        self.keyspace.prefix
    }
}
