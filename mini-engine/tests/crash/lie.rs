//! Disks that lie: their syncs do nothing and report success.

use mini_engine::fs::Synced;

use crate::prelude::*;

/// The syncs that do nothing and report success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    None,
    AllFiles,
    Manifest,
    Directories,
    /// Files of checkpoints.
    Copies,
}

impl Lie {
    /// A disk over `inner` that tells this lie.
    pub(crate) fn over(self, inner: Arc<dyn FileSystem>) -> FaultFs {
        let fs = FaultFs::new(inner);
        fs.ignore_syncs(move |synced| match (self, synced) {
            (Lie::AllFiles, Synced::File(_)) | (Lie::Directories, Synced::Directory(_)) => true,
            (Lie::Manifest, Synced::File(path)) => is_manifest(path),
            (Lie::Copies, Synced::File(path)) => path.starts_with("/copies"),
            _ => false,
        });
        fs
    }
}

fn is_manifest(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("MANIFEST"))
}
