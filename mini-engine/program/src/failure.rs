//! Failures of commands: the reason, as text for people, and the exit code for scripts.

use std::fmt;
use std::io;
use std::path::Path;

use mini_engine::Error;

use crate::node_directory;
use crate::size::counted;

/// The key does not exist.
pub(crate) const NOT_FOUND: u8 = 1;
/// Wrong arguments, a directory without a database, a missing keyspace, or a format newer than this program.
pub(crate) const WRONG_USE: u8 = 2;
/// Stored bytes are damaged.
pub(crate) const CORRUPTION: u8 = 3;
pub(crate) const IO: u8 = 4;
/// An import ended normally, but some lines of the input were no records.
pub(crate) const REJECTED: u8 = 5;

/// The advice when another process has the database open.
const NEXT_IF_LOCKED: &str = "next: --wait waits until that process has ended. Meanwhile get, ttl, scan, count, export, keyspaces, \
     stats, verify and checkpoint work, without --wait, --quarantine and --skip-damaged. If it is `mini-engine serve`, its clients write, too: `redis-cli set KEY VALUE`";

/// The advice when there is no space.
const NEXT_IF_FULL: &str = "next: make space. A database on a full disk accepts removals: `mini-engine delete`, and then `mini-engine compact`, \
     which frees the space of what was removed";

/// The result of a command that did not fail.
pub(crate) enum Exit {
    Done,
    /// The requested key does not exist; nothing was printed.
    NotFound,
    /// The readable data was processed; stderr lists the damage.
    Incomplete,
    /// Some lines of the input were no records; stderr lists them.
    Rejected,
    /// Another exit code, such as that of another process.
    With(u8),
}

/// The reason why a command stopped.
pub(crate) enum Failure {
    Engine(Error),
    /// The problems that a verification found; at least one.
    Damage(Vec<Error>),
    /// The arguments, or under `--strict` the input, are wrong.
    Usage(String),
    /// The directory of a node is an older copy.
    #[cfg(feature = "cluster")]
    Outdated(String),
    /// The engine ended an import after its first lines, which are in the database.
    Stopped {
        cause: Error,
        lines: u64,
    },
    /// A signal ended an import after its first lines, which are in the database.
    Interrupted {
        signal: i32,
        lines: u64,
    },
    /// A stream or file of the program itself, outside of the database.
    Io {
        action: &'static str,
        place: String,
        source: io::Error,
    },
    /// The reader of stdout has closed it. This is no error.
    ClosedPipe,
}

impl Failure {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Engine(error) | Self::Stopped { cause: error, .. } => engine_exit_code(error),
            // Corruption outranks read errors, because it is permanent.
            Self::Damage(errors) if errors.iter().any(|error| engine_exit_code(error) == CORRUPTION) => CORRUPTION,
            Self::Damage(_) => IO,
            Self::Usage(_) => WRONG_USE,
            #[cfg(feature = "cluster")]
            Self::Outdated(_) => CORRUPTION,
            Self::Io { .. } => IO,
            // The exit code that a shell reports for a program that was ended by a signal.
            Self::Interrupted { signal, .. } => u8::try_from(128 + signal).unwrap_or(u8::MAX),
            Self::ClosedPipe => 0,
        }
    }

    /// The next command to type, if a file of a database is damaged, another process has the database open, or the disk is full.
    pub(crate) fn next_command(&self) -> Option<String> {
        let error = match self {
            Self::Engine(Error::Locked { .. }) => return Some(NEXT_IF_LOCKED.into()),
            Self::Engine(error) if is_want_of_space(error) => return Some(NEXT_IF_FULL.into()),
            Self::Engine(Error::Stalled { cause, .. }) | Self::Stopped { cause: Error::Stalled { cause, .. }, .. } => {
                cause
            }
            Self::Engine(error) | Self::Stopped { cause: error, .. } => error,
            Self::Damage(errors) => errors.iter().find(|error| engine_exit_code(error) == CORRUPTION)?,
            _ => return None,
        };
        let Error::Corruption { file, .. } = error else { return None };
        if node_directory::of(file).is_some() {
            return Some(node_directory::IF_DAMAGED.into());
        }
        let db = if file.is_dir() { file } else { file.parent()? };
        let db = shown(db);
        Some(format!(
            "next: `mini-engine repair {db} NEW` makes a new database of all that can be read, and \
             `mini-engine scan {db} --skip-damaged` prints it"
        ))
    }
}

/// Refuses to change or copy a database that belongs to a node of a cluster, or to make one there; `next` is the advice.
pub(crate) fn refuse_node(path: &Path, next: &str) -> Result<(), Failure> {
    let Some(node) = node_directory::of(path) else { return Ok(()) };
    let (path, node) = (path.display(), node.display());
    Err(Failure::Usage(format!(
        "refused for {path}: it belongs to the node of a cluster in {node}, and only that node may change or copy it\n{next}"
    )))
}

/// A path, quoted as in a command line.
pub(crate) fn shown(path: &Path) -> String {
    let path = path.display().to_string();
    if path.contains(char::is_whitespace) { format!("'{path}'") } else { path }
}

/// Whether the disk is full. Earlier writes are then in the engine's log, and are synced when the database is closed.
pub(crate) fn is_want_of_space(error: &Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error, Error::Io { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded))
}

fn engine_exit_code(error: &Error) -> u8 {
    match error {
        Error::Corruption { .. } => CORRUPTION,
        Error::Stalled { cause, .. } => engine_exit_code(cause),
        Error::InvalidArgument(_)
        | Error::NoKeyspace { .. }
        | Error::NotADatabase { .. }
        | Error::UnsupportedVersion { .. }
        | Error::Unsupported { .. } => WRONG_USE,
        // Locked, full, read-only and closed are states of the storage and no faults of the request. New kinds of engine errors get this code too,
        // until this match handles them.
        _ => IO,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => error.fmt(f),
            Self::Damage(errors) => {
                for (index, error) in errors.iter().enumerate() {
                    write!(f, "{}{error}", if index == 0 { "" } else { "\n" })?;
                }
                Ok(())
            }
            Self::Usage(what) => f.write_str(what),
            #[cfg(feature = "cluster")]
            Self::Outdated(what) => f.write_str(what),
            Self::Interrupted { lines, .. } => go_on(f, "interrupted", *lines),
            Self::Stopped { cause, lines } => go_on(f, cause, *lines),
            Self::Io { action, place, source } => write!(f, "cannot {action} {place}: {source}"),
            Self::ClosedPipe => f.write_str("stdout was closed by its reader"),
        }
    }
}

/// Prints why an import ended after its first `lines`, and how to continue.
fn go_on(f: &mut fmt::Formatter<'_>, why: impl fmt::Display, lines: u64) -> fmt::Result {
    let first = counted(lines, "line", "lines");
    write!(f, "{why}; the first {first} of the input are in. To go on, give the same input again with --skip {lines}")
}
