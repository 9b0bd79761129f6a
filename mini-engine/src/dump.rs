//! Shows the contents of single files of a database, as lines of text for people: logs, tables, manifests.
//!
//! A file is read by itself, wherever it is: no database is opened and nothing is changed. Its name must contain its number, as the engine gave it,
//! because checksums depend on the number; files that recovery has set aside (`.aside`) keep it.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::iter::EntryIter;
use crate::manifest::{self, FileKind, TAIL_ASIDE};
use crate::metrics::Counters;
use crate::options::TableReads;
use crate::table::{BlockCache, Lost, SalvageIter, Table, TableCache};
use crate::types::{
    BatchOp, DEFAULT_KEYSPACE, Kind, Lines, MAX_SEQNO, SeqNo, split_expiry, split_range, split_stored, system_time,
};
use crate::wal;

/// Shows the contents of the log at `path` in `fs`: each frame with its offset, sequence numbers and operations, and the end of the log. A torn end
/// is reported, with the whole frames behind it; it is no error, since a crash leaves one.
///
/// # Errors
/// [`Error::InvalidArgument`] if the name is not a log's; [`Error::Corruption`] with the offset of the damage, after the lines of everything before
/// it; [`Error::UnsupportedVersion`]; [`Error::Io`].
pub fn log(fs: &Arc<dyn FileSystem>, path: impl AsRef<Path>, lines: &mut Lines<'_>) -> Result<()> {
    let path = path.as_ref();
    match kind(path) {
        Some(FileKind::Log(number)) => wal::dump(&**fs, path, number, begin(fs, path, number)?, lines),
        _ => Err(wrong_name(path, "000012.log")),
    }
}

/// Shows the contents of the table at `path` in `fs`: its counts and bounds, each data block with its offset and fence, and each entry.
///
/// # Errors
/// The same as for [`log`]; a damaged block is reported in its place, and after all lines the first one is the error.
pub fn table(fs: &Arc<dyn FileSystem>, path: impl AsRef<Path>, lines: &mut Lines<'_>) -> Result<()> {
    let path = path.as_ref();
    let Some(FileKind::Table(number)) = kind(path) else { return Err(wrong_name(path, "000012.sst")) };
    let counters = Arc::new(Counters::default());
    // Each block is read once.
    let blocks = Arc::new(BlockCache::new(0, counters.clone()));
    let tables = TableCache::new(fs.clone(), PathBuf::new(), blocks, counters, (1, TableReads::Pread));
    Table::open(&tables, number, Some(path.to_path_buf()))?.dump(lines)
}

/// Shows the contents of the manifest at `path` in `fs`: each edit with its offset and its fields.
///
/// # Errors
/// The same as for [`log`].
pub fn manifest(fs: &Arc<dyn FileSystem>, path: impl AsRef<Path>, lines: &mut Lines<'_>) -> Result<()> {
    let path = path.as_ref();
    match kind(path) {
        Some(FileKind::Manifest(number)) => manifest::dump(&**fs, path, number, lines),
        _ => Err(wrong_name(path, "MANIFEST-000012")),
    }
}

/// An operation of a log, or an entry of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its sequence number.
    pub seqno: SeqNo,
    /// The number of its keyspace, 0 for the default one. The manifest has the names.
    pub keyspace: u32,
    /// Its key; for the removal of a range, the first key.
    pub key: &'a [u8],
    /// For the removal of a range, its end: the first key that it does not remove, or a place before that key; empty if it has no end in its keyspace.
    pub end: Option<&'a [u8]>,
    /// The value; `None` for a removal.
    pub value: Option<&'a [u8]>,
    /// The time from which on the key is absent, whether or not it has come.
    pub expiry: Option<SystemTime>,
    /// Whether it comes after damage in its log: writes before it are missing.
    pub is_behind_damage: bool,
}

/// Receives entries, until it returns `Break`.
pub type Entries<'a> = dyn FnMut(Entry<'_>) -> ControlFlow<()> + 'a;

/// Passes all readable operations of the log at `path` in `fs` to `entries`, in their order and complete: also those behind damage and behind a
/// torn end. A header with one damaged byte is corrected.
///
/// # Errors
/// The same as for [`log`]; [`Error::Corruption`] comes after everything that can be read, and names the first damage.
pub fn log_entries(fs: &Arc<dyn FileSystem>, path: impl AsRef<Path>, entries: &mut Entries<'_>) -> Result<()> {
    let path = path.as_ref();
    let Some(FileKind::Log(number)) = kind(path) else { return Err(wrong_name(path, "000012.log")) };
    let mut broke_off = false;
    let read = wal::salvage(&**fs, path, number, None, |frame, is_behind_damage| {
        for (op, seqno) in frame.readable_ops() {
            let (key, end, kind, stored): (_, _, _, &[u8]) = match op {
                BatchOp::Insert { key, value } => (key, None, Kind::Value, value),
                BatchOp::InsertExpiring { key, stored } => (key, None, Kind::Expiring, stored),
                BatchOp::Remove { key } => (key, None, Kind::Tombstone, &[]),
                BatchOp::RemoveRange { start, end } => (start, Some(end), Kind::Tombstone, &[]),
            };
            broke_off = entries(Entry { is_behind_damage, ..entry(seqno, key, end, (kind, stored)) }).is_break();
            if broke_off {
                // Any error ends the reading; this one is not reported.
                return Err(Error::Closed);
            }
        }
        Ok(())
    });
    if broke_off {
        return Ok(());
    }
    let mut read = read?;
    if let Some(unreadable) = read.unreadable.take() {
        return Err(unreadable);
    }
    let begin = begin(fs, path, number)?;
    let missing = read.missing.iter().map(|missing| missing.bytes.start.max(begin)..missing.bytes.end);
    let missing = missing.into_iter().find(|bytes| !bytes.is_empty()).map(|bytes| {
        let what = format!("no whole batch in bytes {} to {}", bytes.start, bytes.end);
        Error::corruption(path, bytes.start, what)
    });
    read.header.or(missing).map_or(Ok(()), Err)
}

/// Passes to `entries` the ranges that the table at `path` in `fs` removes, and then the newest version of each of its keys that they do not
/// remove, skipping damage.
///
/// # Errors
/// The same as for [`log_entries`].
pub fn table_entries(fs: &Arc<dyn FileSystem>, path: impl AsRef<Path>, entries: &mut Entries<'_>) -> Result<()> {
    let path = path.as_ref();
    let Some(FileKind::Table(number)) = kind(path) else { return Err(wrong_name(path, "000012.sst")) };
    let lost = Lost::default();
    let mut table = SalvageIter::open(fs.clone(), path.to_path_buf(), number, None, lost.clone())?;
    let ranges = table.range_tombstones();
    for part in ranges.parts() {
        let seqno = part.seqnos().next().unwrap_or(0);
        if entries(entry(seqno, part.start, Some(part.end), (Kind::Tombstone, &[]))).is_break() {
            return Ok(());
        }
    }
    table.seek_to_first()?;
    while table.valid() {
        let (key, seqno) = (table.key(), table.seqno());
        let is_shown = !table.repeats() && ranges.covering(key, MAX_SEQNO) < Some(seqno);
        if is_shown && entries(entry(seqno, key, None, (table.kind(), table.value()))).is_break() {
            return Ok(());
        }
        table.next()?;
    }
    lost.take().into_iter().next().map_or(Ok(()), |lost| Err(lost.cause))
}

/// The value of an entry, and when it expires.
fn value_of(kind: Kind, stored: &[u8]) -> (Option<&[u8]>, Option<SystemTime>) {
    match kind {
        Kind::Value => (Some(stored), None),
        Kind::Tombstone => (None, None),
        Kind::Expiring => {
            let (at, value) = split_expiry(stored);
            (Some(value), Some(system_time(at)))
        }
    }
}

/// An entry or an operation on a stored key, or on a range from there to a stored end.
fn entry<'a>(
    seqno: SeqNo,
    stored: &'a [u8],
    stored_end: Option<&'a [u8]>,
    (kind, value): (Kind, &'a [u8]),
) -> Entry<'a> {
    let split = match stored_end {
        Some(end) => split_range(stored, end).map(|(keyspace, key, end)| (keyspace, key, Some(end))),
        None => split_stored(stored).map(|(keyspace, key)| (keyspace, key, None)),
    };
    // A damaged key is shown as it is.
    let (keyspace, key, end) = split.unwrap_or((DEFAULT_KEYSPACE, stored, stored_end));
    let (value, expiry) = value_of(kind, value);
    Entry { seqno, keyspace, key, end, value, expiry, is_behind_damage: false }
}

/// The offset at which the written bytes begin in the log at `path`: in a kept torn end, behind the part from which it was cut off.
fn begin(fs: &Arc<dyn FileSystem>, path: &Path, number: u64) -> Result<u64> {
    let is_tail = path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(TAIL_ASIDE));
    if is_tail { wal::begin_of_tail(&**fs, path, number) } else { Ok(0) }
}

/// The kind of file by its name; for a file that was set aside, its former kind.
fn kind(path: &Path) -> Option<FileKind> {
    path.file_name().map(FileKind::before_aside)
}

fn wrong_name(path: &Path, example: &str) -> Error {
    let what = "its number is in its name, and its checksums depend on that";
    Error::InvalidArgument(format!("{}: expected a name like {example}: {what}", path.display()))
}
