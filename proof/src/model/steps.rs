//! The steps of a [`Run`](super::Run), as data.

use std::ops::Bound;
use std::time::Duration;

use mini_engine::{Compaction, Compression, KeyspaceOptions, MemtableKind};

/// A keyspace of the model.
#[derive(Debug)]
pub struct Space {
    pub(super) name: &'static str,
    pub(super) compression: Option<Compression>,
    /// The default lifetime of its entries in seconds.
    pub(super) lifetime: Option<u64>,
}

/// The default keyspace comes first.
pub const SPACES: [Space; 3] = [
    Space { name: "", compression: None, lifetime: None },
    Space { name: "a", compression: None, lifetime: Some(6) },
    Space { name: "b", compression: Some(Compression::Zstd { level: 1 }), lifetime: None },
];

impl Space {
    pub(super) fn options(&self) -> KeyspaceOptions {
        let mut options = KeyspaceOptions::default();
        if let Some(compression) = self.compression {
            options = options.compression(compression);
        }
        if let Some(seconds) = self.lifetime {
            options = options.expire_after(Duration::from_secs(seconds));
        }
        options
    }
}

/// A key.
pub type Key = Vec<u8>;
/// The keys between two bounds.
pub type Bounds = (Bound<Key>, Bound<Key>);

/// A write, with the length of its value.
#[derive(Clone, Debug)]
pub enum Op {
    /// Inserts an entry with the default expiry of its keyspace.
    Insert(Key, usize),
    /// Inserts an entry that expires after the given seconds, or never, whatever the keyspace's default.
    InsertFor(Key, usize, Option<u64>),
    /// Removes a key.
    Remove(Key),
    /// Removes all keys within bounds. With inverted bounds this does nothing.
    RemoveRange(Bounds),
    /// Removes all keys that begin with this.
    RemovePrefix(Key),
}

/// A step in the present keyspace.
#[derive(Clone, Debug)]
pub enum Step {
    /// A write by itself.
    Write(Op),
    /// Makes a key expire after the given seconds, or never.
    SetExpiry(Key, Option<u64>),
    /// Moves the clock forward by the given seconds.
    Pass(u64),
    /// A batch of writes, synced or not. Every fourth write goes to the next keyspace.
    Batch(Vec<Op>, bool),
    /// The given writes in a transaction. With a keyspace and a key, another writer writes that key before the commit.
    Transact(Vec<Op>, Option<(usize, Key)>),
    /// A bulk load of entries with these keys (at least one), and values of this length.
    Load(Vec<Key>, usize),
    /// Takes the first entry.
    PopFirst,
    /// Takes the last entry.
    PopLast,
    /// Flushes the memtable.
    Flush,
    /// Syncs the log.
    Persist,
    /// Takes a snapshot, which is compared from now on.
    TakeSnapshot,
    /// Drops the oldest snapshot.
    DropSnapshot,
    /// Changes the keyspace of the following steps.
    Enter(usize),
    /// Drops the keyspace, and makes it again.
    DropKeyspace,
    /// Ends the database, and opens it again with other options.
    Reopen(End, Chosen),
    /// Compacts a range.
    CompactRange(Bounds),
    /// Waits for the compactions that are due.
    WaitForCompactions,
    /// Walks a range from both ends, one end for each bit, with a seek in between.
    Walk(Bounds, Vec<bool>, Option<Key>),
    /// Reads all keys that begin with this.
    Prefix(Key),
    /// Moves a cursor forward where a bit is set, and otherwise back.
    Cursor(Key, Vec<bool>),
}

/// The end of a database. On the system's files it is always closed or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By `close`.
    Close,
    /// By a plain drop.
    Drop,
    /// The process is killed.
    Kill,
    /// The power is cut; the seed chooses the unsynced data that survives.
    PowerCut(u64),
}

/// Options that must not change the results of reads.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    /// The policy of compaction.
    pub policy: Compaction,
    /// The size of a level relative to the one above.
    pub ratio: u64,
    /// The kind of memtables.
    pub memtable: MemtableKind,
    /// The size of a memtable.
    pub memtable_bytes: usize,
    /// Bits of filter for each key.
    pub filter_bits: u32,
}
