//! The names of the files in a database directory, and the single counter that numbers them.
//!
//! A number is assigned only once in the lifetime of a database, for whatever kind of file: recovery starts the counter above every number in the
//! manifest or the directory. So a name is never reused for another file, except that of a log without frames, which a close or a failed open has
//! removed: no other file refers to it, it was never replayed, and the new log's salt differs.

use std::ffi::OsStr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::{table, wal};

/// The largest file number, so that the counter never overflows.
pub(crate) const MAX_FILE_NUMBER: u64 = u64::MAX >> 1;
pub(crate) const LOCK: &str = "LOCK";
pub(crate) const CURRENT: &str = "CURRENT";
pub(crate) const CURRENT_TMP: &str = "CURRENT.tmp";
const MANIFEST_PREFIX: &str = "MANIFEST-";
/// The file that marks a directory as incomplete, unless it has a `CURRENT` too: see `db/care/new_directory.rs`.
pub(crate) const INCOMPLETE: &str = "INCOMPLETE";
/// The file that reserves space for a full disk: see `db/core/reserve.rs`.
pub(crate) const RESERVE: &str = "RESERVE";
/// The file that marks a database that [`Salvage::write_to`](crate::Salvage::write_to) made: it may lack what was acknowledged. The engine itself ignores
/// it. The storage for consensus refuses such a database, and so does not vote without what it had promised.
pub const REPAIRED: &str = "REPAIRED";
/// The note of a close: see `close_note.rs`.
pub(crate) const CLOSED: &str = "CLOSED";
/// The suffix of a suspect file: it is kept for examination by people, and every later open ignores it.
pub(crate) const ASIDE: &str = ".aside";
/// The suffix of a torn tail of a log that is set aside. It differs from that of a whole log: the same log may lose its tail in one recovery and be
/// set aside in the next.
pub(crate) const TAIL_ASIDE: &str = ".tail.aside";

/// The kind of a file in the database directory, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Lock,
    Current,
    /// A `CURRENT` that was still being written when the process ended.
    CurrentTmp,
    /// The file of an obsolete log, kept for the next log.
    Spare,
    /// The file that reserves space for a full disk.
    Reserve,
    /// The note of a close.
    Closed,
    /// The mark of a directory that is still being written.
    Incomplete,
    /// The mark of a database that was made by a salvage.
    Repaired,
    Manifest(u64),
    Log(u64),
    Table(u64),
    /// A suspect that an earlier recovery has set aside, with its number.
    Aside(u64),
    Foreign,
}

impl FileKind {
    /// The number of the file, if it is a table in use.
    pub(crate) fn table(&self) -> Option<u64> {
        if let FileKind::Table(number) = *self { Some(number) } else { None }
    }

    /// Determines the kind from a file name.
    pub(crate) fn of(name: &OsStr) -> FileKind {
        let Some(name) = name.to_str() else { return FileKind::Foreign };
        match name {
            LOCK => return FileKind::Lock,
            CURRENT => return FileKind::Current,
            CURRENT_TMP => return FileKind::CurrentTmp,
            wal::SPARE => return FileKind::Spare,
            INCOMPLETE => return FileKind::Incomplete,
            RESERVE => return FileKind::Reserve,
            REPAIRED => return FileKind::Repaired,
            CLOSED => return FileKind::Closed,
            _ => {}
        }
        if let Some(number) = name.strip_suffix(TAIL_ASIDE).and_then(|log| within_limit(wal::parse_file_name(log))) {
            return FileKind::Aside(number);
        }
        if let Some(original) = name.strip_suffix(ASIDE) {
            return FileKind::of(OsStr::new(original)).number().map_or(FileKind::Foreign, FileKind::Aside);
        }
        if let Some(digits) = name.strip_prefix(MANIFEST_PREFIX) {
            // The name must have exactly the spelling that the engine writes: no sign, no extra zeros.
            let number = digits.parse().ok().filter(|&number| manifest_name(number) == name);
            return within_limit(number).map_or(FileKind::Foreign, FileKind::Manifest);
        }
        let log = within_limit(wal::parse_file_name(name)).map(FileKind::Log);
        let table = within_limit(table::parse_file_name(name)).map(FileKind::Table);
        log.or(table).unwrap_or(FileKind::Foreign)
    }

    /// Like [`FileKind::of`], but for a file that was set aside, its original kind.
    pub(crate) fn before_aside(name: &OsStr) -> FileKind {
        let original = name.to_str().and_then(|name| name.strip_suffix(TAIL_ASIDE).or(name.strip_suffix(ASIDE)));
        FileKind::of(original.map_or(name, OsStr::new))
    }

    /// The number in the name, for kinds that have one.
    pub(crate) fn number(self) -> Option<u64> {
        match self {
            FileKind::Manifest(n) | FileKind::Log(n) | FileKind::Table(n) | FileKind::Aside(n) => Some(n),
            _ => None,
        }
    }
}

pub(crate) fn manifest_name(number: u64) -> String {
    format!("{MANIFEST_PREFIX}{number:06}")
}

/// A number above the maximum does not belong to the engine: the counter could not continue after it.
fn within_limit(number: Option<u64>) -> Option<u64> {
    number.filter(|&number| number <= MAX_FILE_NUMBER)
}

/// Assigns file numbers.
#[derive(Debug)]
pub(crate) struct FileNumbers(AtomicU64);

impl FileNumbers {
    /// A counter that assigns `next` first.
    pub(crate) fn starting_at(next: u64) -> FileNumbers {
        FileNumbers(AtomicU64::new(next))
    }

    /// Assigns a new number, which is never assigned again.
    ///
    /// # Errors
    /// [`Error::Full`] once all numbers are used: a name or an edit with a higher number could not be read again.
    pub(crate) fn allocate(&self) -> Result<u64> {
        // The number is below the limit, so that the one after it can still be recorded as the next.
        let following = |number: u64| (number < MAX_FILE_NUMBER).then(|| number + 1);
        // Relaxed: only uniqueness matters; the files themselves are published in other ways.
        let allocated = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, following);
        allocated.map_err(|_| Error::Full(format!("file numbers are used up: expected one below {MAX_FILE_NUMBER}")))
    }

    pub(crate) fn next(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_before_they_reach_what_no_name_or_edit_may_hold() {
        // Catches a counter that exceeds the limit: the next open would reject what this one wrote.
        let numbers = FileNumbers::starting_at(MAX_FILE_NUMBER - 1);
        assert_eq!(numbers.allocate().unwrap(), MAX_FILE_NUMBER - 1);
        for _ in 0..2 {
            assert!(matches!(numbers.allocate(), Err(Error::Full(_))));
            assert_eq!(numbers.next(), MAX_FILE_NUMBER);
        }
    }

    #[test]
    fn only_our_own_spelling_of_a_name_is_ours() {
        // Catches a careless parser, which would cause a user's `+12.log` to be deleted as an orphan.
        let of = |name: &str| FileKind::of(OsStr::new(name));
        assert_eq!(of("000012.log"), FileKind::Log(12));
        assert_eq!(of("1234567.sst"), FileKind::Table(1_234_567));
        assert_eq!(of("MANIFEST-000003"), FileKind::Manifest(3));
        assert_eq!((of("SPARE"), wal::parse_file_name("SPARE")), (FileKind::Spare, None));
        assert_eq!(of("000012.log.aside"), FileKind::Aside(12));
        assert_eq!(of("000012.log.tail.aside"), FileKind::Aside(12));
        for foreign in [
            "12.log",
            "+00012.log",
            "0000012.log",
            "000012.txt",
            "MANIFEST-",
            "MANIFEST-3",
            "x.aside",
            "SPARE.aside",
            "SPARE.log",
            "LOCK.aside",
            "000012.sst.tail.aside",
            "12.log.tail.aside",
            ".log",
            "a",
            "18446744073709551615.log",
        ] {
            assert_eq!(of(foreign), FileKind::Foreign, "{foreign}");
        }
    }
}
