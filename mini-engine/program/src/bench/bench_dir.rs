//! The directory of a benchmark's database: the caller's, or a new one that is removed at the end.

use std::path::{Path, PathBuf};
use std::process;

use mini_engine::Db;

use crate::failure::{Failure, refuse_node};
use crate::{node_directory, output};

/// The directory of the database.
pub(crate) struct BenchDir {
    path: PathBuf,
    is_ours: bool,
}

impl BenchDir {
    /// `kept`, or a new directory among the temporary ones.
    pub(crate) fn new(kept: Option<&Path>) -> Result<Self, Failure> {
        if let Some(path) = kept {
            refuse_node(path, node_directory::IF_SOUND)?;
            return Ok(Self { path: path.to_path_buf(), is_ours: false });
        }
        let path = std::env::temp_dir().join(format!("mini-engine-bench-{}", process::id()));
        let created = std::fs::create_dir(&path);
        let failed = |source| Failure::Io { action: "create", place: path.display().to_string(), source };
        created.map_err(failed)?;
        Ok(Self { path, is_ours: true })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn open(&self, memtable_bytes: Option<usize>) -> Result<Db, Failure> {
        let mut builder = Db::builder(&self.path);
        if let Some(bytes) = memtable_bytes {
            builder = builder.memtable_bytes(bytes);
        }
        Ok(builder.open()?)
    }
}

impl Drop for BenchDir {
    fn drop(&mut self) {
        if self.is_ours
            && let Err(error) = std::fs::remove_dir_all(&self.path)
        {
            output::say(format_args!("mini-engine: cannot remove {}: {error}", self.path.display()));
        }
    }
}
