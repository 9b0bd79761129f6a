//! Which versions of a key a new table keeps.
//!
//! The live snapshots cut the history into stripes: two versions are in one stripe if no snapshot lies between them. Of
//! each stripe only the newest version can still be seen, by the snapshots above it or, in the topmost stripe, by every
//! reader to come. A reader that comes later reads at or above the newest version, since inputs of a merge hold nothing
//! newer than what was visible when it began, and a reader pins its view before it loads the visible number (rule 16).

use crate::compaction::key_range::KeySet;
use crate::types::{Kind, SeqNo};

/// What must be kept: the same for all keys of one merge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retention<'a> {
    /// Sequence numbers of the live snapshots, ascending.
    pub(crate) snapshots: &'a [SeqNo],
    pub(crate) tombstones: Tombstones<'a>,
}

/// Which tombstones may still hide something in older tables.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tombstones<'a> {
    /// Any.
    KeepAll,
    /// Those of these keys. Another one goes, unless it hides an older version that is kept for a snapshot.
    KeepOf(&'a KeySet),
}

impl Tombstones<'_> {
    fn keeps(self, key: &[u8]) -> bool {
        match self {
            Tombstones::KeepAll => true,
            Tombstones::KeepOf(keys) => keys.contains(key),
        }
    }
}

/// Decides version by version, in entry order.
#[derive(Debug)]
pub(crate) struct Shadowing<'a> {
    retention: Retention<'a>,
    key: Vec<u8>,
    /// The stripe of the last version of `key`; `None` before the first version of all.
    stripe: Option<usize>,
}

impl<'a> Shadowing<'a> {
    pub(crate) fn new(retention: Retention<'a>) -> Self {
        Self { retention, key: Vec::new(), stripe: None }
    }

    /// Whether no version of `key` came yet, if it comes next.
    pub(crate) fn is_new(&self, key: &[u8]) -> bool {
        self.stripe.is_none() || self.key != key
    }

    /// Whether this version is kept. Versions come in entry order: key ascending, seqno descending.
    pub(crate) fn keeps(&mut self, key: &[u8], seqno: SeqNo, kind: Kind) -> bool {
        // The number of snapshots that are too old to see this version.
        let stripe = self.retention.snapshots.partition_point(|&snapshot| snapshot < seqno);
        let same_key = self.stripe.is_some() && self.key == key;
        if same_key && self.stripe == Some(stripe) {
            return false;
        }
        if !same_key {
            self.key.clear();
            self.key.extend_from_slice(key);
        }
        self.stripe = Some(stripe);
        // In the lowest stripe every older version is shadowed, so with nothing below the tombstone hides nothing.
        kind == Kind::Value || stripe > 0 || self.retention.tombstones.keeps(key)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(snapshots: &[SeqNo], drop_tombstones: bool, versions: &[(SeqNo, Kind)]) -> Vec<SeqNo> {
        let nothing_below = KeySet::default();
        let tombstones = if drop_tombstones { Tombstones::KeepOf(&nothing_below) } else { Tombstones::KeepAll };
        let mut shadowing = Shadowing::new(Retention { snapshots, tombstones });
        versions.iter().filter(|(seqno, kind)| shadowing.keeps(b"k", *seqno, *kind)).map(|v| v.0).collect()
    }

    const VALUES: [(SeqNo, Kind); 4] = [(9, Kind::Value), (7, Kind::Value), (5, Kind::Value), (3, Kind::Value)];

    #[test]
    fn without_snapshots_only_the_newest_version_stays() {
        // Catches a merge that keeps history for nobody.
        assert_eq!(kept(&[], false, &VALUES), [9]);
    }

    #[test]
    fn a_snapshot_keeps_what_it_can_see() {
        // Catches an off-by-one between a snapshot and the version with its own number.
        assert_eq!(kept(&[5], false, &VALUES), [9, 5]);
        assert_eq!(kept(&[6], false, &VALUES), [9, 5]);
        assert_eq!(kept(&[7], false, &VALUES), [9, 7]);
        assert_eq!(kept(&[2], false, &VALUES), [9]);
        assert_eq!(kept(&[3, 4, 8, 20], false, &VALUES), [9, 7, 3]);
    }

    #[test]
    fn a_tombstone_stays_while_a_snapshot_keeps_what_it_hides() {
        // Catches a deleted key that returns because its tombstone went before the old version did.
        let removed = [(9, Kind::Tombstone), (5, Kind::Value)];
        assert_eq!(kept(&[6], true, &removed), [9, 5]);
        assert_eq!(kept(&[], true, &removed), [0; 0]);
        assert_eq!(kept(&[], false, &removed), [9]);
        assert_eq!(kept(&[10], true, &removed), [0; 0]);
    }

    #[test]
    fn a_tombstone_goes_key_by_key_where_nothing_lies_below() {
        // Catches a tombstone dropped above an older table that holds its key, and one kept for a neighbour's sake.
        let below = KeySet::covering([&crate::manifest::test_tables::table_of_keys(1, "b", "c")]);
        let mut shadowing = Shadowing::new(Retention { snapshots: &[], tombstones: Tombstones::KeepOf(&below) });
        let kept = ["a", "b", "c", "d"].map(|key| shadowing.keeps(key.as_bytes(), 9, Kind::Tombstone));
        assert_eq!(kept, [false, true, true, false]);
    }

    #[test]
    fn an_empty_first_key_is_a_key() {
        // Catches a filter whose initial state looks like an earlier version of the empty key.
        let mut shadowing = Shadowing::new(Retention { snapshots: &[], tombstones: Tombstones::KeepAll });
        assert!(shadowing.keeps(b"", 1, Kind::Value));
        assert!(!shadowing.keeps(b"", 0, Kind::Value));
    }

    proptest! {
        #[test]
        fn every_reader_sees_the_same_before_and_after(
            versions in prop::collection::btree_map(1..40u64, any::<bool>(), 1..20),
            snapshots in prop::collection::btree_set(0..45u64, 0..6),
            drop_tombstones in any::<bool>(),
        ) {
            // Catches a dropped version that some snapshot, or the newest reader, still sees.
            let versions: Vec<_> = versions.into_iter().rev()
                .map(|(seqno, value)| (seqno, if value { Kind::Value } else { Kind::Tombstone })).collect();
            let snapshots: Vec<_> = snapshots.into_iter().collect();
            let kept = kept(&snapshots, drop_tombstones, &versions);
            for at in snapshots.iter().copied().chain([100]) {
                let value = |alive: &dyn Fn(SeqNo) -> bool| {
                    versions.iter().find(|v| v.0 <= at && alive(v.0)).filter(|v| v.1 == Kind::Value).map(|v| v.0)
                };
                prop_assert_eq!(value(&|_| true), value(&|seqno| kept.contains(&seqno)), "at {}", at);
            }
        }
    }
}
