//! Damage that requests and jobs have found, for INFO and for the log. Every client whose request finds damage gets the error. The log reports each
//! place once, so that a client that repeats a request does not fill the log.

use std::collections::BTreeSet;
use std::path::PathBuf;

use mini_engine::Error;

use super::clock::unix_seconds;

/// The maximum number of distinct places that are remembered and logged. Further damage is only counted.
const MOST_PLACES: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct Damage {
    /// The number of times that damage was found.
    pub(crate) met: u64,
    /// The damaged places: files, and offsets in the files.
    places: BTreeSet<(PathBuf, u64)>,
    /// The latest damage: its time in seconds since 1970, and the error.
    pub(crate) last: Option<(u64, String)>,
    /// The messages that are not in the log yet.
    news: Vec<String>,
}

impl Damage {
    /// The number of distinct damaged places.
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    /// Records `error` if it reports damage.
    pub(crate) fn note(&mut self, error: &Error) {
        let Some(place) = place(error) else { return };
        let text = error.to_string();
        self.met += 1;
        if self.places.len() < MOST_PLACES && self.places.insert(place) {
            self.news.push(text.clone());
            if self.places.len() == MOST_PLACES {
                self.news.push("damage in further places is counted by INFO and no longer said here".into());
            }
        }
        self.last = Some((unix_seconds(), text));
    }

    /// Takes the new messages for the log.
    pub(crate) fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }
}

/// The place of the damaged or unreadable bytes, if `error` reports such bytes.
fn place(error: &Error) -> Option<(PathBuf, u64)> {
    match error {
        Error::Corruption { file, offset, .. } => Some((file.clone(), *offset)),
        Error::Io { op: "read", path, .. } => Some((path.clone(), 0)),
        Error::Stalled { cause, .. } => place(cause),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corruption(offset: u64) -> Error {
        Error::Corruption { file: "a/000012.sst".into(), offset, what: "expected 1, found 2".into() }
    }

    #[test]
    fn each_place_is_said_once_and_no_more_than_so_many() {
        // Catches a log that a client fills by reading a damaged key, and a list of places without bound.
        let mut damage = Damage::default();
        let mut note = |error: Error| {
            damage.note(&error);
            damage.news().len()
        };
        assert_eq!([0, 0, 8192, 0, 8192].map(|offset| note(corruption(offset))), [1, 0, 1, 0, 0]);
        let said: usize = (0..3000).map(|n| note(corruption(n * 100))).sum();
        // The last message announces that no more damage will be logged.
        assert_eq!(said, MOST_PLACES - 2 + 1);
        assert_eq!([Error::Closed, Error::InvalidArgument("a key".into())].map(note), [0, 0]);
        assert_eq!((damage.met, damage.places()), (3005, MOST_PLACES));
        assert!(damage.last.is_some_and(|(_, text)| text.contains("000012.sst at offset 299900")));
    }

    #[test]
    fn what_stops_writes_because_of_damage_is_damage() {
        // Catches damage that is missed because it is in the cause of another error.
        let stalled = Error::Stalled { tables: 20, cause: corruption(7).into() };
        assert_eq!(place(&stalled), Some(("a/000012.sst".into(), 7)));
    }
}
