//! Reads a manifest: as a whole when a database is opened, and up to the written length when it is verified.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::manifest::builder::VersionBuilder;
use crate::manifest::names::{CURRENT, manifest_name};
use crate::manifest::state::ManifestState;
use crate::manifest::version::{Version, VersionEdit};
use crate::manifest::{current, edit, frame};
use crate::options::Compaction;

#[derive(Debug, PartialEq)]
pub(crate) struct Loaded {
    pub(crate) number: u64,
    pub(crate) state: ManifestState,
    /// Whether the last record was torn and dropped.
    pub(crate) tail_dropped: bool,
    pub(crate) tail_bytes: u64,
}

/// Reads the manifest that `CURRENT` of `dir` names; `None` if there is no `CURRENT`.
pub(crate) fn load(fs: &dyn FileSystem, dir: &Path) -> Result<Option<Loaded>> {
    let Some(number) = current::load(fs, dir)? else { return Ok(None) };
    read(fs, dir, number, u64::MAX).map(Some)
}

/// Reads manifest `number`, as far as `limit` bytes.
pub(super) fn read(fs: &dyn FileSystem, dir: &Path, number: u64, limit: u64) -> Result<Loaded> {
    let path = dir.join(manifest_name(number));
    let bytes = read_manifest(fs, &path, limit)?;
    let (mut state, empty) = (None, Version::default());
    let mut version = VersionBuilder::new(&empty);
    let mut edits = Edits::of(&path, &bytes, number)?;
    while let Some((at, edit)) = edits.next()? {
        let before: ManifestState = state.unwrap_or_default();
        let after = before.after(&edit).and_then(|after| version.apply(&edit).map(|()| after));
        state = Some(after.map_err(|what| Error::corruption(&path, at, what))?);
    }
    // The first record was synced before `CURRENT` named the file, so without it this is damage and no tear.
    check_policy(&path, state.as_ref())?;
    let missing =
        || Error::corruption(&path, frame::HEADER_LEN as u64, "expected the manifest's first edit, found none");
    let version = version.build().map_err(|what| Error::corruption(&path, edits.at as u64, what))?;
    let state = ManifestState { version: Arc::new(version), ..state.ok_or_else(missing)? };
    let tail_bytes = edits.torn_bytes();
    Ok(Loaded { number, state, tail_dropped: tail_bytes > 0, tail_bytes })
}

/// The edits of a manifest, one after the other.
pub(super) struct Edits<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    number: u64,
    /// The offset of the next edit, or of the end.
    pub(super) at: usize,
}

impl<'a> Edits<'a> {
    /// The edits of manifest `number`, whose header is checked.
    pub(super) fn of(path: &'a Path, bytes: &'a [u8], number: u64) -> Result<Self> {
        frame::check_header(path, bytes, number)?;
        Ok(Self { path, bytes, number, at: frame::HEADER_LEN })
    }

    /// The next edit and its offset; `None` at the end, torn or not.
    pub(super) fn next(&mut self) -> Result<Option<(u64, VersionEdit)>> {
        let at = self.at as u64;
        match frame::read(self.number, self.bytes, self.at) {
            frame::Found::End | frame::Found::Torn => Ok(None),
            frame::Found::Edit { payload, next } => {
                self.at = next;
                Ok(Some((at, edit::decode(payload).map_err(|malformed| malformed.in_file(self.path, at))?)))
            }
            frame::Found::Damaged { later } => {
                let what =
                    format!("edit: expected a valid frame, since a later one at offset {later} is valid; found none");
                Err(Error::corruption(self.path, at, what))
            }
        }
    }

    /// The number of bytes of a torn edit behind the last one.
    pub(super) fn torn_bytes(&self) -> u64 {
        self.bytes.len().saturating_sub(self.at) as u64
    }
}

/// A policy unknown to this build may imply unknown rules about runs.
fn check_policy(path: &Path, state: Option<&ManifestState>) -> Result<()> {
    match state.and_then(|state| state.policy) {
        Some(found) if Compaction::from_id(found).is_none() => {
            let (file, found) = (path.to_path_buf(), u32::try_from(found).unwrap_or(u32::MAX));
            Err(Error::Unsupported { file, what: "compaction policy", found, supported: Compaction::ALL.len() as u32 })
        }
        _ => Ok(()),
    }
}

/// The state of a manifest in use at one moment, to compare it with its file.
#[derive(Debug, Clone)]
pub(crate) struct ManifestOnDisk {
    pub(super) number: u64,
    pub(super) len: u64,
    pub(super) state: ManifestState,
}

impl ManifestOnDisk {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Checks that `CURRENT` names the manifest and that the file has the edits that were written to it.
    pub(crate) fn check(&self, fs: &dyn FileSystem, dir: &Path) -> Result<()> {
        let found = current::load(fs, dir)?;
        if found != Some(self.number) {
            let what = format!("expected a pointer to manifest {}, found {found:?}", self.number);
            return Err(Error::corruption(&dir.join(CURRENT), 0, what));
        }
        // Later edits are not part of this moment.
        let read = read(fs, dir, self.number, self.len)?;
        if read.state != self.state || read.tail_dropped {
            let path = dir.join(manifest_name(self.number));
            return Err(Error::corruption(&path, 0, "the manifest does not say what was written to it"));
        }
        Ok(())
    }
}

pub(super) fn read_manifest(fs: &dyn FileSystem, path: &Path, limit: u64) -> Result<Vec<u8>> {
    if !fs.exists(path).map_err(Error::io("look for", path))? {
        return Err(Error::corruption(
            path,
            0,
            format!("expected the manifest that {CURRENT} names, found no such file"),
        ));
    }
    let file = fs.open(path).map_err(Error::io("open", path))?;
    let len = file.len().map_err(Error::io("read", path))?.min(limit);
    let too_long = || Error::corruption(path, 0, format!("a manifest of {len} bytes does not fit into memory"));
    let len = usize::try_from(len).map_err(|_| too_long())?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| too_long())?;
    bytes.resize(len, 0);
    file.read_exact_at(&mut bytes, 0).map_err(Error::io("read", path))?;
    Ok(bytes)
}
