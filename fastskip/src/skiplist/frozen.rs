//! Sealing a list: it becomes a frozen table, and an empty list replaces it.

use core::fmt;
use core::ops::Deref;
use std::io;

use thiserror::Error;

use super::cursor::{Entry, Iter};
use super::table::ConcurrentSkipList;
use crate::builder::sealed::{FromConfig, Settings};

#[cfg(doc)]
use crate::InsertError;

impl ConcurrentSkipList {
    /// Freezes the list and creates an empty list with the same settings. O(shards), not counting the wait for writers.
    ///
    /// # Errors
    /// [`SealError`] if the system refuses the address range of the new list. The list is then not frozen, and
    /// [`SealError::into_list`] returns it.
    pub fn seal(self) -> Result<(FrozenList, Self), SealError> {
        match Self::from_config(Settings(self.list.config().clone())) {
            Ok(fresh) => {
                self.freeze();
                Ok((FrozenList { list: self }, fresh))
            }
            Err(source) => Err(SealError { list: Box::new(self), source }),
        }
    }
}

/// A frozen list. It dereferences to [`ConcurrentSkipList`], so it is read in the same way; every write is rejected with
/// [`Frozen`](InsertError::Frozen).
pub struct FrozenList {
    list: ConcurrentSkipList,
}

impl FrozenList {
    /// The frozen list itself; it stays frozen. In an `Arc` it can be read by [owned](ConcurrentSkipList::owned_range) iterators.
    #[must_use]
    pub fn into_list(self) -> ConcurrentSkipList {
        self.list
    }
}

impl Deref for FrozenList {
    type Target = ConcurrentSkipList;

    fn deref(&self) -> &ConcurrentSkipList {
        &self.list
    }
}

impl<'a> IntoIterator for &'a FrozenList {
    type Item = Entry<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.list.iter()
    }
}

impl fmt::Debug for FrozenList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrozenList").field("len", &self.list.len()).finish_non_exhaustive()
    }
}

/// The new list could not be created, so nothing was frozen. [`into_list`](Self::into_list) returns the list.
#[derive(Error)]
#[error("cannot reserve the arena of the next table")]
pub struct SealError {
    list: Box<ConcurrentSkipList>,
    #[source]
    source: io::Error,
}

impl SealError {
    /// Returns the list, which still accepts writes. O(1).
    #[must_use]
    pub fn into_list(self) -> ConcurrentSkipList {
        *self.list
    }
}

impl fmt::Debug for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealError").field("source", &self.source).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches an error that hides its cause, or that loses or freezes the list that it returns.
    #[test]
    fn a_seal_that_failed_says_why_and_gives_the_list_back() {
        let list = ConcurrentSkipList::with_shards(1);
        assert!(list.insert(b"a", b"1"));
        let error = SealError { list: list.into(), source: io::ErrorKind::OutOfMemory.into() };
        assert_eq!(format!("{error:?}"), "SealError { source: Kind(OutOfMemory), .. }");
        let list = error.into_list();
        assert!(!list.is_sealed() && list.insert(b"b", b"2"));
        assert_eq!(list.len(), 2);
    }
}
