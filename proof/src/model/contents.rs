//! The expected contents of a database, as ordinary maps.

use std::collections::BTreeMap;

use super::steps::{Bounds, Key, Op, SPACES};
use crate::contents::Map;

/// The contents of each keyspace, and the seconds at which keys expire.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) maps: [Map; SPACES.len()],
    pub(super) expiries: [BTreeMap<Key, u64>; SPACES.len()],
    pub(super) time: u64,
}

impl Model {
    /// Writes an entry, which expires at second `expiry`, if given.
    pub(super) fn insert(&mut self, space: usize, key: Key, value: Vec<u8>, expiry: Option<u64>) {
        match expiry {
            Some(at) => self.expiries[space].insert(key.clone(), at),
            None => self.expiries[space].remove(&key),
        };
        self.maps[space].insert(key, value);
        self.expire();
    }

    /// The expiry of an entry that is inserted now without an expiry of its own.
    pub(super) fn default_expiry(&self, space: usize) -> Option<u64> {
        SPACES[space].lifetime.map(|seconds| self.time + seconds)
    }

    /// Applies `op` to keyspace `space`; an insert stores `value`.
    pub(super) fn apply(&mut self, space: usize, op: Op, value: Vec<u8>) {
        match op {
            Op::Insert(key, _) => self.insert(space, key, value, self.default_expiry(space)),
            Op::InsertFor(key, _, seconds) => self.insert(space, key, value, seconds.map(|after| self.time + after)),
            Op::Remove(key) => drop(self.maps[space].remove(&key)),
            Op::RemoveRange(bounds) => self.maps[space].retain(|key, _| !is_within(&bounds, key)),
            Op::RemovePrefix(prefix) => self.maps[space].retain(|key, _| !key.starts_with(&prefix)),
        }
    }

    /// Removes the keys that have expired.
    pub(super) fn expire(&mut self) {
        for (map, expiries) in self.maps.iter_mut().zip(&mut self.expiries) {
            expiries.retain(|key, at| {
                let is_over = *at <= self.time;
                if is_over {
                    map.remove(key);
                }
                !is_over && map.contains_key(key)
            });
        }
    }
}

pub(super) fn is_within(bounds: &Bounds, key: &Key) -> bool {
    std::ops::RangeBounds::contains(bounds, key)
}
