//! [`Checkpoint`]: a snapshot of the state machine, as a directory.

use std::io::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mini_engine::fs::FileSystem;
use mini_engine::{Builder, Db, Options};
use openraft::RaftTypeConfig;
use openraft::type_config::alias::{SnapshotMetaOf, SnapshotOf};

use super::chunk::Chunks;
use super::record::Applied;
use crate::worker::Worker;

/// Bytes of blocks that a checkpoint keeps in memory while its record is read.
const CACHE_BYTES: u64 = 1 << 20;

/// A directory that is removed, on another thread, when this is dropped.
#[derive(Debug)]
pub(super) struct Temporary {
    pub(super) dir: PathBuf,
    pub(super) fs: Arc<dyn FileSystem>,
    /// The options of the state machine, including its clock.
    pub(super) options: Options,
    /// Removes directories in the background, because the removal of large files takes time.
    pub(super) removals: Arc<Worker<PathBuf>>,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        self.removals.queue(std::mem::take(&mut self.dir));
    }
}

/// A snapshot: a whole database, in a directory of its own. Its tables are hard links to those of the state machine, or files that were received.
///
/// This is openraft's snapshot data. The directory is removed when this is dropped, unless it was installed.
#[derive(Debug)]
pub struct Checkpoint {
    pub(super) place: Temporary,
}

impl Checkpoint {
    /// The files, in parts of at most `chunk_bytes` bytes, to be sent to another node in this order. Only one part is in memory at a time.
    ///
    /// # Errors
    /// The error of the file system if the directory cannot be listed.
    pub fn chunks(&self, chunk_bytes: usize) -> Result<Chunks> {
        Chunks::new(Arc::clone(&self.place.fs), &self.place.dir, chunk_bytes)
    }

    /// The directory. Open the database there only to read it.
    pub fn path(&self) -> &Path {
        &self.place.dir
    }

    /// The last log id and the membership, from the database in the directory.
    pub(super) fn meta<C: RaftTypeConfig>(&self) -> Result<SnapshotMetaOf<C>> {
        Ok(Applied::<C>::of(&self.open()?)?.into_meta())
    }

    /// The checkpoint with its metadata.
    pub(super) fn into_snapshot<C: RaftTypeConfig>(self) -> Result<SnapshotOf<C, Checkpoint>> {
        Ok(SnapshotOf::<C, Checkpoint> { meta: self.meta::<C>()?, snapshot: self })
    }

    /// Reads every byte and checks it.
    pub(super) fn verify(&self) -> Result<()> {
        Ok(self.open()?.verify().and_then(mini_engine::VerifyReport::into_result).map(drop)?)
    }

    fn open(&self) -> Result<Db> {
        let builder: Builder = Db::builder(&self.place.dir).options(self.place.options.clone());
        let builder = builder.file_system(Arc::clone(&self.place.fs));
        Ok(builder.read_only(true).create_if_missing(false).cache_bytes(CACHE_BYTES).open()?)
    }
}
