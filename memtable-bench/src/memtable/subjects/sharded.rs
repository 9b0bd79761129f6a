//! Sixteen `RwLock<BTreeMap>`, keys spread over them by hash: how a lock around a map is usually made to scale. Reading in
//! order has to lock and merge all of them.

use std::array;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::hash::{BuildHasher, RandomState};

use super::super::shape::Shape;
use super::btreemap::{LockedTree, entries_from};
use super::{Delete, Get, Insert, Ordered, Record, ScanBack, Seek};

const SHARDS: usize = 16;

type Entry<'t> = (&'t [u8], &'t [u8]);

pub(crate) struct ShardedTree {
    shards: [Padded; SHARDS],
    hasher: RandomState,
}

/// On cache lines of its own: threads at neighbouring locks must not slow each other down.
#[derive(Default)]
#[repr(align(128))]
struct Padded(LockedTree);

impl ShardedTree {
    fn shard(&self, key: &[u8]) -> &LockedTree {
        &self.shards[self.hasher.hash_one(key) as usize % SHARDS].0
    }
}

/// The head of one shard's run. Ordered so that a heap, which gives its greatest, gives the next one of the merge.
struct Head<'t, I: Iterator<Item = Entry<'t>>> {
    run: I,
    next: Entry<'t>,
    direction: Direction,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Back,
}

impl<'t, I: Iterator<Item = Entry<'t>>> Ord for Head<'t, I> {
    fn cmp(&self, other: &Self) -> Ordering {
        match self.direction {
            Direction::Forward => other.next.0.cmp(self.next.0),
            Direction::Back => self.next.0.cmp(other.next.0),
        }
    }
}

impl<'t, I: Iterator<Item = Entry<'t>>> PartialOrd for Head<'t, I> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'t, I: Iterator<Item = Entry<'t>>> PartialEq for Head<'t, I> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<'t, I: Iterator<Item = Entry<'t>>> Eq for Head<'t, I> {}

/// Calls `each` with the first `most` entries of all runs together.
fn merge<'t, I: Iterator<Item = Entry<'t>>>(
    runs: impl Iterator<Item = I>,
    direction: Direction,
    most: usize,
    mut each: impl FnMut(&[u8], &[u8]),
) {
    let head = |mut run: I| run.next().map(|next| Head { run, next, direction });
    let mut heads: BinaryHeap<_> = runs.filter_map(head).collect();
    for _ in 0..most {
        let Some(mut first) = heads.peek_mut() else { return };
        each(first.next.0, first.next.1);
        match first.run.next() {
            Some(next) => first.next = next,
            None => drop(PeekMut::pop(first)),
        }
    }
}

impl Insert for ShardedTree {
    fn new(_shape: &Shape) -> Self {
        Self { shards: array::from_fn(|_| Padded::default()), hasher: RandomState::new() }
    }

    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize {
        records.filter(|&record| self.shard(record.key).store(record)).count()
    }
}

impl Get for ShardedTree {
    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.shard(key).get(key, read)
    }
}

impl Ordered for ShardedTree {
    fn scan(&self, each: impl FnMut(&[u8], &[u8])) {
        let shards = self.shards.each_ref().map(|shard| shard.0.read());
        let run = shards.iter().map(|shard| shard.iter().map(|(key, value)| (&**key, &**value)));
        merge(run, Direction::Forward, usize::MAX, each);
    }
}

impl Seek for ShardedTree {
    fn seek(&self, from: &[u8], most: usize, each: impl FnMut(&[u8], &[u8])) {
        let shards = self.shards.each_ref().map(|shard| shard.0.read());
        merge(shards.iter().map(|shard| entries_from(shard, from)), Direction::Forward, most, each);
    }
}

impl ScanBack for ShardedTree {
    fn scan_back(&self, each: impl FnMut(&[u8], &[u8])) {
        let shards = self.shards.each_ref().map(|shard| shard.0.read());
        let run = shards.iter().map(|shard| shard.iter().rev().map(|(key, value)| (&**key, &**value)));
        merge(run, Direction::Back, usize::MAX, each);
    }
}

impl Delete for ShardedTree {
    fn delete(&self, key: &[u8], seqno: u64) -> bool {
        self.shard(key).delete(key, seqno)
    }
}
