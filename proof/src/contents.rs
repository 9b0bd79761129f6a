//! Contents of databases as ordinary maps, and keys and values to fill them with.

use std::collections::BTreeMap;

use mini_engine::{Compaction, Keyspace, Result, Slice};

use crate::random::{Random, hash};

/// Every policy of compaction.
pub const POLICIES: [Compaction; Compaction::ALL.len()] = *Compaction::ALL.first_chunk().unwrap();

/// The contents of a keyspace.
pub type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The entries that an iterator yields.
///
/// # Panics
/// If one of them is an error.
pub fn pairs(iter: impl Iterator<Item = Result<(Slice, Slice)>>) -> Vec<(Vec<u8>, Vec<u8>)> {
    iter.map(|entry| entry.expect("it can be read")).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// The contents of a keyspace. A database derefs to its default keyspace.
///
/// # Panics
/// If the entries cannot be read, or a key is repeated or out of order.
pub fn entries(keyspace: &Keyspace) -> Map {
    let pairs = pairs(keyspace.iter());
    assert!(pairs.is_sorted_by(|(one, _), (next, _)| one < next), "a key comes twice or out of order");
    pairs.into_iter().collect()
}

/// Keys in the order of their numbers.
pub fn key(n: u64) -> String {
    format!("key{n:05}")
}

/// Keys of 16 bytes, whose order is independent of their numbers.
pub fn scattered_key(n: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&hash(n).to_be_bytes());
    key[8..].copy_from_slice(&n.to_be_bytes());
    key
}

/// Incompressible bytes.
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).collect();
    bytes.truncate(len);
    bytes
}
