//! The steps of a [`Run`](super::Run), as data.

use std::ops::Bound;
use std::time::Duration;

use mini_engine::{Compaction, Compression, KeyspaceOptions, MemtableKind};

/// A keyspace of the model.
#[derive(Debug)]
pub struct Space {
    pub(super) name: &'static str,
    pub(super) compression: Option<Compression>,
    /// The seconds after which its entries expire by default.
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
    /// Inserts an entry, with the expiry that its keyspace gives by default.
    Insert(Key, usize),
    /// For this many seconds, or for ever, whatever the keyspace's lifetime.
    InsertFor(Key, usize, Option<u64>),
    /// Removes a key.
    Remove(Key),
    /// Removes all keys within bounds, which may be inverted: then it is no operation.
    RemoveRange(Bounds),
    /// Removes all keys that begin with this.
    RemovePrefix(Key),
}

/// A step in the present keyspace.
#[derive(Clone, Debug)]
pub enum Step {
    /// A write by itself.
    Write(Op),
    /// From now on for this many seconds, or for ever.
    SetExpiry(Key, Option<u64>),
    /// Seconds pass.
    Pass(u64),
    /// Writes together, synced or not. Every fourth one goes to the next keyspace.
    Batch(Vec<Op>, bool),
    /// The same in a transaction; before its commit another one writes to a key of this keyspace.
    Transact(Vec<Op>, Option<(usize, Key)>),
    /// Sorted entries from outside, of this many keys, at least one.
    Load(Vec<Key>, usize),
    /// Takes the first entry.
    PopFirst,
    /// Takes the last entry.
    PopLast,
    /// Flushes the memtable.
    Flush,
    /// Syncs the log.
    Persist,
    /// Keeps a snapshot, which is compared from now on.
    TakeSnapshot,
    /// Drops the oldest snapshot.
    DropSnapshot,
    /// Steps go on in another keyspace.
    Enter(usize),
    /// The keyspace is dropped, and made again.
    DropKeyspace,
    /// The database ends and is opened again, with other options.
    Reopen(End, Chosen),
    /// Compacts a range.
    CompactRange(Bounds),
    /// Waits for the compactions that are due.
    WaitForCompactions,
    /// A walk of a range from both ends, in the order that the bits give, with a seek in between.
    Walk(Bounds, Vec<bool>, Option<Key>),
    /// Reads all keys that begin with this.
    Prefix(Key),
    /// Moves a cursor forward where a bit is set, and otherwise back.
    Cursor(Key, Vec<bool>),
}

/// How a database ends. On the system's files it is always closed or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By `close`.
    Close,
    /// By a plain drop.
    Drop,
    /// The process is killed.
    Kill,
    /// The power is cut; the seed decides what is left of the unsynced data.
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
