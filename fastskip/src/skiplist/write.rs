//! Writes to a list: single inserts, batches, deletes and tombstones.

use alloc::vec::Vec;
use core::slice;

use super::entry::LIVE;
use super::stamp::Stamped;
use super::table::ConcurrentSkipList;
use crate::error::{BatchError, InsertError};
use crate::iter::source::TableSource;
use crate::list::{ArenaAlloc, List, Outcome, Writer};
use crate::node::{Kind, NewNode, NodeRef, Target};
use crate::order::Order;
use crate::sync::thread_index;

/// A node as this type stores it: without version and tag.
#[inline]
fn new_node<'n>(key: &'n [u8], value: &'n &'n [u8], kind: Kind) -> NewNode<'n> {
    NewNode::new(key, slice::from_ref(value), kind, 0, 0)
}

/// The result of a batch of `entries`, of which `rejected` were not stored.
fn outcome(entries: usize, rejected: Vec<(usize, InsertError)>) -> Result<usize, BatchError> {
    match rejected.len() {
        0 => Ok(entries),
        failed => Err(BatchError::PartialFailure { succeeded: entries - failed, failed, rejected }),
    }
}

/// Writing.
impl<O: Order> ConcurrentSkipList<O> {
    /// Stores `key` and returns true. Returns false for every error of [`try_insert`](Self::try_insert).
    /// Expected O(log n).
    pub fn insert(&self, key: &[u8], value: &[u8]) -> bool {
        self.try_insert(key, value).is_ok()
    }

    /// Stores `key`. After this call has returned, [`get`](Self::get) finds the key in every thread that synchronised with it. Expected O(log
    /// n).
    ///
    /// # Errors
    /// * [`DuplicateKey`](InsertError::DuplicateKey) if the key is already stored, even as a tombstone.
    /// * [`Frozen`](InsertError::Frozen), [`Full`](InsertError::Full) or [`TooLarge`](InsertError::TooLarge).
    pub fn try_insert(&self, key: &[u8], value: &[u8]) -> Result<(), InsertError> {
        let (_, is_new) = self.store(key, value, Kind::Value)?;
        if is_new { Ok(()) } else { Err(InsertError::DuplicateKey) }
    }

    /// Stores every entry whose key is not yet stored. Returns the number of entries if all of them were stored. Entries
    /// commit separately, in order. `as_ref` is called once for each key and value, before anything else happens. Expected
    /// O(log n) for each entry.
    ///
    /// # Errors
    /// [`BatchError::PartialFailure`] if any entry was rejected; the error lists the rejected entries and the reasons. The other entries are stored.
    pub fn insert_batch<K, V>(&self, entries: &[(K, V)]) -> Result<usize, BatchError>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        let entries: Vec<(&[u8], &[u8])> = entries.iter().map(|(key, value)| (key.as_ref(), value.as_ref())).collect();
        let new = |index: usize| new_node(entries[index].0, &entries[index].1, Kind::Value);
        if entries.is_empty() {
            return Ok(0);
        }
        let attempts = entries.len() as u64;
        let entered = self.list.for_writes(attempts).and_then(|list| Ok((list, list.enter(thread_index(), attempts)?)));
        let (list, writer) = match entered {
            Ok(entered) => entered,
            Err(refusal) => return outcome(entries.len(), (0..entries.len()).map(|index| (index, refusal)).collect()),
        };
        let (fit, unfit): (Vec<_>, Vec<_>) = (0..entries.len()).partition(|index| new(*index).is_encodable());
        let mut rejected: Vec<_> = unfit.into_iter().map(|index| (index, InsertError::TooLarge)).collect();
        writer.insert_all::<false>(
            fit.len(),
            |at| new(fit[at]),
            &mut ArenaAlloc::new(&writer),
            |at, stored| match stored.map(|stored| self.settled(list, stored)) {
                Ok((_, true)) => {}
                Ok((_, false)) => rejected.push((fit[at], InsertError::DuplicateKey)),
                Err(refusal) => rejected.push((fit[at], refusal)),
            },
        );
        rejected.sort_unstable_by_key(|(index, _)| *index);
        outcome(entries.len(), rejected)
    }

    /// Stores `value` for `key` if the key is absent. Returns the value of `key`, and whether this call stored it. For a tombstone, returns `(old
    /// value, false)`. If the key is absent and cannot be stored, returns `(value, false)`. Expected O(log n).
    pub fn get_or_insert<'a>(&'a self, key: &[u8], value: &'a [u8]) -> (&'a [u8], bool) {
        self.try_get_or_insert(key, value).unwrap_or((value, false))
    }

    /// Stores `value` for `key` if the key is absent. Returns the value of `key`, and whether this call stored it. For a tombstone, returns `(old
    /// value, false)`. Expected O(log n).
    ///
    /// # Errors
    /// These errors occur only if the key is absent: [`Frozen`](InsertError::Frozen), [`Full`](InsertError::Full) or
    /// [`TooLarge`](InsertError::TooLarge).
    pub fn try_get_or_insert(&self, key: &[u8], value: &[u8]) -> Result<(&[u8], bool), InsertError> {
        match self.store(key, value, Kind::Value) {
            Ok((node, is_new)) => Ok((node.record().value, is_new)),
            // A list that rejects the insert may still hold the key.
            Err(refusal) => self.get(key).map(|(present, _)| (present, false)).ok_or(refusal),
        }
    }

    /// Marks `key` as deleted. Returns true if the key was live and this call deleted it, and false for every error of
    /// [`try_delete`](Self::try_delete). An absent key stays absent; see [`insert_tombstone`](Self::insert_tombstone).
    /// Expected O(log n).
    pub fn delete(&self, key: &[u8]) -> bool {
        self.try_delete(key).unwrap_or(false)
    }

    /// Marks `key` as deleted. Returns `Ok(true)` if the key was live and this call deleted it, and `Ok(false)` if the key was
    /// absent or already deleted. Expected O(log n).
    ///
    /// # Errors
    /// [`Frozen`](InsertError::Frozen) or [`Full`](InsertError::Full). A list that has reached a limit accepts no writes, not
    /// even deletes.
    pub fn try_delete(&self, key: &[u8]) -> Result<bool, InsertError> {
        let Some(list) = self.list.made() else {
            return if self.list.is_frozen() { Err(InsertError::Frozen) } else { Ok(false) };
        };
        let writer = list.enter(thread_index(), 0)?;
        if list.is_full() {
            return Err(InsertError::Full);
        }
        let found = list.index.lower_bound(Target { key, version: 0 }).with_key();
        Ok(found.is_some_and(|id| self.mark_deleted(&writer, list.node(id))))
    }

    /// Makes `key` a tombstone, even if it is absent. A storage engine needs this, because the key may exist in a lower level.
    /// Succeeds if `key` is already a tombstone. Expected O(log n).
    ///
    /// # Errors
    /// [`Frozen`](InsertError::Frozen), [`Full`](InsertError::Full) or [`TooLarge`](InsertError::TooLarge).
    pub fn insert_tombstone(&self, key: &[u8]) -> Result<(), InsertError> {
        let (node, is_new) = self.store(key, &[], Kind::Tombstone)?;
        if is_new || self.show(node, LIVE).is_some_and(|entry| entry.is_tombstone) {
            return Ok(());
        }
        let list = self.list.for_writes(0)?;
        let writer = list.enter(thread_index(), 0)?;
        if list.is_full() {
            return Err(InsertError::Full);
        }
        self.mark_deleted(&writer, node);
        Ok(())
    }

    fn mark_deleted(&self, writer: &Writer<'_, Stamped<O>>, node: NodeRef<'_, Stamped<O>>) -> bool {
        // The key was inserted as a tombstone, so there is no value to delete.
        if node.record().kind == Kind::Tombstone {
            self.clock.inserted(node);
            return false;
        }
        let deleted = self.clock.delete(node);
        if deleted {
            writer.count_deleted();
        }
        deleted
    }

    /// Links a node for `key` unless the key has one. Returns the key's node, whose stamps are set, and whether it is new.
    fn store(&self, key: &[u8], value: &[u8], kind: Kind) -> Result<(NodeRef<'_, Stamped<O>>, bool), InsertError> {
        let list = self.list.for_writes(1)?;
        let writer = list.enter(thread_index(), 1)?;
        let new = new_node(key, &value, kind);
        if !new.is_encodable() {
            return Err(InsertError::TooLarge);
        }
        let outcome = writer.insert::<false>(&new, &mut ArenaAlloc::new(&writer))?;
        Ok(self.settled(list, outcome))
    }

    /// Sets the missing stamps of the node that an insert has found or linked. Returns whether the node is new.
    fn settled<'a>(&self, list: &'a List<Stamped<O>>, outcome: Outcome) -> (NodeRef<'a, Stamped<O>>, bool) {
        let (Outcome::New(id) | Outcome::Present(id) | Outcome::Replaced(id)) = outcome;
        let (node, is_new) = (list.node(id), matches!(outcome, Outcome::New(_)));
        if is_new {
            self.clock.inserted(node);
        } else {
            _ = self.clock.shown(node, LIVE);
        }
        (node, is_new)
    }
}
