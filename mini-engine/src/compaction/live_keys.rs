//! [`LiveKeys`]: distinguishes keys of live keyspaces from those of dropped ones, which compactions leave out.
//!
//! No read returns the keys of a dropped keyspace: its handles and snapshots return errors, and no other keyspace gets its number. So a compaction
//! can leave them out of any table at any time, whatever snapshots exist. Tables with no other keys can be removed, whatever is in the tables of
//! other levels. An iterator that was created before the drop continues: its view keeps the files.

use std::sync::Arc;

use crate::manifest::KeyspaceSet;
use crate::types::{
    DEFAULT_KEYSPACE, KeyPrefix, KeyspaceId, RangeTombstones, is_same_keyspace, is_stored_plain, split_stored,
};

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

    /// The range tombstones that may hide keys of live keyspaces. A range lies within one keyspace, begins in the default one, or was written by an
    /// early version, which joined ranges of neighbouring keyspaces that a transaction removed.
    pub(crate) fn kept(mut self, ranges: &RangeTombstones) -> RangeTombstones {
        ranges.retain(|range| self.contains(&range.start) || !is_in_one_keyspace(&range.start, &range.end))
    }
}

fn is_in_one_keyspace(start: &[u8], end: &[u8]) -> bool {
    is_same_keyspace(start, end) || split_stored(start).is_some_and(|(id, _)| *KeyPrefix::of(id).end() == *end)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::KeyspaceEdit;
    use crate::options::KeyspaceOptions;
    use crate::types::{RangeTombstone, Slice};

    #[test]
    fn a_range_is_dropped_only_with_all_of_its_keyspaces() {
        // Catches removed keys that return when the first of two keyspaces with a joined range is dropped, and ranges that are kept for ever.
        let mut set = Arc::<KeyspaceSet>::default();
        for name in ["a", "b", "c"] {
            let edit =
                KeyspaceEdit { set: vec![set.create(name, KeyspaceOptions::default()).unwrap()], ..Default::default() };
            set = set.clone().apply(&edit).unwrap();
        }
        let set = set.apply(&KeyspaceEdit { dropped: vec![1], ..Default::default() }).unwrap();
        let key = |id, key: &[u8]| KeyPrefix::of(id).with_stored(key, |stored| Slice::from(stored));
        let range = |start, end| RangeTombstone { start, end, seqno: 1 };
        let dropped = [range(key(1, b""), key(1, b"z")), range(key(1, b"k"), KeyPrefix::of(1).end())];
        let kept = [
            range(key(1, b"k"), KeyPrefix::of(2).end()),
            range(key(1, b"x"), key(2, b"m")),
            range(key(2, b""), key(2, b"z")),
        ];
        let found = LiveKeys::new(set).kept(&RangeTombstones::new(dropped.into_iter().chain(kept.clone())));
        assert_eq!(found, RangeTombstones::new(kept));
    }
}
