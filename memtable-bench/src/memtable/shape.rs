//! What every round of a cell has in common: the keys, how many, and how they are used.

use std::fmt;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::keys::{KeySet, Source};
use crate::numbers::grouped;

/// The length of keys and values unless arguments say otherwise, in bytes.
pub(crate) const KEY_LEN: usize = 16;
pub(crate) const VALUE_LEN: usize = 100;

/// What the greediest table takes beyond an entry's key and value, in bytes: two boxes, links, and what allocators round up.
const TABLE_OVERHEAD: u128 = 160;

/// How often each key is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Access {
    /// Every key once
    Uniform,
    /// A few keys most of the time: Zipf's distribution, theta 0.99
    Zipfian,
}

impl Access {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipfian => "zipfian",
        }
    }
}

/// See the file's header. As arguments, what a round's process is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args, Serialize, Deserialize)]
pub(crate) struct Shape {
    #[arg(long, value_enum)]
    pub(crate) keys: KeySet,
    #[arg(long, value_enum)]
    pub(crate) access: Access,
    #[arg(long)]
    pub(crate) entries: usize,
    #[arg(long)]
    pub(crate) threads: usize,
    /// In bytes; of no meaning for paths, which have lengths of their own.
    #[arg(long)]
    pub(crate) key_len: usize,
    /// In bytes.
    #[arg(long)]
    pub(crate) value_len: usize,
}

impl Shape {
    /// The arguments that say it.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let name = |name: &str, value: &dyn fmt::Display| [format!("--{name}"), value.to_string()];
        [
            name("keys", &self.keys.name()),
            name("access", &self.access.name()),
            name("entries", &self.entries),
            name("threads", &self.threads),
            name("key-len", &self.key_len),
            name("value-len", &self.value_len),
        ]
        .concat()
    }

    pub(crate) fn source(&self) -> Source {
        Source { set: self.keys, len: self.key_len, entries: self.entries }
    }

    /// An estimate from above of what the filled table takes, in bytes.
    pub(crate) fn table_memory(&self) -> u128 {
        (self.source().longest() as u128 + self.value_len as u128 + TABLE_OVERHEAD) * self.entries as u128
    }

    /// An estimate from above of what a round needs, in bytes.
    pub(crate) fn memory(&self) -> u128 {
        let key = self.source().longest() as u128;
        // The keys to store, those to look up, each with where it ends; the order to compare with, and what an ordered
        // read has to yield.
        let input = 2 * (key + 8) + 40;
        // Mixed workloads make half as many entries again, and have keys of their own.
        3 * self.table_memory() / 2 + (input + key) * self.entries as u128
    }

    /// When to give a round up for hung: far more than the slowest subject needs.
    pub(crate) fn patience(&self) -> Duration {
        let each = Duration::from_micros(200).saturating_mul(self.entries.try_into().unwrap_or(u32::MAX));
        Duration::from_secs(60) + each
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keys, access, entries, threads, key_len, value_len } = self;
        let keys = match (keys.has_one_length(), keys.name()) {
            (true, name) => format!("{name} keys of {key_len} bytes"),
            (false, name) => name.into(),
        };
        let access = if *access == Access::Uniform { "" } else { ", zipfian access" };
        let threads = if *threads == 1 { "1 thread".into() } else { format!("{threads} threads") };
        let entries = grouped(*entries);
        write!(f, "{entries} entries, {keys}, values of {value_len} bytes, {threads}{access}")
    }
}
