//! The one error type of the engine. Each variant says what failed, where, and what was expected and found.
//!
//! Errors are `Clone`, since one failed sync is the answer to every writer that waited for it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system refused an operation.
    #[error("could not {op} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb: `"read"`, `"sync"`.
        op: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The file system's answer; shared, since several callers may get the same one.
        source: Arc<io::Error>,
    },
    /// Stored bytes are not what was written.
    #[error("corruption in {} at offset {offset}: {what}", file.display())]
    Corruption {
        /// The damaged file.
        file: PathBuf,
        /// Where in it, in bytes from its start.
        offset: u64,
        /// What was checked, expected and found.
        what: String,
    },
    /// Another handle, in this process or another, has the database open in a way that this one does not go with.
    #[error("{} is locked: {what}{}", path.display(), holder.map_or(String::new(), |id| format!(" (process {id})")))]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// What has it open: to a reader, a writer.
        what: &'static str,
        /// The id of the process that writes to it, where that is known.
        holder: Option<u32>,
    },
    /// The directory holds no database, and was not to be made one.
    #[error("{} is not a database: {what}", path.display())]
    NotADatabase {
        /// The directory.
        path: PathBuf,
        /// What was expected there and what was found.
        what: String,
    },
    /// The file was written by a newer format version than this build knows.
    #[error("{} has format version {found}, this build reads up to {supported}", file.display())]
    UnsupportedVersion {
        /// The file.
        file: PathBuf,
        /// The version it names.
        found: u32,
        /// The newest version that can be read.
        supported: u32,
    },
    /// The file uses something that a newer version of the engine has brought: a compression, a policy.
    #[error("{} uses {what} {found}, this build knows up to {supported}", file.display())]
    Unsupported {
        /// The file.
        file: PathBuf,
        /// What the number names, as a noun: `"block compression"`.
        what: &'static str,
        /// The number in the file.
        found: u32,
        /// The greatest number that is known.
        supported: u32,
    },
    /// The database takes no writes: since a failure to write or sync, after which a reopen tells what is durable, or
    /// because it was opened read-only.
    #[error("the database is read-only: {cause}")]
    ReadOnly {
        /// The first failure, or that the database was opened so.
        cause: String,
    },
    /// Writes have stopped: level 0 has as many tables as it may have (`l0_stop`), and nothing can be compacted from it. They go on
    /// when the cause is gone. What was written before stays.
    #[error("writes are stopped at {tables} tables on level 0, of which none can be compacted: {cause}")]
    Stalled {
        /// Tables on level 0.
        tables: usize,
        /// Why compactions fail: most often the [`Error::Corruption`] of a table.
        #[source]
        cause: Arc<Error>,
    },
    /// The database was closed.
    #[error("the database is closed")]
    Closed,
    /// A limit of memory was reached.
    #[error("out of room: {0}")]
    Full(String),
    /// The caller passed something outside its limits.
    #[error("invalid argument: {0}")]
    InvalidArgument(String),
}

impl Error {
    /// An I/O error of `op` (a verb) on `path`; made for `map_err`.
    pub(crate) fn io<'a>(op: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Io { op, path: path.to_path_buf(), source: Arc::new(source) }
    }

    /// Whether there was no space: it may be there later.
    pub(crate) fn is_want_of_space(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// Whether what was tried may succeed later: it wanted space or a file handle, which others use up and may give back.
    pub(crate) fn is_transient(&self) -> bool {
        self.is_want_of_space() || self.is_want_of_handles()
    }

    /// Whether there were no file handles left, in this process or in the system. What asked for one did nothing.
    pub(crate) fn is_want_of_handles(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_want_of_handles(source))
    }

    /// Whether what was to be read cannot be, now or later, and what else there is may be read nevertheless.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Corruption { .. } => true,
            Self::Io { .. } => !self.is_transient(),
            _ => false,
        }
    }

    /// The file that could not be read, if it is that: what failed may do without it.
    pub(crate) fn unreadable_file(&self) -> Option<&Path> {
        match self {
            Self::Corruption { file, .. } | Self::UnsupportedVersion { file, .. } | Self::Unsupported { file, .. } => {
                Some(file)
            }
            Self::Io { op: "read" | "open" | "look for", path, .. } if !self.is_transient() => Some(path),
            _ => None,
        }
    }

    /// That `dir` is no database.
    pub(crate) fn not_a_database(dir: &Path, what: impl Into<String>) -> Self {
        Self::NotADatabase { path: dir.to_path_buf(), what: what.into() }
    }

    /// A corruption of `file` at `offset`.
    pub(crate) fn corruption(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Corruption { file: file.to_path_buf(), offset, what: what.into() }
    }
}

/// As [`Error::is_want_of_handles`], of the file system's own error.
pub(crate) fn is_want_of_handles(error: &io::Error) -> bool {
    // ENFILE and EMFILE, which have no kind of their own.
    cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn errors_say_what_and_where_and_keep_their_source() {
        // Catches a message without its file, and a source cut off from the chain.
        let io = Error::io("sync", Path::new("a/000001.log"))(io::Error::from(io::ErrorKind::StorageFull));
        assert!(io.to_string().starts_with("could not sync a/000001.log: "), "{io}");
        let source = io.source().expect("a source").to_string();
        assert_eq!(source, io::Error::from(io::ErrorKind::StorageFull).to_string());
        let corruption = Error::corruption(Path::new("000012.sst"), 8192, "block checksum: expected 1, found 2");
        assert_eq!(
            corruption.to_string(),
            "corruption in 000012.sst at offset 8192: block checksum: expected 1, found 2"
        );
    }

    #[test]
    fn an_error_can_be_handed_to_every_waiting_writer() {
        // Catches a variant that is not `Clone + Send + Sync`: waiting threads could not all be told.
        fn shareable<T: Clone + Send + Sync + 'static>() {}
        shareable::<Error>();
    }
}
