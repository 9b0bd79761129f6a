//! A listing, which takes as many steps as necessary: of entries for RANGE and PREFIX, or of keys for KEYS.

use mini_engine::Slice;

use super::glob::Pattern;
use super::keyspace::Entry;
use crate::protocol::output::Output;
use crate::protocol::reply::{self, Refusal, Reply, Version};

/// The number of entries that are visited in one step.
const ENTRIES_OF_STEP: usize = 1000;
/// The amount of work after which a step ends, also of SCAN: bytes of keys and values, plus steps of matches.
pub(crate) const WORK_OF_STEP: usize = 1 << 20;

/// The part of each entry that is listed.
pub(crate) enum Shown {
    /// Keys and values.
    Entries,
    /// The keys that match the pattern.
    Keys(Pattern),
}

impl Shown {
    /// The strings of an entry that are listed.
    pub(crate) fn of(&self, key: Slice, value: Slice) -> [Option<Slice>; 2] {
        match self {
            Self::Entries => [Some(key), Some(value)],
            Self::Keys(pattern) => [Some(key).filter(|key| pattern.matches(key)), None],
        }
    }

    /// The work that visiting an entry counts for.
    fn work(&self, key: &[u8], value: &[u8]) -> usize {
        let match_steps = if let Self::Keys(pattern) = self { pattern.cost(key) } else { 0 };
        key.len() + value.len() + match_steps
    }
}

/// A RANGE, PREFIX or KEYS that is under way. It takes as many steps as necessary, and shows the state at the moment of the first step.
pub(crate) struct Listing {
    /// The remaining entries.
    entries: Box<dyn Iterator<Item = Entry> + Send>,
    shown: Shown,
    /// The encoded keys and values found so far, and their number.
    found: Output,
    strings: usize,
}

impl Listing {
    pub(crate) fn new(entries: Box<dyn Iterator<Item = Entry> + Send>, shown: Shown) -> Self {
        Self { entries, shown, found: Output::default(), strings: 0 }
    }

    /// The memory of the listing, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.found.size()
    }

    /// Appends the array of all strings that were found.
    pub(crate) fn finish(self, output: &mut Output) {
        reply::header(b'*', self.strings, output);
        output.append(self.found);
    }

    /// Visits some entries. Returns whether there may be more entries.
    pub(crate) fn go_on(&mut self, version: Version, most: usize) -> Result<bool, Refusal> {
        let mut work = 0;
        for _ in 0..ENTRIES_OF_STEP {
            let Some(entry) = self.entries.next() else { return Ok(false) };
            let (key, value) = entry?;
            work += self.shown.work(&key, &value);
            for string in self.shown.of(key, value).into_iter().flatten() {
                Reply::Bulk(string).encode(version, &mut self.found);
                self.strings += 1;
            }
            if self.found.len() > most {
                return Err(too_long(most));
            }
            if work >= WORK_OF_STEP {
                break;
            }
        }
        Ok(true)
    }
}

pub(crate) fn too_long(most: usize) -> Refusal {
    Refusal::new(format!("ERR the entries are longer than {most} bytes: use LIMIT"))
}
