//! The shape of a cell, the same in every round: the keys, their number, their accesses, and their store.

use std::fmt;
use std::time::Duration;

use bench_keys::KeySet;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::text::{grouped, name, short};

/// The default lengths of keys and values, in bytes.
pub(crate) const KEY_LEN: usize = 16;
pub(crate) const VALUE_LEN: usize = 100;

/// The most bytes of a table for each entry, beyond its key and value: two boxes, links, and the rounding of allocators.
const TABLE_OVERHEAD: u128 = 160;

/// The bytes of the input for each entry, beyond its keys: the operations of a workload, and the map of their expected results.
const INPUT_OVERHEAD: u128 = 120;

const MIB: u64 = 1 << 20;
/// The least memory of an engine's cache or memtable, in bytes.
const LEAST: u64 = 64 << 10;

/// How often each key is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Access {
    /// Every key once
    Uniform,
    /// A few keys most of the time: Zipf's distribution, theta 0.99
    Zipfian,
}

/// The holder of the records: a sorted table in memory, or an engine with files of its own; and the memory that engines get.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Store {
    /// A table in memory
    #[default]
    #[value(skip)]
    Table,
    /// An engine with a cache of 128 MiB and memtables of 64 MiB
    Engine,
    /// The same with a cache of 32 MiB
    SmallCache,
    /// A cache of a tenth of the data, and memtables of a quarter of that
    TenTimesCache,
}

impl Store {
    pub(crate) fn is_table(&self) -> bool {
        *self == Self::Table
    }
}

/// A shape: see the file's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shape {
    pub(crate) keys: KeySet,
    pub(crate) access: Access,
    pub(crate) entries: usize,
    pub(crate) threads: usize,
    /// In bytes. Without effect on paths, which have lengths of their own.
    pub(crate) key_len: usize,
    /// In bytes.
    pub(crate) value_len: usize,
    #[serde(default, skip_serializing_if = "Store::is_table")]
    pub(crate) store: Store,
}

impl Shape {
    /// A table, one thread, uniform access, keys and values of the usual lengths.
    pub(crate) const fn new(keys: KeySet, entries: usize) -> Self {
        let (access, key_len, value_len, store) = (Access::Uniform, KEY_LEN, VALUE_LEN, Store::Table);
        Self { keys, access, entries, threads: 1, key_len, value_len, store }
    }

    /// A table of the published crate's own README.
    pub(crate) const fn published(keys: KeySet, entries: usize, threads: usize) -> Self {
        Self { key_len: 64, value_len: 12, threads, ..Self::new(keys, entries) }
    }

    pub(crate) const fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    pub(crate) const fn in_store(self, store: Store) -> Self {
        Self { store, ..self }
    }

    /// A short description.
    pub(crate) fn brief(&self) -> String {
        let Self { keys, access, entries, threads, key_len, .. } = self;
        let has_length = keys.has_one_length() && *key_len != KEY_LEN;
        let length = if has_length { format!(" of {key_len} B") } else { String::new() };
        let access = if *access == Access::Zipfian { ", zipfian" } else { "" };
        let threads = if *threads > 1 { format!(", {threads} threads") } else { String::new() };
        let store = match self.store {
            Store::Table | Store::Engine => String::new(),
            other => format!(", {}", name(other)),
        };
        format!("{} {}{length}{access}{threads}{store}", name(*keys), short(*entries))
    }

    /// In bytes.
    pub(crate) fn longest_key(&self) -> usize {
        self.keys.longest(self.key_len)
    }

    /// An upper estimate of the filled table's memory, in bytes.
    pub(crate) fn table_memory(&self) -> u128 {
        (self.longest_key() as u128 + self.value_len as u128 + TABLE_OVERHEAD) * self.entries as u128
    }

    /// An upper estimate of a round's memory, in bytes.
    pub(crate) fn memory(&self) -> u128 {
        // Mixed workloads store up to six tenths more. The keys of the input come twice, as they are stored and as they are read.
        let keys = 3 * self.longest_key() as u128;
        8 * self.table_memory() / 5 + (keys + INPUT_OVERHEAD) * self.entries as u128
    }

    /// The time after which a round counts as hung: far more than the slowest subject needs. Engines fill several databases, and sync them.
    pub(crate) fn time_limit(&self) -> Duration {
        let micros = if self.store.is_table() { 200 } else { 1000 };
        Duration::from_secs(60)
            + Duration::from_micros(micros).saturating_mul(self.entries.try_into().unwrap_or(u32::MAX))
    }

    /// An upper estimate of the bytes of all keys and values.
    pub(crate) fn payload(&self) -> u64 {
        (self.longest_key() as u64 + self.value_len as u64).saturating_mul(self.entries as u64)
    }

    /// The block cache of an engine, in bytes.
    pub(crate) fn cache_bytes(&self) -> u64 {
        match self.store {
            Store::Table | Store::Engine => 128 * MIB,
            Store::SmallCache => 32 * MIB,
            Store::TenTimesCache => (self.payload() / 10).max(LEAST),
        }
    }

    /// A memtable of an engine, a full table on disk, and the first level that has a bound, in bytes.
    pub(crate) fn memtable_bytes(&self) -> u64 {
        if self.store == Store::TenTimesCache { (self.payload() / 40).max(LEAST) } else { 64 * MIB }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keys, access, entries, threads, key_len, value_len, store } = self;
        write!(f, "{} entries, {}", grouped(*entries), name(*keys))?;
        if keys.has_one_length() {
            write!(f, " keys of {key_len} bytes")?;
        }
        let plural = if *threads == 1 { "" } else { "s" };
        write!(f, ", values of {value_len} bytes, {threads} thread{plural}")?;
        f.write_str(if *access == Access::Uniform { "" } else { ", zipfian access" })?;
        if store.is_table() {
            return Ok(());
        }
        let [cache, memtable] =
            [self.cache_bytes(), self.memtable_bytes()].map(|bytes| bytes as f64 / (1 << 20) as f64);
        let digits = usize::from(cache < 10.0);
        write!(f, "; a database with a cache of {cache:.digits$} MiB, memtables of {memtable:.digits$} MiB")
    }
}
