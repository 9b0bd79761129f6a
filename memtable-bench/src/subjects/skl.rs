//! skl's `SkipMap` over bytes, without versions. Its arena has a fixed size and is zeroed before the first insert, so the arena gets exactly the
//! size that a round needs. Nothing is ever freed, so it needs no free list.
//!
//! No setting makes its inserts fast: 0.22.17 (like 0.21.2) searches every level from the head on, also level 0, and not from the place where
//! the search of the level above ended. So an insert takes O(n); a lookup does not. Therefore skl takes part in small tables only.

use skl::Arena;
use skl::dynamic::Builder;
use skl::dynamic::unique::Map;
use skl::dynamic::unique::sync::SkipMap;
use skl::options::Freelist;

use super::store::{Done, Record, Settings, Store, store};
use crate::spec::Shape;

/// The bytes of a node and its padding: twice the mean.
const NODE: usize = 64;
/// The arena's own header, and the head and the tail of the list at their full height.
const HEAD: usize = 64 << 10;

store! {
    SklList(SkipMap);
    open(settings) => {
        let Shape { entries, value_len, .. } = settings.shape;
        // One and a half times the size after the first insert, for mixed workloads. Offsets have 32 bits; values of a
        // megabyte would need more, and the round then reports that records were not stored.
        let bytes = HEAD + (settings.shape.longest_key() + value_len + NODE) * entries * 3 / 2;
        let capacity = bytes.try_into().unwrap_or(u32::MAX);
        let map = Builder::new().with_capacity(capacity).with_freelist(Freelist::None).alloc();
        map.map_err(|error| format!("cannot make skl's arena of {capacity} bytes: {error}"))?
    };
    insert(list, record) => matches!(list.get_or_insert(record.key, record.value), Ok(None));
    scan_all(list, each) => list.iter().for_each(|entry| each(entry.key(), entry.value()));
    get(list, key, read) => list.get(key).map(|entry| read(entry.value()));
    scan(list, from, most, each) => list.range(from..).take(most).for_each(|entry| each(entry.key(), entry.value()));
    scan_back(list, each) => list.iter().rev().for_each(|entry| each(entry.key(), entry.value()));
    // `None` means success, or a key that was already deleted; the check of the remaining contents distinguishes them.
    delete(list, key, _seqno) => matches!(list.remove(key), Ok(None));
    memory_used(list) => list.allocated();
}
