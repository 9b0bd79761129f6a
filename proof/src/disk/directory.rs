//! The entries of one directory: the durable ones, the changes since, and the changes that a power cut may keep.
//!
//! Creations, removals and renames since the last sync of the directory survive or not, independently of each other, so later ones may be durable
//! without earlier ones. A rename survives as a whole: never with both names lost.

use std::collections::BTreeMap;
use std::ffi::OsString;

use proof::Random;

use super::losses::{Losses, reach};

/// The file or directory that a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The number of a file.
    File(u64),
    /// The number of a directory.
    Directory(u64),
}

pub(super) type Entries = BTreeMap<OsString, Entry>;

#[derive(Clone, Debug)]
pub(super) enum Change {
    Link { name: OsString, entry: Entry },
    Unlink { name: OsString },
    Rename { from: OsString, to: OsString, entry: Entry },
}

impl Change {
    fn apply(&self, entries: &mut Entries) {
        match self {
            Self::Link { name, entry } => {
                entries.insert(name.clone(), *entry);
            }
            Self::Unlink { name } => {
                entries.remove(name);
            }
            Self::Rename { from, to, entry } => {
                // The old name may refer to an earlier file, if the creation of the renamed file did not survive.
                if entries.get(from) == Some(entry) {
                    entries.remove(from);
                }
                entries.insert(to.clone(), *entry);
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    durable: Entries,
    now: Entries,
    /// The changes since the last sync.
    changes: Vec<Change>,
}

impl Directory {
    /// Entries that are completely durable.
    pub(super) fn durable(entries: Entries) -> Self {
        Self { durable: entries.clone(), now: entries, changes: Vec::new() }
    }

    /// The entries that a reader sees.
    pub(super) fn now(&self) -> &Entries {
        &self.now
    }

    pub(super) fn change(&mut self, change: Change) {
        change.apply(&mut self.now);
        self.changes.push(change);
    }

    pub(super) fn sync(&mut self) {
        self.durable = self.now.clone();
        self.changes.clear();
    }

    /// Whether no power cut can change the entries.
    pub(super) fn is_durable(&self) -> bool {
        self.changes.is_empty()
    }

    /// The entries after a power cut, chosen by `random`.
    pub(super) fn after_power_cut(&self, random: &mut Random, losses: &mut Losses) -> Entries {
        let mut entries = self.durable.clone();
        let reach = reach(random, self.changes.len());
        let in_order = random.below(2) == 0;
        let mut lost = 0;
        for (at, change) in self.changes.iter().enumerate() {
            if if in_order { at < reach } else { random.below(2) == 0 } {
                change.apply(&mut entries);
                losses.reordered_entries += u64::from(lost > 0);
            } else {
                lost += 1;
            }
        }
        losses.lost_entries += lost;
        entries
    }
}
