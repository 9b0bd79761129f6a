//! `Mutex<HashMap>` of boxed keys and values: what finding costs when nothing is in order. It cannot be read in order, so it is a
//! floor and no peer.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::shape::Shape;
use super::{Delete, Get, Insert, Ordered, Record};

type Map = HashMap<Box<[u8]>, Box<[u8]>>;

pub(crate) struct LockedHashMap(Mutex<Map>);

impl LockedHashMap {
    fn lock(&self) -> MutexGuard<'_, Map> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Insert for LockedHashMap {
    fn new(_shape: &Shape) -> Self {
        Self(Mutex::default())
    }

    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize {
        let store = |record: &Record<'_>| {
            let (key, value) = (record.key.into(), record.value.into());
            self.lock().insert(key, value).is_none()
        };
        records.filter(store).count()
    }
}

impl Get for LockedHashMap {
    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.lock().get(key).map(|value| read(value))
    }
}

/// For the check of its contents only: no workload reads it in order.
impl Ordered for LockedHashMap {
    fn scan(&self, mut each: impl FnMut(&[u8], &[u8])) {
        let map = self.lock();
        let mut entries: Vec<_> = map.iter().collect();
        entries.sort_unstable();
        entries.into_iter().for_each(|(key, value)| each(key, value));
    }
}

impl Delete for LockedHashMap {
    fn delete(&self, key: &[u8], _seqno: u64) -> bool {
        self.lock().remove(key).is_some()
    }
}
