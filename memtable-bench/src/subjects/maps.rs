//! The standard collections behind locks, with boxed keys and values. Each insert and each get takes the lock, as concurrent callers do; a whole
//! scan takes it once and blocks writers meanwhile. Keys and values are allocated outside the lock. Poison is ignored: a thread panicked, so the
//! round has failed anyway.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::ops::Bound::{Included, Unbounded};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use itertools::Itertools;

use super::store::{Done, Record, Settings, Store, store};
use crate::spec::Subject;

type Bytes = Box<[u8]>;
type BytesTree = BTreeMap<Bytes, Bytes>;

/// Trees that each hold a part of the keys, spread by hash: the usual way to make a locked map scale. An ordered read
/// has to lock and merge all trees.
pub(crate) struct Shards {
    trees: Vec<Shard>,
    hasher: RandomState,
}

/// Has cache lines of its own, so that threads at neighbouring locks do not slow each other down.
#[derive(Default)]
#[repr(align(128))]
struct Shard(RwLock<BytesTree>);

impl Shards {
    fn of(&self, key: &[u8]) -> &RwLock<BytesTree> {
        let number = self.trees.len();
        let index = if number == 1 { 0 } else { self.hasher.hash_one(key) as usize % number };
        &self.trees[index].0
    }

    fn write(&self, key: &[u8]) -> RwLockWriteGuard<'_, BytesTree> {
        self.of(key).write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tree, if there is only one: it needs no merge, and must not pay for one.
    fn only(&self) -> Option<RwLockReadGuard<'_, BytesTree>> {
        match &self.trees[..] {
            [only] => Some(only.0.read().unwrap_or_else(PoisonError::into_inner)),
            _ => None,
        }
    }

    fn read_all(&self) -> Vec<RwLockReadGuard<'_, BytesTree>> {
        self.trees.iter().map(|shard| shard.0.read().unwrap_or_else(PoisonError::into_inner)).collect()
    }
}

/// Merges the runs: calls `each` with the first `most` entries of all runs, in the order of `before`.
fn merge<'t, I: Iterator<Item = (&'t Bytes, &'t Bytes)>>(
    runs: Vec<I>,
    before: fn(&[u8], &[u8]) -> bool,
    most: usize,
    mut each: impl FnMut(&[u8], &[u8]),
) {
    let merged = runs.into_iter().kmerge_by(|a, b| before(a.0, b.0));
    merged.take(most).for_each(|(key, value)| each(key, value));
}

store! {
    /// `RwLock<BTreeMap>`, or 16 of them.
    Trees(Shards);
    open(settings) => {
        let number = if settings.subject == Subject::ShardedBtreemap { 16 } else { 1 };
        Shards { trees: (0..number).map(|_| Shard::default()).collect(), hasher: RandomState::new() }
    };
    insert(shards, record) => {
        let (key, value) = (record.key.into(), record.value.into());
        shards.write(record.key).insert(key, value).is_none()
    };
    scan_all(shards, each) => {
        match shards.only() {
            Some(tree) => tree.iter().for_each(|(key, value)| each(key, value)),
            None => merge(shards.read_all().iter().map(|tree| tree.iter()).collect(), |a, b| a < b, usize::MAX, each),
        }
    };
    get(shards, key, read) => {
        shards.of(key).read().unwrap_or_else(PoisonError::into_inner).get(key).map(|value| read(value))
    };
    scan(shards, from, most, each) => {
        let bounds = (Included(from), Unbounded);
        match shards.only() {
            Some(tree) => tree.range::<[u8], _>(bounds).take(most).for_each(|(key, value)| each(key, value)),
            None => {
                let trees = shards.read_all();
                merge(trees.iter().map(|tree| tree.range::<[u8], _>(bounds)).collect(), |a, b| a < b, most, each)
            }
        }
    };
    scan_back(shards, each) => {
        match shards.only() {
            Some(tree) => tree.iter().rev().for_each(|(key, value)| each(key, value)),
            None => {
                let trees = shards.read_all();
                merge(trees.iter().map(|tree| tree.iter().rev()).collect(), |a, b| a > b, usize::MAX, each)
            }
        }
    };
    delete(shards, key, _seqno) => shards.write(key).remove(key).is_some();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

store! {
    /// A map without order, which shows the cost of a search. It cannot be read in order, so it is a floor and not a peer.
    LockedHashMap(Mutex<HashMap<Bytes, Bytes>>);
    open(_settings) => Mutex::default();
    insert(map, record) => {
        let (key, value) = (record.key.into(), record.value.into());
        lock(map).insert(key, value).is_none()
    };
    // Only for the check of the contents: no workload reads the map in order.
    scan_all(map, each) => lock(map).iter().sorted_unstable().for_each(|(key, value)| each(key, value));
    get(map, key, read) => lock(map).get(key).map(|value| read(value));
    delete(map, key, _seqno) => lock(map).remove(key).is_some();
}

store! {
    /// A vector that is appended to and sorted afterwards: the cost of storing without order, and of the fastest sort. A
    /// search is impossible before the sort, so it is a floor and not a peer.
    LockedVec(Mutex<Vec<(Bytes, Bytes)>>);
    open(_settings) => Mutex::default();
    put(pairs, record) => {
        let pair = (record.key.into(), record.value.into());
        lock(pairs).push(pair)
    };
    // In the order of the pairs, which are unordered before `sort`.
    scan_all(pairs, each) => lock(pairs).iter().for_each(|(key, value)| each(key, value));
    sort(pairs) => lock(pairs).sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
}
