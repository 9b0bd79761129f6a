//! Small tables, and the operations that most models do on them.

use crate::builder::{BuildTable, Config};
use crate::mem::arena::Layout;
use crate::sync::set_thread_index;
use crate::tuning::{Hinting, hint};
use crate::{Lookup, Memtable};

/// Settings for `shards` shards. A thread writes to the shard of its own number.
pub(super) fn config(shards: usize) -> Config {
    limited(shards, 0)
}

/// As [`config`], with a limit on memory.
pub(super) fn limited(shards: usize, max_memory_bytes: usize) -> Config {
    let config = Config::new();
    Config { arena: Layout { shards, chunk_bytes: 0, huge_pages: false, max_memory_bytes, ..config.arena }, ..config }
}

/// The table with these settings. Only few hints are made for keys that the model's threads store.
pub(super) fn table<T: BuildTable>(config: Config) -> T {
    hint(Hinting::Before);
    make(config)
}

/// The table with these settings, whose nodes all get hints unless a writer finds a lock.
pub(super) fn hinted<T: BuildTable>(config: Config) -> T {
    hint(Hinting::All);
    make(config)
}

/// The table with these settings, which makes only the blocks that it needs.
pub(super) fn unhinted<T: BuildTable>(config: Config) -> T {
    hint(Hinting::None);
    make(config)
}

fn make<T: BuildTable>(config: Config) -> T {
    T::new_reserved(config).expect("the model's storage refuses nothing")
}

/// A table of `shards` shards, with `keys` stored in this order.
pub(super) fn holding(shards: usize, keys: &[&[u8]]) -> Memtable {
    let memtable = table(config(shards));
    through(0, || keys.iter().for_each(|key| put(&memtable, key, b"")));
    memtable
}

/// A table of two shards, each of which has stored one of the keys.
pub(super) fn holding_each(keys: [&[u8]; 2]) -> Memtable {
    let memtable = table(config(2));
    keys.iter().enumerate().for_each(|(shard, key)| through(shard, || put(&memtable, key, b"")));
    memtable
}

/// Runs `write` as if on the thread with number `shard`.
pub(super) fn through<R>(shard: usize, write: impl FnOnce() -> R) -> R {
    set_thread_index(shard);
    write()
}

pub(super) fn put(memtable: &Memtable, key: &[u8], value: &[u8]) {
    memtable.put(key, 1, value).expect("the table has room");
}

/// The concatenated keys of all versions.
pub(super) fn keys(memtable: &Memtable) -> String {
    memtable.all_versions().flat_map(|version| version.key).copied().map(char::from).collect()
}

/// Like [`keys`], for a table at rest; also validates the table.
pub(super) fn settled(memtable: &Memtable) -> String {
    memtable.validate();
    keys(memtable)
}

/// Stores one of two keys, then searches for the other.
pub(super) fn store_and_look(memtable: &Memtable, keys: [&[u8]; 2], number: usize) -> &'static str {
    put(memtable, keys[number], b"v");
    if memtable.get(keys[1 - number], 1) == Lookup::Value(b"v") { "meets" } else { "alone" }
}

/// The observations of two threads that [store and look](store_and_look): the thread that links second finds the other's key.
pub(super) const MEETINGS: &[&str] = &["alone | meets", "meets | alone", "meets | meets"];
