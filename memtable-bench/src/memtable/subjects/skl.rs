//! skl's `SkipMap` over bytes, without versions. Its arena has one size for good, and is overwritten with zeros from end to end
//! before the first insert, whether it is allocated or mapped: so it gets what a round needs. No free list: nothing is ever
//! given back, and there is nothing to look for.
//!
//! No setting helps its inserts: 0.22.17 (as 0.21.2) searches each level from the head on, level 0 too, in place of going on from
//! where the level above ended, so an insert takes O(n). Its lookups do not. So it takes part in small tables only.

use skl::Arena;
use skl::dynamic::Builder;
use skl::dynamic::unique::Map;
use skl::dynamic::unique::sync::SkipMap;
use skl::options::Freelist;

use super::super::shape::Shape;
use super::{Delete, Get, Insert, Ordered, Record, ScanBack, Seek};

/// A node and its padding, twice what it is in the mean.
const NODE: usize = 64;
/// The arena's own header, and the head and the tail of the list at their full height.
const HEAD: usize = 64 << 10;

pub(crate) struct SklList(SkipMap);

/// What a round fills of the arena: half as much again as its first insert, for mixed workloads.
fn bytes(shape: &Shape) -> usize {
    HEAD + (shape.source().longest() + shape.value_len + NODE) * shape.entries * 3 / 2
}

impl Insert for SklList {
    fn new(shape: &Shape) -> Self {
        // Offsets have 32 bits; values of a megabyte would need more, and the round says that they were not stored.
        let capacity = bytes(shape).try_into().unwrap_or(u32::MAX);
        match Builder::new().with_capacity(capacity).with_freelist(Freelist::None).alloc() {
            Ok(map) => Self(map),
            // The round ends with this message, as with any other crash of a peer.
            Err(error) => panic!("cannot make skl's arena of {capacity} bytes: {error}"),
        }
    }

    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize {
        records.filter(|record| matches!(self.0.get_or_insert(record.key, record.value), Ok(None))).count()
    }

    fn memory_used(&self) -> Option<u64> {
        Some(self.0.allocated() as u64)
    }
}

impl Get for SklList {
    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.0.get(key).map(|entry| read(entry.value()))
    }
}

impl Ordered for SklList {
    fn scan(&self, mut each: impl FnMut(&[u8], &[u8])) {
        self.0.iter().for_each(|entry| each(entry.key(), entry.value()));
    }
}

impl Seek for SklList {
    fn seek(&self, from: &[u8], most: usize, mut each: impl FnMut(&[u8], &[u8])) {
        self.0.range(from..).take(most).for_each(|entry| each(entry.key(), entry.value()));
    }
}

impl ScanBack for SklList {
    fn scan_back(&self, mut each: impl FnMut(&[u8], &[u8])) {
        self.0.iter().rev().for_each(|entry| each(entry.key(), entry.value()));
    }
}

impl Delete for SklList {
    fn delete(&self, key: &[u8], _seqno: u64) -> bool {
        // Its `None` is success, or a key that was deleted already; the check of what is left tells.
        matches!(self.0.remove(key), Ok(None))
    }
}
