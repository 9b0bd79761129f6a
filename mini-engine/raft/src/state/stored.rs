//! [`StoredState`]: the state of a node that does not run.

use std::fmt;
use std::io::Result;
use std::path::Path;
use std::sync::Arc;

use mini_engine::fs::FileSystem;
use mini_engine::{Builder, Db, Options, VerifyReport};
use openraft::RaftTypeConfig;
use openraft::type_config::alias::SnapshotMetaOf;

use super::names::{Kind, newest};
use super::record::Applied;

/// The database in the directory of a [`StateMachine`](crate::StateMachine) that no process has open. The directory is only read, so this also copies
/// the data of a node that must not start again.
pub struct StoredState<C: RaftTypeConfig> {
    db: Db,
    fs: Arc<dyn FileSystem>,
    meta: SnapshotMetaOf<C>,
}

impl<C: RaftTypeConfig> StoredState<C> {
    /// Opens the newest database in directory `path` for reading; `None` if there is none.
    ///
    /// # Errors
    /// The errors of [`mini_engine::Builder::open`], such as damage.
    pub fn open(path: impl AsRef<Path>, options: Options, fs: Arc<dyn FileSystem>) -> Result<Option<Self>> {
        let dir = std::path::absolute(path)?;
        let names = if fs.exists(&dir)? { fs.read_dir(&dir)? } else { Vec::new() };
        let Some(number) = newest(names.iter().filter_map(|name| name.to_str())) else { return Ok(None) };
        let builder: Builder = Db::builder(dir.join(Kind::State.name(number))).options(options);
        let db = builder.file_system(Arc::clone(&fs)).reader().open()?;
        let meta = Applied::<C>::of(&db)?.into_meta();
        Ok(Some(Self { db, fs, meta }))
    }

    /// The last applied log id and the membership.
    pub fn meta(&self) -> &SnapshotMetaOf<C> {
        &self.meta
    }

    /// Reads and checks every byte, and then copies the database to `path`, which must not exist, as the directory of another state machine. Tables are
    /// hard links if the file system allows. The copy is durable on return.
    ///
    /// # Errors
    /// Damage; the errors of [`Db::checkpoint`]. An incomplete copy may remain.
    pub fn copy_to(&self, path: impl AsRef<Path>) -> Result<()> {
        self.db.verify().and_then(VerifyReport::into_result).map(drop)?;
        let dir = std::path::absolute(path)?;
        self.fs.create_dir_all(&dir)?;
        self.db.checkpoint(dir.join(Kind::State.name(0)))?;
        self.fs.sync_dir(&dir)
    }
}

impl<C: RaftTypeConfig> fmt::Debug for StoredState<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredState").field("db", &self.db).field("meta", &self.meta).finish_non_exhaustive()
    }
}
