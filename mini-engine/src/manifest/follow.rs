//! [`ManifestTail`]: the manifest of a database that another process has open for writing.
//!
//! The writer may append an edit at any time, and may begin a new manifest. An edit that is still being written looks torn, and is left out. A manifest
//! that was read is a state in which the database was, perhaps not the newest one.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::{File, FileSystem};
use crate::manifest::load::{Loaded, load_number};
use crate::manifest::names::{CURRENT, FileNumbers, manifest_name};
use crate::manifest::state::ManifestState;
use crate::manifest::{Manifest, current};

#[derive(Debug)]
pub(crate) struct ManifestTail {
    number: u64,
    file: Arc<dyn File>,
    /// The length of the file when it was read, unless its end looked torn.
    len: Option<u64>,
    state: ManifestState,
}

impl ManifestTail {
    pub(crate) fn open(fs: &dyn FileSystem, dir: &Path) -> Result<Self> {
        let missing = || Error::not_a_database(dir, format!("expected {CURRENT}, found no such file"));
        Self::read(fs, dir, current::load(fs, dir)?.ok_or_else(missing)?)
    }

    fn read(fs: &dyn FileSystem, dir: &Path, number: u64) -> Result<Self> {
        let path = dir.join(manifest_name(number));
        let file = fs.open(&path).map_err(Error::io("open", &path))?;
        // Read first: an edit that is appended meanwhile makes the file longer than this.
        let len = file.len().map_err(Error::io("read the length of", &path))?;
        let Loaded { state, tail_bytes, .. } = load_number(fs, dir, number)?;
        Ok(Self { number, file, len: Some(len).filter(|_| tail_bytes == 0), state })
    }

    /// Reads the manifest again if it has changed, and returns whether it has. If not, this takes a read of `CURRENT` and of a length.
    pub(crate) fn advance(&mut self, fs: &dyn FileSystem, dir: &Path) -> Result<bool> {
        let number = current::load(fs, dir)?.unwrap_or(self.number);
        let path = dir.join(manifest_name(self.number));
        let len = self.file.len().map_err(Error::io("read the length of", &path))?;
        if number == self.number && self.len == Some(len) {
            return Ok(false);
        }
        let newest = Self::read(fs, dir, number)?;
        let is_new = newest.number != self.number || newest.state != self.state;
        if is_new {
            *self = newest;
        }
        Ok(is_new)
    }

    /// The manifest for a read-only database: every append is rejected.
    pub(crate) fn refusing(&self, fs: Arc<dyn FileSystem>, dir: &Path, numbers: Arc<FileNumbers>) -> Manifest {
        let shown = (self.number, self.state.clone());
        Manifest { failed: true, ..Manifest::of(fs, dir, numbers, self.file.clone(), shown) }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn state(&self) -> &ManifestState {
        &self.state
    }
}
