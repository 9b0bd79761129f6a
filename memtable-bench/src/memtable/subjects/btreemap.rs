//! `RwLock<BTreeMap>` of boxed keys and values: one lock for each insert and each get, as concurrent callers would take it,
//! and one for a whole scan, which shuts writers out meanwhile.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use super::{Insert, Record, ScanBack, Search};

type Tree = BTreeMap<Box<[u8]>, Box<[u8]>>;

pub(crate) struct LockedTree(RwLock<Tree>);

impl LockedTree {
    // A poisoned lock: a thread panicked, and the round has failed anyway.
    fn read(&self) -> RwLockReadGuard<'_, Tree> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Insert for LockedTree {
    fn new(_threads: usize) -> Self {
        Self(RwLock::default())
    }

    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize {
        let store = |record: Record<'_>| {
            let (key, value) = (record.key.into(), record.value.into());
            self.0.write().unwrap_or_else(PoisonError::into_inner).insert(key, value)
        };
        records.filter(|&record| store(record).is_none()).count()
    }
}

impl Search for LockedTree {
    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.read().get(key).map(|value| read(value))
    }

    fn scan(&self, mut each: impl FnMut(&[u8], &[u8])) {
        self.read().iter().for_each(|(key, value)| each(key, value));
    }
}

impl ScanBack for LockedTree {
    fn scan_back(&self, mut each: impl FnMut(&[u8], &[u8])) {
        self.read().iter().rev().for_each(|(key, value)| each(key, value));
    }
}
