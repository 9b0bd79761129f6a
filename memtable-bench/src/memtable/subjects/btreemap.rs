//! `RwLock<BTreeMap>` of boxed keys and values: one lock for each insert and each get, as concurrent callers would take it,
//! and one for a whole scan, which shuts writers out meanwhile.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::super::shape::Shape;
use super::{Delete, Get, Insert, Ordered, Record, ScanBack, Seek};

type Tree = BTreeMap<Box<[u8]>, Box<[u8]>>;

#[derive(Default)]
pub(crate) struct LockedTree(RwLock<Tree>);

impl LockedTree {
    // A poisoned lock: a thread panicked, and the round has failed anyway.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Tree> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tree> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the key is new.
    pub(super) fn store(&self, record: Record<'_>) -> bool {
        // Allocated outside the lock.
        let (key, value) = (record.key.into(), record.value.into());
        self.write().insert(key, value).is_none()
    }
}

/// The entries from `from` on.
pub(super) fn entries_from<'t>(tree: &'t Tree, from: &[u8]) -> impl Iterator<Item = (&'t [u8], &'t [u8])> {
    let entries = tree.range::<[u8], _>((Bound::Included(from), Bound::Unbounded));
    entries.map(|(key, value)| (&**key, &**value))
}

impl Insert for LockedTree {
    fn new(_shape: &Shape) -> Self {
        Self::default()
    }

    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize {
        records.filter(|&record| self.store(record)).count()
    }
}

impl Get for LockedTree {
    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.read().get(key).map(|value| read(value))
    }
}

impl Ordered for LockedTree {
    fn scan(&self, mut each: impl FnMut(&[u8], &[u8])) {
        self.read().iter().for_each(|(key, value)| each(key, value));
    }
}

impl Seek for LockedTree {
    fn seek(&self, from: &[u8], most: usize, mut each: impl FnMut(&[u8], &[u8])) {
        entries_from(&self.read(), from).take(most).for_each(|(key, value)| each(key, value));
    }
}

impl ScanBack for LockedTree {
    fn scan_back(&self, mut each: impl FnMut(&[u8], &[u8])) {
        self.read().iter().rev().for_each(|(key, value)| each(key, value));
    }
}

impl Delete for LockedTree {
    fn delete(&self, key: &[u8], _seqno: u64) -> bool {
        self.write().remove(key).is_some()
    }
}
