//! Walks through a manifest: the only reader of its edits, for an open, a salvage and a dump.

use std::path::Path;

use crate::error::{Error, Result};
use crate::fs::{FileSystem, read_bytes};
use crate::manifest::names::CURRENT;
use crate::manifest::version::VersionEdit;
use crate::manifest::{edit, frame};

/// An edit and its offset.
#[derive(Debug)]
pub(crate) struct EditAt {
    pub(crate) offset: u64,
    /// The length of its frame.
    pub(crate) len: u64,
    pub(crate) edit: VersionEdit,
}

/// The edits of a manifest, one after the other. Damage is yielded as an error in its place, and the edits after it follow.
pub(crate) struct Edits<'a> {
    path: &'a Path,
    number: u64,
    bytes: Vec<u8>,
    /// The damage to the header, if there is any.
    header: Option<Error>,
    /// The offset of the next edit, or of the end.
    at: usize,
}

impl<'a> Edits<'a> {
    /// Reads manifest `number`.
    ///
    /// # Errors
    /// [`Error::UnsupportedVersion`]; [`Error::Corruption`] if there is no such file; [`Error::Io`].
    pub(crate) fn open(fs: &dyn FileSystem, path: &'a Path, number: u64) -> Result<Self> {
        let bytes = read_manifest(fs, path)?;
        let header = match frame::check_header(path, &bytes, number) {
            Err(error @ Error::Corruption { .. }) => Some(error),
            checked => checked.map(|()| None)?,
        };
        Ok(Self { path, number, bytes, header, at: frame::HEADER_LEN })
    }

    /// The end of the last edit that was read.
    pub(crate) fn end(&self) -> u64 {
        self.at as u64
    }

    /// The length of a torn edit after the last one.
    pub(crate) fn torn_bytes(&self) -> u64 {
        self.bytes.len().saturating_sub(self.at) as u64
    }
}

impl Iterator for Edits<'_> {
    type Item = Result<EditAt>;

    /// The next edit; `None` at the end, even if that is torn.
    fn next(&mut self) -> Option<Result<EditAt>> {
        if let Some(damage) = self.header.take() {
            return Some(Err(damage));
        }
        let at = self.at as u64;
        match frame::read(self.number, &self.bytes, self.at) {
            frame::Found::End | frame::Found::Torn => None,
            frame::Found::Edit { payload, next } => {
                let edit = edit::decode(payload).map_err(|malformed| malformed.in_file(self.path, at));
                self.at = next;
                Some(edit.map(|edit| EditAt { offset: at, len: next as u64 - at, edit }))
            }
            frame::Found::Damaged { later } => {
                self.at = later;
                let what =
                    format!("edit: expected a valid frame, since a later one at offset {later} is valid; found none");
                Some(Err(Error::corruption(self.path, at, what)))
            }
        }
    }
}

fn read_manifest(fs: &dyn FileSystem, path: &Path) -> Result<Vec<u8>> {
    if !fs.exists(path).map_err(Error::io("look for", path))? {
        return Err(Error::corruption(
            path,
            0,
            format!("expected the manifest that {CURRENT} names, found no such file"),
        ));
    }
    let file = fs.open(path).map_err(Error::io("open", path))?;
    let len = file.len().map_err(Error::io("read", path))?;
    read_bytes(&*file, path, 0, len)
}
