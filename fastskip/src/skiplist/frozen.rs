//! Freezing a list for good: it becomes a frozen table, and an empty list takes its place.

use core::fmt;
use core::ops::Deref;
use std::io;

use thiserror::Error;

use super::ConcurrentSkipList;
use super::cursor::{Entry, Iter};
use crate::builder::Config;

#[cfg(doc)]
use crate::InsertError;

impl ConcurrentSkipList {
    /// Freezes the list and makes an empty one with the same settings.
    ///
    /// # Errors
    /// The system refuses the new list's address range. Nothing was frozen; [`SealError::into_list`] gives the list back.
    pub fn seal(self) -> Result<(FrozenMemtable, Self), SealError> {
        let config = Config { seed: Config::random_seed(), ..self.config().clone() };
        match Self::from_settings(config) {
            Ok(fresh) => {
                self.freeze();
                Ok((FrozenMemtable { list: self }, fresh))
            }
            Err(source) => Err(SealError { list: Box::new(self), source }),
        }
    }
}

/// A frozen list. It reads as the list it was ([`Deref`]); its writes all say [`Sealed`](InsertError::Sealed).
pub struct FrozenMemtable {
    list: ConcurrentSkipList,
}

impl Deref for FrozenMemtable {
    type Target = ConcurrentSkipList;

    fn deref(&self) -> &ConcurrentSkipList {
        &self.list
    }
}

impl<'a> IntoIterator for &'a FrozenMemtable {
    type Item = Entry<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.list.iter()
    }
}

impl fmt::Debug for FrozenMemtable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrozenMemtable").field("len", &self.list.len()).finish_non_exhaustive()
    }
}

/// The next table could not be made, so nothing was frozen: [`into_list`](Self::into_list) gives the list back.
#[derive(Error)]
#[error("cannot reserve the arena of the next table")]
pub struct SealError {
    list: Box<ConcurrentSkipList>,
    #[source]
    source: io::Error,
}

impl SealError {
    /// The list, still open for writes.
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

    /// Catches a list whose towers can be foreseen from those of the list before it, or of another that a builder has made.
    #[test]
    fn the_next_list_has_a_seed_of_its_own() {
        let builder = ConcurrentSkipList::builder();
        let (list, other) = (builder.clone().build(), builder.build());
        let seed = list.config().seed;
        assert_ne!(seed, other.config().seed);
        assert_ne!(seed, list.seal().unwrap().1.config().seed);
    }

    /// Catches an error that hides its cause, or loses or closes the list that it brings back.
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
