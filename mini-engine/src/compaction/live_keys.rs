//! [`LiveKeys`]: distinguishes keys of live keyspaces from those of dropped ones, which compactions leave out.
//!
//! No read returns the keys of a dropped keyspace: its handles and snapshots return errors, and no other keyspace gets its number. So a compaction
//! can leave them out of any table at any time, whatever snapshots exist. Tables with no other keys can be removed, whatever is in the tables of
//! other levels. An iterator that was created before the drop continues: its view keeps the files.

use std::sync::Arc;

use crate::manifest::KeyspaceSet;
use crate::types::{DEFAULT_KEYSPACE, KeyspaceId, RangeTombstones, is_stored_plain, split_stored};

/// Distinguishes keys of dropped keyspaces from others. Fast if keys come in ascending order.
#[derive(Debug)]
pub(crate) struct LiveKeys {
    keyspaces: Arc<KeyspaceSet>,
    /// The keyspace of the last key that had a prefix, and whether it is live.
    last: (KeyspaceId, bool),
}

impl LiveKeys {
    pub(crate) fn new(keyspaces: Arc<KeyspaceSet>) -> Self {
        Self { keyspaces, last: (DEFAULT_KEYSPACE, true) }
    }

    /// Whether the key belongs to a keyspace that was not dropped.
    #[inline]
    pub(crate) fn contains(&mut self, key: &[u8]) -> bool {
        is_stored_plain(key) || self.contains_prefixed(key)
    }

    fn contains_prefixed(&mut self, key: &[u8]) -> bool {
        // A key without a keyspace may be damage: it is kept, so that it can be examined.
        let Some((keyspace, _)) = split_stored(key) else { return true };
        if keyspace != self.last.0 {
            self.last = (keyspace, self.keyspaces.is_live(keyspace));
        }
        self.last.1
    }

    /// The range tombstones that hide keys of live keyspaces. A range lies within one keyspace, or begins in the default one.
    pub(crate) fn kept(mut self, ranges: &RangeTombstones) -> RangeTombstones {
        ranges.retain(|range| self.contains(&range.start))
    }
}

/// Whether all keys from `smallest` to `largest` belong to dropped keyspaces.
pub(crate) fn are_dropped(keyspaces: &KeyspaceSet, smallest: &[u8], largest: &[u8]) -> bool {
    !is_stored_plain(smallest) && ids(smallest, largest).is_some_and(|(first, last)| keyspaces.are_dropped(first, last))
}

/// Whether a dropped keyspace may have keys from `smallest` to `largest`.
pub(crate) fn may_have_dropped(keyspaces: &KeyspaceSet, smallest: &[u8], largest: &[u8]) -> bool {
    !is_stored_plain(largest)
        && ids(smallest, largest).is_some_and(|(first, last)| keyspaces.some_are_dropped(first, last))
}

fn ids(smallest: &[u8], largest: &[u8]) -> Option<(KeyspaceId, KeyspaceId)> {
    Some((split_stored(smallest)?.0, split_stored(largest)?.0))
}
