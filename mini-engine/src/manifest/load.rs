//! Reads a manifest when a database is opened, and again when it is verified.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::manifest::builder::VersionBuilder;
use crate::manifest::close_note::CloseNote;
use crate::manifest::names::manifest_name;
use crate::manifest::state::ManifestState;
use crate::manifest::version::Version;
use crate::manifest::walk::{EditAt, Edits};
use crate::manifest::{current, frame};
use crate::options::Compaction;

#[derive(Debug, PartialEq)]
pub(crate) struct Loaded {
    pub(crate) number: u64,
    pub(crate) state: ManifestState,
    /// The length of the last record if it was torn and dropped; otherwise 0.
    pub(crate) tail_bytes: u64,
    /// The note of the last close.
    pub(crate) closed: Option<CloseNote>,
}

/// Reads the manifest to which `CURRENT` of `dir` refers; `None` if there is no `CURRENT`.
pub(crate) fn load(fs: &dyn FileSystem, dir: &Path) -> Result<Option<Loaded>> {
    let Some(number) = current::load(fs, dir)? else { return Ok(None) };
    load_number(fs, dir, number).map(Some)
}

/// Reads manifest `number`.
pub(crate) fn load_number(fs: &dyn FileSystem, dir: &Path, number: u64) -> Result<Loaded> {
    let path = dir.join(manifest_name(number));
    // Read first: the process that has the database open may close it meanwhile.
    let closed = CloseNote::load(fs, dir);
    let (mut state, empty) = (None, Version::default());
    let mut version = VersionBuilder::new(&empty);
    let mut edits = Edits::open(fs, &path, number)?;
    for read in &mut edits {
        let EditAt { offset, edit, .. } = read?;
        let before: ManifestState = state.unwrap_or_default();
        let after = before.after(&edit).and_then(|after| version.apply(&edit).map(|()| after));
        state = Some(after.map_err(|what| Error::corruption(&path, offset, what))?);
    }
    check_policy(&path, state.as_ref())?;
    // The first record was synced before `CURRENT` referred to the file, so if it is missing, the file is damaged and not torn.
    let missing =
        || Error::corruption(&path, frame::HEADER_LEN as u64, "expected the manifest's first edit, found none");
    let version = version.build().map_err(|what| Error::corruption(&path, edits.end(), what))?;
    let state = ManifestState { version: Arc::new(version), ..state.ok_or_else(missing)? };
    let lost = closed.and_then(|note| note.contradiction(&path, number, edits.end()));
    lost.map_or(Ok(Loaded { number, state, tail_bytes: edits.torn_bytes(), closed }), Err)
}

/// A policy that this build does not know may have unknown rules about runs.
fn check_policy(path: &Path, state: Option<&ManifestState>) -> Result<()> {
    match state.and_then(|state| state.policy) {
        Some(found) if Compaction::from_id(found).is_none() => {
            let (file, found) = (path.to_path_buf(), u32::try_from(found).unwrap_or(u32::MAX));
            Err(Error::Unsupported { file, what: "compaction policy", found, supported: Compaction::ALL.len() as u32 })
        }
        _ => Ok(()),
    }
}
