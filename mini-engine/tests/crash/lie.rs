//! Disks that lie: their syncs do nothing and report success.

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
    /// A file system over `inner` that only pretends to do the syncs of this kind.
    pub(crate) fn over(self, inner: Arc<dyn FileSystem>) -> FaultFs {
        let fs = FaultFs::new(inner);
        fs.answer_where(Answer::Pretend, move |event| match (self, event.op) {
            (Lie::AllFiles, Op::Sync) | (Lie::Directories, Op::SyncDir) => true,
            (Lie::Manifest, Op::Sync) => event.name().starts_with("MANIFEST"),
            (Lie::Copies, Op::Sync) => event.path.starts_with("/copies"),
            _ => false,
        });
        fs
    }
}
