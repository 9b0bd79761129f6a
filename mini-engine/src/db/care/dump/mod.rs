//! Shows the contents of single files of a database: logs, tables, manifests.
//!
//! A file is read by itself, in any directory: no database is opened or changed. The file's name must contain its number, because checksums depend on
//! the number; names of files that recovery has set aside (`.aside`) still contain it. Damage to one part does not hide the others.

mod log;
mod manifest;
mod table;

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::time::SystemTime;

use crate::error::Error;
use crate::manifest::FileKind;
use crate::types::{
    DEFAULT_KEYSPACE, Kind, SeqNo, Shown, millis, split_expiry, split_range, split_stored, system_time,
};

pub use self::log::{log, log_entries};
pub use self::manifest::manifest;
pub use self::table::{table, table_entries};

/// The kind of a [`Part`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartKind {
    /// A frame of a log, which holds one batch; its operations follow.
    Frame,
    /// An operation of a log, or an entry of a table.
    Entry,
    /// The properties of a table.
    Table,
    /// A partition of a table; its data blocks follow.
    Partition,
    /// A data block of a table; its entries follow.
    Block,
    /// An edit of a manifest.
    Edit,
    /// Bytes that are neither a frame nor an edit, as a crash can leave them.
    Torn,
    /// A part that cannot be read.
    Damage,
    /// The end of a log or a manifest.
    End,
}

/// A part of a file. It is displayed as a readable line of text; an edit as several lines.
#[derive(Debug)]
#[non_exhaustive]
pub struct Part<'a> {
    /// The kind of the part.
    pub kind: PartKind,
    /// The offset of the part in the file, in bytes; for an entry, the offset of its frame or block, and 0 for a range that a table removes.
    pub offset: u64,
    /// The length of the part in the file, in bytes; 0 for an entry, and if it is unknown.
    pub len: u64,
    /// The entry, for [`PartKind::Entry`].
    pub entry: Option<Entry<'a>>,
    text: fmt::Arguments<'a>,
}

/// Receives parts; no more are passed once it has returned `Break`.
pub type Parts<'a> = dyn FnMut(Part<'_>) -> ControlFlow<()> + 'a;

/// Shows the parts of a file, and keeps the first damage.
struct Show<'a> {
    parts: &'a mut Parts<'a>,
    damage: Option<Error>,
}

impl<'a> Show<'a> {
    fn new(parts: &'a mut Parts<'_>) -> Self {
        Self { parts, damage: None }
    }

    fn part(&mut self, kind: PartKind, Range { start, end }: Range<u64>, text: fmt::Arguments<'_>) -> ControlFlow<()> {
        (self.parts)(Part { kind, offset: start, len: end - start, entry: None, text })
    }

    fn entry(&mut self, offset: u64, entry: Entry<'_>) -> ControlFlow<()> {
        (self.parts)(Part { kind: PartKind::Entry, offset, len: 0, entry: Some(entry), text: format_args!("") })
    }

    fn damage(&mut self, bytes: Range<u64>, what: fmt::Arguments<'_>, error: Error) -> ControlFlow<()> {
        let going = self.part(PartKind::Damage, bytes, format_args!("{what} is damaged: {error}"));
        self.damage.get_or_insert(error);
        going
    }
}

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.entry {
            Some(entry) => write!(f, "  {entry}"),
            None => f.write_fmt(self.text),
        }
    }
}

/// An operation of a log, or an entry of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The sequence number of the entry.
    pub seqno: SeqNo,
    /// The number of the entry's keyspace, 0 for the default one. The manifest contains the keyspaces' names.
    pub keyspace: u32,
    /// The key of the entry; for the removal of a range, the first key.
    pub key: &'a [u8],
    /// For the removal of a range, its end: the first key that is not removed, or a position before that key; empty if the range extends to the end
    /// of its keyspace.
    pub end: Option<&'a [u8]>,
    /// The value; `None` for a removal.
    pub value: Option<&'a [u8]>,
    /// The time at which the entry expires, in the future or the past.
    pub expiry: Option<SystemTime>,
    /// Whether the entry follows damage in its log: writes before it are missing.
    pub is_behind_damage: bool,
}

/// Receives entries; no more are passed once it has returned `Break`.
pub type Entries<'a> = dyn FnMut(Entry<'_>) -> ControlFlow<()> + 'a;

impl<'a> Entry<'a> {
    /// An entry or an operation on a stored key, or on the range from the stored key to a stored end.
    fn new(seqno: SeqNo, stored: &'a [u8], stored_end: Option<&'a [u8]>, (kind, value): (Kind, &'a [u8])) -> Self {
        let split = match stored_end {
            Some(end) => split_range(stored, end).map(|(keyspace, key, end)| (keyspace, key, Some(end))),
            None => split_stored(stored).map(|(keyspace, key)| (keyspace, key, None)),
        };
        // If the key is damaged, its bytes are shown unchanged.
        let (keyspace, key, end) = split.unwrap_or((DEFAULT_KEYSPACE, stored, stored_end));
        let (value, expiry) = match kind {
            Kind::Value => (Some(value), None),
            Kind::Tombstone => (None, None),
            Kind::Expiring => {
                let (at, value) = split_expiry(value);
                (Some(value), Some(system_time(at)))
            }
        };
        Entry { seqno, keyspace, key, end, value, expiry, is_behind_damage: false }
    }
}

/// Displays the key with its keyspace, the sequence number, and the value or the removal; long keys and values are truncated.
impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Shown(self.key))?;
        if self.keyspace != DEFAULT_KEYSPACE {
            write!(f, " of keyspace {}", self.keyspace)?;
        }
        match self.end {
            None => {}
            Some([]) => write!(f, " and above")?,
            Some(end) => write!(f, " to before {}", Shown(end))?,
        }
        write!(f, " at {}", self.seqno)?;
        match self.value {
            None => write!(f, " removed")?,
            Some(value) => write!(f, " = {}", Shown(value))?,
        }
        self.expiry.map_or(Ok(()), |at| write!(f, ", expires at {}", millis(at)))
    }
}

/// The kind of file by its name; for a file that was set aside, its original kind.
fn kind(path: &Path) -> Option<FileKind> {
    path.file_name().map(FileKind::before_aside)
}

fn wrong_name(path: &Path, example: &str) -> Error {
    let what = "its number is in its name, and its checksums depend on that";
    Error::InvalidArgument(format!("{}: expected a name like {example}: {what}", path.display()))
}
