//! [`CloseNote`]: a close without errors leaves it in the file [`CLOSED`], and the next open need not write anew what it describes.
//!
//! An open cannot see by reading which bytes of a file are on the device: after a failed sync, or in the files of a killed process, they may be in the
//! page cache only (rule 7). So it usually writes everything anew. The process that closes the database knows that all of it is durable.
//!
//! C1 The note is written when the workers have ended and no write and no sync has failed. Then the manifest that it describes, and all logs from the
//!    manifest's log number on, are synced, and so are their names and `CURRENT`. Only the cut of a log's unused space is not synced, so no log is
//!    noted that has another one's frames there: undone in part, the cut leaves only zeros.
//! C2 Nothing writes to these files again. The next open begins another log, and its first edit another manifest; a recovery does the same. So a note
//!    stays true as long as the files exist, and is never synced or removed: a stale, torn or lost one only makes the next open recover. A tail that a
//!    recovery cuts off a noted log was added by another program, so the log has another time of change (C3).
//! C3 An open relies on the note only if these are the files of the directory, no more and no fewer, with the lengths, inodes and times of change that
//!    they had at the close. In a copy of the directory, or after another program has written to a file, it recovers.
//! C4 Files that are shorter than a note says have lost durable bytes: that is corruption, like a sync record that reaches behind the end of a log.

use std::io;
use std::path::Path;

use super::names::{CLOSED, CURRENT, manifest_name};
use crate::codec::checksum;
use crate::error::Error;
use crate::fs::FileSystem;
use crate::wal;

/// More bytes than a note can have.
const MAX_LEN: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CloseNote {
    manifest: u64,
    manifest_len: u64,
    /// The end of the last log.
    end: wal::Position,
    /// The checksum of [`stamps`].
    files: u64,
}

impl CloseNote {
    /// The note in `dir`, if there is a whole one.
    pub(crate) fn load(fs: &dyn FileSystem, dir: &Path) -> Option<Self> {
        let file = fs.open(&dir.join(CLOSED)).ok()?;
        let mut line = [0; MAX_LEN];
        let line = line.get_mut(..usize::try_from(file.len().ok()?).ok()?)?;
        file.read_exact_at(line, 0).ok()?;
        Self::parse(std::str::from_utf8(line).ok()?)
    }

    /// Notes that manifest and logs (number and length, ascending) are durable.
    pub(crate) fn store(fs: &dyn FileSystem, dir: &Path, manifest: (u64, u64), logs: &[(u64, u64)]) -> io::Result<()> {
        let numbers = logs.iter().map(|&(number, _)| number);
        let (Some(files), Some(&(log, offset))) = (stamps(fs, dir, manifest.0, numbers)?, logs.last()) else {
            return Ok(());
        };
        let end = wal::Position { log, offset };
        let line = Self { manifest: manifest.0, manifest_len: manifest.1, end, files }.line();
        let path = dir.join(CLOSED);
        // A new file, since a backup may share the old one.
        drop(fs.remove(&path));
        fs.create_new(&path)?.write_all_at(line.as_bytes(), 0)
    }

    /// Whether these files of `dir` are the ones that the note describes, and unchanged (C3).
    pub(crate) fn covers(&self, fs: &dyn FileSystem, dir: &Path, manifest: u64, logs: &[u64]) -> bool {
        // A session that was killed has left another log or manifest, so no file need be opened.
        (manifest, logs.last()) == (self.manifest, Some(&self.end.log))
            && stamps(fs, dir, manifest, logs.iter().copied()).is_ok_and(|files| files == Some(self.files))
    }

    /// The position up to which the logs were synced.
    pub(crate) fn synced(&self) -> wal::Position {
        self.end
    }

    /// The error, if manifest `number`, in the file `path`, ends at `end` although more of it was synced (C4).
    pub(super) fn contradiction(&self, path: &Path, number: u64, end: u64) -> Option<Error> {
        let len = self.manifest_len;
        let what = || format!("edit: expected valid ones up to offset {len}, as {CLOSED} records; found none");
        (number == self.manifest && end < len).then(|| Error::corruption(path, end, what()))
    }

    fn line(&self) -> String {
        let Self { manifest, manifest_len, end: wal::Position { log, offset }, files } = self;
        let text = format!("mini-engine closed {manifest} {manifest_len} {log} {offset} {files:016x}");
        format!("{text} {:016x}\n", checksum(text.as_bytes(), 0))
    }

    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').skip(2).collect();
        let &[manifest, manifest_len, log, offset, files, _] = &*words else { return None };
        let end = wal::Position { log: log.parse().ok()?, offset: offset.parse().ok()? };
        let (manifest, manifest_len) = (manifest.parse().ok()?, manifest_len.parse().ok()?);
        let note = Self { manifest, manifest_len, end, files: u64::from_str_radix(files, 16).ok()? };
        // There is exactly one line for a note.
        (note.line() == line).then_some(note)
    }
}

/// The checksum of names, lengths and stamps of the files; `None` if the file system has no stamps.
fn stamps(fs: &dyn FileSystem, dir: &Path, manifest: u64, logs: impl Iterator<Item = u64>) -> io::Result<Option<u64>> {
    let mut text = String::new();
    for name in logs.map(wal::file_name).chain([manifest_name(manifest), CURRENT.to_owned()]) {
        let file = fs.open(&dir.join(&name))?;
        let Some(stamp) = file.stamp()? else { return Ok(None) };
        text += &format!("{name} {} {stamp:?}\n", file.len()?);
    }
    Ok(Some(checksum(text.as_bytes(), 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_was_changed_is_not_used() {
        // Catches a torn note, or the rest of a longer one, that is taken for another end of the log.
        let end = wal::Position { log: 8, offset: 64 };
        let note = CloseNote { manifest: 7, manifest_len: u64::MAX, end, files: u64::MAX };
        let line = note.line();
        assert!(CloseNote::parse(&line) == Some(note) && line.len() < MAX_LEN);
        for at in 0..line.len() {
            let mut changed = line.clone().into_bytes();
            changed[at] ^= 1;
            assert_eq!(CloseNote::parse(std::str::from_utf8(&changed).unwrap()), None, "{at}");
            assert_eq!(CloseNote::parse(&line[..at]), None, "{at}");
        }
        assert_eq!(CloseNote::parse(&(line + "1")), None);
    }
}
