//! Decides which versions of a key a new table keeps.
//!
//! The live snapshots divide the history into stripes: two versions are in one stripe if no snapshot lies between them. In each stripe only the
//! newest version can still be seen, by the snapshots above it or, in the topmost stripe, by every later reader. A later reader reads at or above the
//! newest version: a compaction's inputs hold no version newer than those visible when it began, and a reader pins its view before it loads the
//! visible number (rule 16).
//!
//! An entry that has expired for all readers of its stripe (for the reader with the earliest instant) becomes a tombstone: it moves down like
//! tombstones, and hides older versions as long as there may be any.
//!
//! A range tombstone is a version of each key that it covers. So a compaction drops the entries that a range tombstone covers in its own stripe, and
//! if several cover the same keys in one stripe, only the newest is kept ([`Retention::reduced`], [`Covering`]). Like other tombstones, one in the
//! lowest stripe is dropped if no older table can hold a key of its range: every entry that it covers was an input, and is dropped.

use std::ops::RangeInclusive;

use crate::compaction::key_range::KeySet;
use crate::table::RunTable;
use crate::types::{Kind, MAX_SEQNO, Millis, RangeTombstone, RangeTombstones, SeqNo, shown};

/// The rule for the versions that must be kept; it is the same for all keys of one compaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retention<'a> {
    /// Sequence numbers of the live snapshots, ascending.
    pub(crate) snapshots: &'a [SeqNo],
    /// The instant of each snapshot, and one more for all later readers. In a stripe without an instant no entry has expired.
    pub(crate) instants: &'a [Millis],
    pub(crate) tombstones: Tombstones<'a>,
}

/// The tombstones that may still hide an entry in older tables.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tombstones<'a> {
    KeepAll,
    /// The tombstones of these keys. Others are dropped, unless they hide an older version that is kept for a snapshot.
    KeepOf(&'a KeySet),
}

impl Retention<'_> {
    /// Keeps only the newest version of each key, tombstones included: no reader needs an older one. Treats no entry as expired.
    pub(crate) const NEWEST: Self = Retention { snapshots: &[], instants: &[], tombstones: Tombstones::KeepAll };

    /// The stripe of a version: the number of snapshots that are too old to see it.
    fn stripe(&self, seqno: SeqNo) -> usize {
        self.snapshots.partition_point(|&snapshot| snapshot < seqno)
    }

    /// The kind with which a version is kept: an entry that has expired for all readers of its stripe becomes a tombstone.
    #[inline]
    pub(crate) fn kind(&self, seqno: SeqNo, kind: Kind, stored: &[u8]) -> Kind {
        // The oldest reader of a stripe reads at the earliest instant.
        let instant = || self.instants.get(self.stripe(seqno)).copied().unwrap_or(0);
        if kind == Kind::Expiring && shown(kind, stored, instant).is_none() { Kind::Tombstone } else { kind }
    }

    /// The sequence numbers of the stripe that contains `seqno`.
    fn stripe_of(&self, seqno: SeqNo) -> RangeInclusive<SeqNo> {
        let stripe = self.stripe(seqno);
        let first =
            stripe.checked_sub(1).and_then(|below| self.snapshots.get(below)).map_or(0, |snapshot| snapshot + 1);
        first..=self.snapshots.get(stripe).copied().unwrap_or(MAX_SEQNO)
    }

    /// The range tombstones reduced to the newest of each stripe that covers the same keys.
    pub(crate) fn reduced(&self, ranges: &RangeTombstones) -> RangeTombstones {
        ranges.reduced(|seqno| self.stripe_of(seqno))
    }

    /// The reduced range tombstones of all inputs that new tables must keep.
    pub(crate) fn kept_ranges(&self, ranges: &RangeTombstones) -> RangeTombstones {
        ranges.retain(|range| self.stripe(range.seqno) > 0 || self.tombstones.keeps_range(range))
    }

    /// Whether range tombstones cover a table completely, so that none of its entries is kept.
    pub(crate) fn drops_table(&self, table: &RunTable, ranges: &RangeTombstones) -> bool {
        // If the oldest reader of the table's stripe sees a newer tombstone, that tombstone is in the stripe.
        let between = (table.table().meta().max_seqno, *self.stripe_of(table.min_seqno()).end());
        ranges.cover_all(table.smallest(), table.largest(), between)
    }
}

impl Tombstones<'_> {
    fn keeps_range(self, range: &RangeTombstone) -> bool {
        match self {
            Tombstones::KeepAll => true,
            Tombstones::KeepOf(keys) => keys.overlaps(&range.start, &range.end),
        }
    }

    fn keeps(self, key: &[u8]) -> bool {
        match self {
            Tombstones::KeepAll => true,
            Tombstones::KeepOf(keys) => keys.contains(key),
        }
    }
}

/// Decides which versions are kept, one after the other, in entry order.
#[derive(Debug)]
pub(crate) struct Shadowing<'a> {
    retention: Retention<'a>,
    key: Vec<u8>,
    /// The stripe of the last version of `key`; `None` before the first version of all keys.
    stripe: Option<usize>,
}

impl<'a> Shadowing<'a> {
    pub(crate) fn new(retention: Retention<'a>) -> Self {
        Self { retention, key: Vec::new(), stripe: None }
    }

    /// The key of the last versions.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Whether `key` differs from that of the last versions.
    pub(crate) fn is_new(&self, key: &[u8]) -> bool {
        self.stripe.is_none() || self.key != key
    }

    /// Whether this version is kept. Versions come in entry order: key ascending, seqno descending.
    pub(crate) fn keeps(&mut self, key: &[u8], seqno: SeqNo, kind: Kind) -> bool {
        let stripe = self.retention.stripe(seqno);
        let same_key = self.stripe.is_some() && self.key == key;
        if same_key && self.stripe == Some(stripe) {
            return false;
        }
        if !same_key {
            self.key.clear();
            self.key.extend_from_slice(key);
        }
        self.stripe = Some(stripe);
        // In the lowest stripe every older version is shadowed, so if no older table has the key, the tombstone hides nothing.
        kind != Kind::Tombstone || stripe > 0 || self.retention.tombstones.keeps(key)
    }
}

/// Finds the entries that range tombstones cover, key by key in ascending order.
#[derive(Debug)]
pub(crate) struct Covering<'a> {
    retention: Retention<'a>,
    ranges: &'a RangeTombstones,
    /// The position of the last key.
    near: usize,
}

impl<'a> Covering<'a> {
    /// `ranges` are the range tombstones of all inputs.
    pub(crate) fn new(retention: Retention<'a>, ranges: &'a RangeTombstones) -> Self {
        Self { retention, ranges, near: 0 }
    }

    /// Whether a version is covered by a range tombstone of its stripe.
    pub(crate) fn covers(&mut self, key: &[u8], seqno: SeqNo) -> bool {
        // If the oldest reader of the version sees a newer tombstone, that tombstone is in its stripe.
        let seen = *self.retention.stripe_of(seqno).end();
        !self.ranges.is_empty() && self.ranges.covering_near(&mut self.near, key, seen) > Some(seqno)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::manifest::test_tables::table;
    use crate::table::TableMeta;
    use crate::types::Slice;

    fn table_of(smallest: &[u8], largest: &[u8]) -> TableMeta {
        TableMeta { smallest: smallest.into(), largest: largest.into(), ..table(1, 1, 1) }
    }

    fn kept(snapshots: &[SeqNo], drop_tombstones: bool, versions: &[(SeqNo, Kind)]) -> Vec<SeqNo> {
        let nothing_below = KeySet::default();
        let tombstones = if drop_tombstones { Tombstones::KeepOf(&nothing_below) } else { Tombstones::KeepAll };
        let mut shadowing = Shadowing::new(Retention { snapshots, instants: &[], tombstones });
        versions.iter().filter(|(seqno, kind)| shadowing.keeps(b"k", *seqno, *kind)).map(|v| v.0).collect()
    }

    #[test]
    fn what_a_snapshot_can_see_stays_with_the_tombstones_that_hide_it_and_nothing_else() {
        // Catches old versions that stay without a snapshot, an off-by-one between a snapshot and the version with its own number, and a deleted
        // key that returns because its tombstone was dropped before the old version.
        let values = [9, 7, 5, 3].map(|seqno| (seqno, Kind::Value));
        let removed = [(9, Kind::Tombstone), (5, Kind::Value)];
        type Case<'a> = (&'a [SeqNo], bool, &'a [(SeqNo, Kind)], &'a [SeqNo]);
        let cases: [Case<'_>; 10] = [
            (&[], false, &values, &[9]),
            (&[5], false, &values, &[9, 5]),
            (&[6], false, &values, &[9, 5]),
            (&[7], false, &values, &[9, 7]),
            (&[2], false, &values, &[9]),
            (&[3, 4, 8, 20], false, &values, &[9, 7, 3]),
            (&[6], true, &removed, &[9, 5]),
            (&[], true, &removed, &[]),
            (&[], false, &removed, &[9]),
            (&[10], true, &removed, &[]),
        ];
        for (snapshots, drop_tombstones, versions, expected) in cases {
            assert_eq!(kept(snapshots, drop_tombstones, versions), expected, "{snapshots:?} {versions:?}");
        }
    }

    #[test]
    fn a_tombstone_goes_key_by_key_where_nothing_lies_below() {
        // Catches a tombstone dropped above an older table that holds its key, and one that is kept because of a neighbouring key.
        let below = KeySet::covering([&crate::manifest::test_tables::table_of_keys(1, "b", "c")]);
        let mut shadowing =
            Shadowing::new(Retention { snapshots: &[], instants: &[], tombstones: Tombstones::KeepOf(&below) });
        let kept = ["a", "b", "c", "d"].map(|key| shadowing.keeps(key.as_bytes(), 9, Kind::Tombstone));
        assert_eq!(kept, [false, true, true, false]);
    }

    #[test]
    fn an_empty_first_key_is_a_key() {
        // Catches a filter whose initial state looks like an earlier version of the empty key.
        let mut shadowing =
            Shadowing::new(Retention { snapshots: &[], instants: &[], tombstones: Tombstones::KeepAll });
        assert!(shadowing.keeps(b"", 1, Kind::Value));
        assert!(!shadowing.keeps(b"", 0, Kind::Value));
    }

    /// A version with its stored value, which is just the instant for an entry that expires.
    type TestVersion = (Vec<u8>, SeqNo, Kind, Vec<u8>);

    /// The number of the value that a reader with this sequence number and instant finds, if any.
    fn seen(
        (at, instant): (SeqNo, Millis),
        versions: &[TestVersion],
        ranges: &RangeTombstones,
        key: &[u8],
    ) -> Option<SeqNo> {
        let (_, seqno, kind, stored) = versions.iter().filter(|v| v.0 == key && v.1 <= at).max_by_key(|v| v.1)?;
        (shown(*kind, stored, || instant).is_some() && ranges.covering(key, at) < Some(*seqno)).then_some(*seqno)
    }

    fn range(start: u8, end: u8, seqno: SeqNo) -> RangeTombstone {
        RangeTombstone { start: Slice::from(&[start][..]), end: Slice::from(&[end][..]), seqno }
    }

    proptest! {
        #[test]
        fn every_reader_finds_the_same_before_and_after(
            versions in prop::collection::btree_map((0..6u8, 1..40u64), (0..5u8, 1..9u64), 1..30),
            ranges in prop::collection::vec((0..6u8, 1..6u8, 1..40u64), 0..5),
            snapshots in prop::collection::btree_map(0..45u64, 0..3u64, 0..6), now in 0..3u64,
            below in prop::option::of((0..6u8, 0..3u8)),
        ) {
            // Catches entries dropped because of a tombstone that a snapshot does not see, a range tombstone dropped while it still hides an entry,
            // even in older tables, and a compaction that drops nothing. Also catches an entry that expires for a reader before its instant, an older
            // version that reappears when the entry has expired, and an entry that never expires.
            let mut versions: Vec<TestVersion> = versions.into_iter().map(|((key, seqno), (kind, at))| match kind {
                0 | 1 => (vec![key], seqno, Kind::Tombstone, vec![]),
                2 | 3 => (vec![key], seqno, Kind::Value, vec![]),
                _ => (vec![key], seqno, Kind::Expiring, at.to_le_bytes().to_vec()),
            }).collect();
            versions.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
            // No two versions have the same number.
            let ranges: Vec<_> = ranges.into_iter().map(|(start, len, at)| range(start, start + len, at * 100 + 50)).collect();
            versions.iter_mut().for_each(|version| version.1 *= 100);
            // Time advances from one reader to the next.
            let passed: Vec<u64> = snapshots.values().copied().chain([now]).collect();
            let instants: Vec<Millis> = (1..=passed.len()).map(|count| passed[..count].iter().sum()).collect();
            let snapshots: Vec<SeqNo> = snapshots.into_keys().map(|at| at * 100).collect();
            let now = instants[snapshots.len()];
            let older = below.map(|(from, len)| table_of(&[from], &[from + len]));
            let below = KeySet::covering(&older);
            let tombstones = Tombstones::KeepOf(&below);
            let retention = Retention { snapshots: &snapshots, instants: &instants, tombstones };
            let all = RangeTombstones::new(ranges);
            let reduced = retention.reduced(&all);
            let kept_ranges = retention.kept_ranges(&reduced);
            let (mut shadowing, mut covering) = (Shadowing::new(retention), Covering::new(retention, &reduced));
            let mut kept = versions.clone();
            kept.iter_mut().for_each(|(_, seqno, kind, stored)| *kind = retention.kind(*seqno, *kind, stored));
            kept.retain(|(key, seqno, kind, _)| shadowing.keeps(key, *seqno, *kind) & !covering.covers(key, *seqno));
            // A value in an older table.
            let with_older = |versions: &[TestVersion], key: &[u8]| {
                let mut versions = versions.to_vec();
                versions.extend(below.contains(key).then(|| (key.to_vec(), 1, Kind::Value, vec![])));
                versions
            };
            let later = (0..9).map(|more| (9000, now + more));
            for at in snapshots.iter().copied().zip(instants.iter().copied()).chain(later) {
                for key in 0..12u8 {
                    let (before, after) = (with_older(&versions, &[key]), with_older(&kept, &[key]));
                    let (before, after) = (seen(at, &before, &all, &[key]), seen(at, &after, &kept_ranges, &[key]));
                    prop_assert_eq!(before, after, "key {} at {:?}", key, at);
                }
            }
            if snapshots.is_empty() && below.is_empty() {
                prop_assert!(kept_ranges.is_empty());
                let shown = |(key, _, _, _): &TestVersion| seen((9000, now), &versions, &all, key).is_some();
                prop_assert!(kept.iter().all(shown));
            }
        }
    }
}
