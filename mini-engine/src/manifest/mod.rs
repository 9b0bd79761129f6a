//! The manifest: the durable record of the tables that form the database, and of the log from which replay starts.
//!
//! A manifest is a log of version edits. Its first record contains a whole version; each later record is an edit of it. `CURRENT` refers to the
//! manifest in use.
//!
//! Orders on which other parts rely:
//! * An edit is appended and synced before it takes effect. A table is synced, and its name in the directory too, before its edit is written (rules
//!   4, 6); the caller ensures that.
//! * After a failed append or sync nothing is ever appended again (rule 7): the contents of the file are unknown then, and a later edit after them
//!   could be dropped together with them at the next load.
//! * If an append finds no space, its bytes are cut off, and the cut is synced: so the edit did not happen and never will, and the caller may remove
//!   the files to which it referred. The manifest is then closed: the next edit begins a new manifest. If a crash comes before the new manifest is
//!   durable, the next open reads the old manifest without the edit. If the cut or its sync fails, the manifest has failed for good.
//! * If a new manifest cannot be created for lack of space or file handles, the old one stays current; edits continue in the old one unless it is
//!   closed. The remains of the new one are removed first, so that repeated attempts leave no files.
//! * An open never appends to the old manifest: it may be torn, or end with bytes whose sync failed and that exist only in the page cache. So each open
//!   begins a new one; after a close (`close_note.rs`) the first edit does. A new manifest is also begun in this way when one grows too large.
//! * A new manifest is complete, synced, and named in the directory, before `CURRENT` refers to it.

mod builder;
mod close_note;
mod compaction_stats;
mod current;
mod edit;
mod follow;
mod frame;
mod keyspaces;
mod load;
mod names;
mod state;
#[cfg(test)]
pub(crate) mod test_tables;
#[cfg(test)]
mod tests;
mod version;
mod walk;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::{self, File, FileSystem};

pub(crate) use close_note::CloseNote;
pub(crate) use compaction_stats::CompactionStats;
pub(crate) use current::load as load_current;
pub(crate) use follow::ManifestTail;
pub use keyspaces::MAX_KEYSPACE_NAME_LEN;
pub(crate) use keyspaces::{KeyspaceEdit, KeyspaceMeta, KeyspaceSet};
pub(crate) use load::{Loaded, load, load_number};
pub use names::REPAIRED;
pub(crate) use names::{
    ASIDE, CLOSED, CURRENT, CURRENT_TMP, FileKind, FileNumbers, INCOMPLETE, LOCK, RESERVE, TAIL_ASIDE, manifest_name,
};
pub(crate) use state::ManifestState;
pub(crate) use version::{CompactPointer, MAX_LEVELS, Run, RunId, Version, VersionEdit};
pub(crate) use walk::{EditAt, Edits};

/// A manifest grows to this number of bytes, or to [`GROWTH`] times its first record, before a new one is begun.
const ROLLOVER_BYTES: u64 = 1 << 20;
const GROWTH: u64 = 8;
/// An upper bound of the bytes of an edit's numbers that do not belong to a table.
const STATE_SLACK: u64 = 1 << 10;

/// Whether `CURRENT` still refers to manifest `before` after [`Manifest::create`] returned `error`. Then nothing refers to the files that were
/// written for the new manifest, and they may be removed.
pub(crate) fn is_still_current(fs: &dyn FileSystem, dir: &Path, before: Option<u64>, error: &Error) -> bool {
    // A rename that failed on the device may have taken effect on it nevertheless.
    let unknown = matches!(error, Error::Io { op: "rename", .. }) && !error.is_want_of_space();
    let changed = matches!(error, Error::Io { op: current::SYNC_POINTER, .. });
    // Without file handles the pointer could not be read.
    if error.is_want_of_handles() && !changed {
        return true;
    }
    !unknown && current::load(fs, dir).is_ok_and(|now| now == before)
}

/// Makes the manifest `number` durable with the content `bytes`, and then current.
fn publish(fs: &dyn FileSystem, dir: &Path, file: &dyn File, number: u64, bytes: &[u8]) -> Result<()> {
    let path = dir.join(manifest_name(number));
    file.write_all_at(bytes, 0).map_err(Error::io("write", &path))?;
    file.sync().map_err(Error::io("sync", &path))?;
    fs.sync_dir(dir).map_err(Error::io("sync", dir))?;
    current::store(fs, dir, number)
}

/// Removes the files that [`publish`] wrote for manifest `number`. A file that cannot be removed is an orphan for the next open.
fn remove_unpublished(fs: &dyn FileSystem, dir: &Path, number: u64) {
    for name in [CURRENT_TMP.to_owned(), manifest_name(number)] {
        match fs.remove(&dir.join(&name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(name, %error, "could not remove a manifest that was not completed");
            }
            _ => {}
        }
    }
}

/// The manifest in use: the only writer of version edits.
#[derive(Debug)]
pub(crate) struct Manifest {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    numbers: Arc<FileNumbers>,
    file: Arc<dyn File>,
    number: u64,
    len: u64,
    rollover_at: u64,
    max_edit_len: u64,
    state: ManifestState,
    /// For rule 7: set before each write and cleared after its success, so that it stays set if the writer panics.
    failed: bool,
    /// The error of the append that failed.
    cause: String,
    /// Set if an append found no space, or if another process has written the file: then the next edit begins a new manifest.
    is_closed: bool,
}

impl Manifest {
    /// Writes `state` as the first record of a new manifest and makes it current. After an error `CURRENT` refers to the old manifest or to the new
    /// one; both are synced. If it refers to the old one, the new file is removed.
    pub(crate) fn create(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        numbers: Arc<FileNumbers>,
        state: ManifestState,
    ) -> Result<Manifest> {
        let number = numbers.allocate()?;
        let before = current::load(&*fs, dir)?;
        let state = ManifestState { next_file_number: numbers.next(), ..state };
        let path = dir.join(manifest_name(number));
        let mut bytes = frame::header(number);
        let first = frame::frame(number, bytes.len() as u64, &edit::encode(&state.as_edit())?)?;
        bytes.extend_from_slice(&first);
        let file = fs.create_new(&path).map_err(Error::io("create", &path))?;
        let published = publish(&*fs, dir, &*file, number, &bytes);
        published.inspect_err(|error| {
            if is_still_current(&*fs, dir, before, error) {
                remove_unpublished(&*fs, dir, number);
            }
        })?;
        let len = bytes.len() as u64;
        let new = Manifest::of(fs, dir, numbers, file, (number, state));
        Ok(Manifest { len, rollover_at: ROLLOVER_BYTES.max(len.saturating_mul(GROWTH)), ..new })
    }

    /// The manifest `number` of `dir` with the contents `state`, for a read-only database: every append is rejected.
    pub(crate) fn read_only(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        numbers: Arc<FileNumbers>,
        number: u64,
        state: ManifestState,
    ) -> Result<Manifest> {
        let path = dir.join(manifest_name(number));
        let file = fs.open(&path).map_err(Error::io("open", &path))?;
        Ok(Manifest { failed: true, ..Manifest::of(fs, dir, numbers, file, (number, state)) })
    }

    /// The manifest that was `loaded` from `dir`, all of which is durable. The first edit begins a new one.
    pub(crate) fn resume(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        numbers: Arc<FileNumbers>,
        loaded: &Loaded,
    ) -> Result<Manifest> {
        let path = dir.join(manifest_name(loaded.number));
        let file = fs.open(&path).map_err(Error::io("open", &path))?;
        let len = file.len().map_err(Error::io("read the length of", &path))?;
        let old = Manifest::of(fs, dir, numbers, file, (loaded.number, loaded.state.clone()));
        Ok(Manifest { len, is_closed: true, ..old })
    }

    /// For a read-only database: the state that another process has written, to manifest `number`.
    pub(crate) fn show(&mut self, number: u64, state: ManifestState) {
        (self.number, self.state) = (number, state);
    }

    fn of(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        numbers: Arc<FileNumbers>,
        file: Arc<dyn File>,
        (number, state): (u64, ManifestState),
    ) -> Manifest {
        let (dir, max_edit_len) = (dir.to_path_buf(), frame::MAX_EDIT_LEN.into());
        let (len, rollover_at, failed, cause, is_closed) = (0, 0, false, String::new(), false);
        Manifest { fs, dir, numbers, file, number, len, rollover_at, max_edit_len, state, failed, cause, is_closed }
    }

    /// Makes `edit` durable and returns the version that results from it. If it fails and the manifest [is still usable](Self::is_usable), the edit
    /// has not happened. After any other error nothing can be appended any more, and it is unknown whether the next load will find the edit: the
    /// caller keeps the files of both outcomes.
    pub(crate) fn append(&mut self, edit: VersionEdit) -> Result<Arc<Version>> {
        if self.failed {
            let cause = format!("an earlier write to {} failed: {}", self.path().display(), self.cause);
            return Err(Error::ReadOnly { cause });
        }
        let edit = VersionEdit { next_file_number: Some(self.numbers.next()), ..edit };
        let state = self.state.apply(&edit).map_err(|what| Error::corruption(&self.path(), self.len, what))?;
        self.check_fits(&edit, &state)?;
        self.failed = true;
        let is_short = !self.is_closed && self.len < self.rollover_at;
        let written = if is_short { self.write(&edit, state) } else { self.roll_over(&edit, state) };
        written.inspect_err(|error| self.cause = error.to_string())?;
        self.failed = false;
        Ok(self.state.version.clone())
    }

    /// Rejects an edit if the whole state would then not fit into one edit: the next open, which writes the state, would fail.
    fn check_fits(&self, edit: &VersionEdit, state: &ManifestState) -> Result<()> {
        // All edits so far together with this one are at least as long as the state, except for a few numbers.
        let edit_len = edit::encode(edit)?.len() as u64;
        if self.len + edit_len + STATE_SLACK <= self.max_edit_len {
            return Ok(());
        }
        let len = edit::encode(&state.as_edit())?.len() as u64 + STATE_SLACK;
        match len.max(edit_len) <= self.max_edit_len {
            true => Ok(()),
            false => Err(Error::Full(format!(
                "a version of {len} bytes does not fit into one edit: at most {} are allowed",
                self.max_edit_len
            ))),
        }
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.failed
    }

    /// The state that results from all edits so far.
    pub(crate) fn state(&self) -> &ManifestState {
        &self.state
    }

    /// Checks that `CURRENT` refers to this manifest and that the file contains the edits that were written to it. After a failed write the contents
    /// of the file are unknown, so nothing is checked.
    pub(crate) fn check_file(&self) -> Result<()> {
        if self.failed {
            return Ok(());
        }
        let found = current::load(&*self.fs, &self.dir)?;
        if found != Some(self.number) {
            let what = format!("expected a pointer to manifest {}, found {found:?}", self.number);
            return Err(Error::corruption(&self.dir.join(CURRENT), 0, what));
        }
        let read = load_number(&*self.fs, &self.dir, self.number)?;
        match read.state == self.state && read.tail_bytes == 0 {
            true => Ok(()),
            false => {
                Err(Error::corruption(&self.path(), 0, "expected the edits that were written to it, found others"))
            }
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The length of the file. A new manifest with the present state is longer by at most [`STATE_SLACK`].
    pub(crate) fn bytes(&self) -> u64 {
        self.len
    }

    fn path(&self) -> PathBuf {
        self.dir.join(manifest_name(self.number))
    }

    fn write(&mut self, edit: &VersionEdit, state: ManifestState) -> Result<()> {
        let path = self.path();
        let frame = frame::frame(self.number, self.len, &edit::encode(edit)?)?;
        let written = self.file.write_all_at(&frame, self.len).map_err(Error::io("write", &path));
        written.map_err(|error| self.close_if_full(error))?;
        self.file.sync().map_err(Error::io("sync", &path))?;
        self.len += frame.len() as u64;
        self.state = state;
        Ok(())
    }

    /// Durably cuts off the remains of an append that found no space, and closes the manifest.
    #[cold]
    fn close_if_full(&mut self, error: Error) -> Error {
        let cut = || self.file.truncate(self.len).and_then(|()| self.file.sync());
        self.is_closed = error.is_want_of_space() && cut().is_ok();
        self.failed = !self.is_closed;
        error
    }

    /// Begins a new manifest with `state` instead of appending another edit, and removes the old one.
    #[cold]
    fn roll_over(&mut self, edit: &VersionEdit, state: ManifestState) -> Result<()> {
        let old = self.path();
        match Manifest::create(self.fs.clone(), &self.dir, self.numbers.clone(), state.clone()) {
            Ok(new) => *self = new,
            Err(error) => return self.go_on_after(error, edit, state),
        }
        fs::unlink(&*self.fs, &old);
        Ok(())
    }

    /// Appends `edit` to this manifest after all, since a new one could not be created.
    fn go_on_after(&mut self, error: Error, edit: &VersionEdit, state: ManifestState) -> Result<()> {
        if !error.is_transient() || !is_still_current(&*self.fs, &self.dir, Some(self.number), &error) {
            return Err(error);
        }
        if self.is_closed {
            self.failed = false;
            return Err(error);
        }
        tracing::warn!(%error, "could not begin a new manifest; the old one grows");
        self.write(edit, state)
    }
}
