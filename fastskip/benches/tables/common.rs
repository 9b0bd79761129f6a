//! Keys, values and tables that all benches have in common. Fixed seed: every run has the same keys.

use fastskip::{ConcurrentSkipList, Memtable};

/// Entries of the tables: in a core's own cache, in the last one, in memory.
pub(crate) const SIZES: [usize; 3] = [1_000, 100_000, 1_000_000];
pub(crate) const VALUE: [u8; 100] = [7; 100];

pub(crate) type Key = [u8; 16];

/// The finaliser of splitmix64: distinct numbers give distinct results.
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Random key number `index`; no two are the same.
pub(crate) fn random_key(index: usize) -> Key {
    let first = mix(index as u64 + 1);
    (u128::from(first) << 64 | u128::from(mix(first))).to_be_bytes()
}

/// `entries` random keys. Their order has nothing to do with that of any table.
pub(crate) fn random_keys(entries: usize) -> Vec<Key> {
    (0..entries).map(random_key).collect()
}

pub(crate) fn memtable(keys: &[Key]) -> Memtable {
    let table = Memtable::builder().shards(1).build();
    for (seqno, key) in keys.iter().enumerate() {
        assert!(table.put(key, seqno as u64, &VALUE).is_ok(), "a table without limits takes every key");
    }
    table
}

pub(crate) fn list(keys: &[Key]) -> ConcurrentSkipList {
    let list = ConcurrentSkipList::with_shards(1);
    for key in keys {
        assert!(list.insert(key, &VALUE), "a table without limits takes every key once");
    }
    list
}
