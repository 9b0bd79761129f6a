//! [`CompareAndSwapError`]: the reason why a value was not replaced.

use std::fmt;

use super::Slice;

/// The key did not have the expected value: nothing was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompareAndSwapError {
    /// The value of the key; `None` if it had none.
    pub current: Option<Slice>,
}

impl fmt::Display for CompareAndSwapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The value is not shown, because it may be long, binary, or secret.
        match &self.current {
            Some(current) => write!(f, "the key has another value than was expected, of {} bytes", current.len()),
            None => f.write_str("the key has no value, where one was expected"),
        }
    }
}

impl std::error::Error for CompareAndSwapError {}
