//! The shape of a cell, the same in every round: the keys, their number, their accesses, and their store.

use std::fmt;

use bench_keys::KeySet;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::name;

/// The default lengths of keys and values, in bytes.
pub(crate) const KEY_LEN: usize = 16;
pub(crate) const VALUE_LEN: usize = 100;

/// The most bytes of a table for each entry, beyond its key and value: two boxes, links, and the rounding of allocators.
const TABLE_OVERHEAD: u64 = 160;
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
    /// In bytes.
    pub(crate) fn longest_key(&self) -> usize {
        self.keys.longest(self.key_len)
    }

    /// An upper estimate of the bytes of all keys and values.
    pub(crate) fn payload(&self) -> u64 {
        (self.longest_key() as u64 + self.value_len as u64).saturating_mul(self.entries as u64)
    }

    /// An upper estimate of a filled table's memory, in bytes.
    pub(crate) fn table_memory(&self) -> u64 {
        self.payload().saturating_add(TABLE_OVERHEAD.saturating_mul(self.entries as u64))
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

/// A short form of a count: 3000000 as 3M, and 466000 as 466K.
pub(crate) fn short(count: usize) -> String {
    let unit = [(1_000_000, "M"), (1000, "K")].into_iter().find(|(unit, _)| count > 0 && count.is_multiple_of(*unit));
    unit.map_or_else(|| count.to_string(), |(unit, letter)| format!("{}{letter}", count / unit))
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", name(self.keys), short(self.entries))?;
        if (self.key_len, self.value_len) != (KEY_LEN, VALUE_LEN) {
            write!(f, " of {} and {} bytes", self.key_len, self.value_len)?;
        }
        f.write_str(if self.access == Access::Zipfian { ", zipfian" } else { "" })?;
        if self.threads > 1 {
            write!(f, ", {} threads", self.threads)?;
        }
        if !matches!(self.store, Store::Table | Store::Engine) {
            write!(f, ", {}", name(self.store))?;
        }
        Ok(())
    }
}
