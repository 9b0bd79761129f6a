//! The one error type of the engine. Each variant names the failed operation, the place, and the expected and the found value.
//!
//! Errors are `Clone`, because all writers that waited for a failed sync get the same error.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

/// The result of all fallible functions of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason for the failure of an operation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file system operation failed.
    Io {
        /// The attempted operation, as a verb: `"read"`, `"sync"`.
        op: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the file system; shared, since several callers may get the same one.
        source: Arc<io::Error>,
    },
    /// Stored bytes differ from those that were written.
    Corruption {
        /// The damaged file.
        file: PathBuf,
        /// The offset in the file, in bytes from its start.
        offset: u64,
        /// The check that failed, with the expected and the found value.
        what: String,
    },
    /// Another handle, in this process or another, has opened the database in a way that excludes this open.
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The other user of the database: for example, a writer excludes readers.
        what: &'static str,
        /// The id of the process that writes to the database, if it is known.
        holder: Option<u32>,
    },
    /// The directory contains no database, and none may be created in it.
    NotADatabase {
        /// The directory.
        path: PathBuf,
        /// The expected and the found contents.
        what: String,
    },
    /// The file has another format version than this build can read.
    UnsupportedVersion {
        /// The file.
        file: PathBuf,
        /// The version in the file.
        found: u32,
        /// The version that can be read.
        supported: u32,
    },
    /// The file uses a feature that this build lacks: a compression or a policy of a newer version, or Zstandard without the feature `zstd`.
    Unsupported {
        /// The file.
        file: PathBuf,
        /// The kind of feature to which the number belongs, as a noun: `"block compression"`.
        what: &'static str,
        /// The number in the file.
        found: u32,
        /// The greatest number that this build supports.
        supported: u32,
    },
    /// The database accepts no writes: because of a failure to write or sync, after which a reopen shows what is durable, or because it was opened
    /// read-only.
    ReadOnly {
        /// The first failure, or the fact that the database was opened read-only.
        cause: String,
    },
    /// Writes have stopped: level 0 has the maximum number of tables (`l0_stop`), and none of them can be compacted. Writes succeed again when the
    /// cause is gone. Earlier writes are kept.
    Stalled {
        /// The number of tables on level 0.
        tables: usize,
        /// The error of the compactions, most often the [`Error::Corruption`] of a table.
        cause: Arc<Error>,
    },
    /// There is no keyspace of this name: it was dropped, or it does not exist and the database was opened read-only.
    NoKeyspace {
        /// The name of the keyspace.
        name: String,
    },
    /// Another write has changed something that a transaction had read. The transaction has written nothing; a new one may succeed.
    Conflict {
        /// The name of the changed keyspace; empty for the default one.
        keyspace: String,
        /// The changed key; for the removal of a range, the first key of the range that the transaction may have read.
        key: Vec<u8>,
        /// The read and the change that conflicts with it, with sequence numbers.
        what: String,
    },
    /// The process that writes to the database was faster than this reader, which has to try again: see
    /// [`Builder::reader`](crate::Builder::reader).
    Overtaken {
        /// The directory or the file that the writer has changed.
        path: PathBuf,
        /// What it has done.
        what: String,
    },
    /// The database was closed.
    Closed,
    /// A limit of memory, or of open files, was reached.
    Full(String),
    /// The caller passed a value outside its limits.
    InvalidArgument(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { op, path, source } => write!(f, "could not {op} {}: {source}", path.display()),
            Self::Corruption { file, offset, what } => {
                write!(f, "corruption in {} at offset {offset}: {what}", file.display())
            }
            Self::Locked { path, what, holder: None } => write!(f, "{} is locked: {what}", path.display()),
            Self::Locked { path, what, holder: Some(id) } => {
                write!(f, "{} is locked: {what} (process {id})", path.display())
            }
            Self::NotADatabase { path, what } => write!(f, "{} is not a database: {what}", path.display()),
            Self::UnsupportedVersion { file, found, supported } => {
                write!(f, "{} has format version {found}, this build reads version {supported}", file.display())
            }
            Self::Unsupported { file, what, found, supported } => {
                write!(f, "{} uses {what} {found}, this build knows up to {supported}", file.display())
            }
            Self::ReadOnly { cause } => write!(f, "the database is read-only: {cause}"),
            Self::Stalled { tables, cause } => {
                write!(f, "writes are stopped at {tables} tables on level 0, of which none can be compacted: {cause}")
            }
            Self::NoKeyspace { name } => write!(f, "there is no keyspace \"{}\"", name.escape_debug()),
            Self::Conflict { what, .. } => write!(f, "conflict: {what}"),
            Self::Overtaken { path, what } => write!(f, "the writer of {} {what}", path.display()),
            Self::Closed => f.write_str("the database is closed"),
            Self::Full(limit) => write!(f, "out of room: {limit}"),
            Self::InvalidArgument(what) => write!(f, "invalid argument: {what}"),
        }
    }
}

// Implemented by hand: with a derive macro, every dependent would have to compile six more crates.
impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(&**source),
            Self::Stalled { cause, .. } => Some(&**cause),
            _ => None,
        }
    }
}

impl Error {
    /// An I/O error of `op` (a verb) on `path`, as a closure for `map_err`.
    pub(crate) fn io<'a>(op: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Io { op, path: path.to_path_buf(), source: Arc::new(source) }
    }

    /// Whether space was lacking; the operation may succeed later.
    pub(crate) fn is_want_of_space(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// Whether the operation may succeed later: it lacked space or a file handle, which others may release.
    pub(crate) fn is_transient(&self) -> bool {
        self.is_want_of_space() || self.is_want_of_handles()
    }

    /// Whether file handles were lacking, in this process or in the system. The operation had no effect then.
    pub(crate) fn is_want_of_handles(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_want_of_handles(source))
    }

    /// Whether these bytes cannot be read, now or later, while others still can.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Corruption { .. } => true,
            Self::Io { .. } => !self.is_transient(),
            _ => false,
        }
    }

    /// The file that could not be read, if that is the cause: the caller may continue without that file.
    pub(crate) fn unreadable_file(&self) -> Option<&Path> {
        match self {
            Self::Corruption { file, .. } | Self::UnsupportedVersion { file, .. } | Self::Unsupported { file, .. } => {
                Some(file)
            }
            Self::Io { op: "read" | "open" | "look for", path, .. } if !self.is_transient() => Some(path),
            _ => None,
        }
    }

    /// The error for a directory `dir` that contains no database.
    pub(crate) fn not_a_database(dir: &Path, what: impl Into<String>) -> Self {
        Self::NotADatabase { path: dir.to_path_buf(), what: what.into() }
    }

    /// A corruption of `file` at `offset`.
    pub(crate) fn corruption(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Corruption { file: file.to_path_buf(), offset, what: what.into() }
    }
}

/// For callers that return errors of the standard library. The kind is that of the file system's error, if there is one.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Io { source, .. } => source.kind(),
            Error::Corruption { .. } | Error::UnsupportedVersion { .. } | Error::Unsupported { .. } => {
                io::ErrorKind::InvalidData
            }
            Error::InvalidArgument(_) => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

/// Like [`Error::is_want_of_handles`], for an error of the file system itself.
pub(crate) fn is_want_of_handles(error: &io::Error) -> bool {
    // ENFILE and EMFILE, which have no `ErrorKind`.
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
    fn as_an_error_of_the_standard_library_it_keeps_kind_and_text() {
        // Catches a full disk that a caller cannot distinguish from damage, and a lost description.
        let full = Error::io("sync", Path::new("a/000001.log"))(io::Error::from(io::ErrorKind::StorageFull));
        let damaged = Error::corruption(Path::new("000012.sst"), 8192, "block checksum: expected 1, found 2");
        for (error, kind) in [(full, io::ErrorKind::StorageFull), (damaged, io::ErrorKind::InvalidData)] {
            let text = error.to_string();
            let error = io::Error::from(error);
            assert_eq!((error.kind(), error.to_string()), (kind, text));
        }
    }

    #[test]
    fn an_error_can_be_handed_to_every_waiting_writer() {
        // Catches a variant that is not `Clone + Send + Sync`: not all waiting threads could get it.
        fn shareable<T: Clone + Send + Sync + 'static>() {}
        shareable::<Error>();
    }
}
