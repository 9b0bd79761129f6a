//! Entries that a RANGE or PREFIX lists, over as many steps as it needs.

use super::keyspace::Entry;
use crate::protocol::output::Output;
use crate::protocol::reply::{self, Refusal, Reply, Version};

/// The number of entries that are visited in one step.
const ENTRIES_OF_STEP: usize = 1000;
/// The bytes of keys and values at which a step ends, also for SCAN.
pub(crate) const BYTES_OF_STEP: usize = 1 << 20;

/// A RANGE or PREFIX under way. It takes as many steps as it needs, and shows the moment of the first.
pub(crate) struct Listing {
    /// The remaining entries.
    pub(crate) entries: Box<dyn Iterator<Item = Entry>>,
    /// The encoded keys and values so far, and their number.
    pub(crate) found: Output,
    pub(crate) strings: usize,
}

impl Listing {
    /// Bytes of memory.
    pub(crate) fn size(&self) -> usize {
        self.found.size()
    }

    /// Appends the array of everything that was found.
    pub(crate) fn finish(self, output: &mut Output) {
        reply::header(b'*', self.strings, output);
        output.append(self.found);
    }

    /// Visits some entries. Returns whether there may be more.
    pub(crate) fn go_on(&mut self, version: Version, most: usize) -> Result<bool, Refusal> {
        let enough = self.found.len() + BYTES_OF_STEP;
        for _ in 0..ENTRIES_OF_STEP {
            let Some(entry) = self.entries.next() else { return Ok(false) };
            let (key, value) = entry?;
            for string in [key, value] {
                Reply::Bulk(string).encode(version, &mut self.found);
            }
            self.strings += 2;
            if self.found.len() > most {
                return Err(too_long(most));
            }
            if self.found.len() >= enough {
                break;
            }
        }
        Ok(true)
    }
}

pub(crate) fn too_long(most: usize) -> Refusal {
    Refusal::new(format!("ERR the entries are longer than {most} bytes: use LIMIT"))
}
