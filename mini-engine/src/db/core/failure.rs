//! [`Failure`]: the failure that has ended all writing (rule 7).

use std::sync::OnceLock;

use super::owner::Owner;
use crate::error::{Error, Result};

/// The reason for rejecting writes in a fork of the process that opened the database.
const FORKED: &str = "this process is a fork of the one that opened it, which goes on writing to the same files";

/// The first failure to write or sync, which is final, and the process that may write.
pub(super) struct Failure {
    cause: OnceLock<String>,
    owner: Owner,
}

impl Failure {
    /// No failure, in this process.
    pub(super) fn none() -> Failure {
        Failure { cause: OnceLock::new(), owner: Owner::this_process() }
    }

    /// Returns an error after the first failure, and in a fork.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        match self.cause.get() {
            Some(cause) => Err(read_only(cause)),
            None if self.is_forked() => Err(read_only(FORKED)),
            None => Ok(()),
        }
    }

    pub(super) fn has_occurred(&self) -> bool {
        self.cause.get().is_some()
    }

    /// Whether this process is a fork of the one that opened the database.
    #[inline]
    pub(super) fn is_forked(&self) -> bool {
        !self.owner.is_this_process()
    }

    /// Keeps `cause`, unless there is an earlier failure. Returns whether `cause` is the first.
    pub(super) fn set(&self, cause: &Error) -> bool {
        let cause = match cause {
            Error::ReadOnly { cause } => cause.clone(),
            other => other.to_string(),
        };
        self.cause.set(cause).is_ok()
    }
}

#[cold]
fn read_only(cause: &str) -> Error {
    Error::ReadOnly { cause: cause.to_owned() }
}
