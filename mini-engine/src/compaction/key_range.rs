//! Key ranges of tables: overlaps and unions.

use crate::table::TableMeta;
use crate::types::{KeyBounds, Slice, is_before_end, overlaps};

/// The keys from the first to the last, both included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) smallest: Slice,
    pub(crate) largest: Slice,
}

impl KeyRange {
    pub(crate) fn of(table: &TableMeta) -> KeyRange {
        KeyRange { smallest: table.smallest.clone(), largest: table.largest.clone() }
    }

    /// The range that `tables` cover together, including gaps between them; `None` without a table.
    pub(crate) fn around<'a>(tables: impl IntoIterator<Item = &'a TableMeta>) -> Option<KeyRange> {
        tables.into_iter().fold(None, |key_range, table| Some(KeyRange::grown(key_range, table)))
    }

    /// The smallest range that holds `key_range` and `table`.
    pub(crate) fn grown(key_range: Option<KeyRange>, table: &TableMeta) -> KeyRange {
        match key_range {
            None => KeyRange::of(table),
            Some(key_range) => KeyRange {
                smallest: key_range.smallest.min(table.smallest.clone()),
                largest: key_range.largest.max(table.largest.clone()),
            },
        }
    }

    pub(crate) fn overlaps(&self, other: &KeyRange) -> bool {
        self.smallest <= other.largest && other.smallest <= self.largest
    }

    pub(crate) fn overlaps_table(&self, table: &TableMeta) -> bool {
        self.smallest <= table.largest && table.smallest <= self.largest
    }
}

/// Whether a table may hold a key within the bounds.
pub(crate) fn overlaps_bounds(table: &TableMeta, bounds: &impl KeyBounds) -> bool {
    overlaps(&table.smallest, &table.largest, bounds)
}

/// A set of keys: the union of ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeySet {
    /// Disjoint and ascending.
    ranges: Vec<KeyRange>,
}

impl KeySet {
    /// All keys of one range.
    pub(crate) fn of(key_range: KeyRange) -> KeySet {
        KeySet { ranges: vec![key_range] }
    }

    /// The union of the ranges of `tables`. O(n log n).
    pub(crate) fn covering<'a>(tables: impl IntoIterator<Item = &'a TableMeta>) -> KeySet {
        let mut all: Vec<KeyRange> = tables.into_iter().map(KeyRange::of).collect();
        all.sort_by(|a, b| a.smallest.cmp(&b.smallest));
        let mut ranges: Vec<KeyRange> = Vec::new();
        for key_range in all {
            match ranges.last_mut().filter(|last| last.largest >= key_range.smallest) {
                Some(last) => last.largest = last.largest.clone().max(key_range.largest),
                None => ranges.push(key_range),
            }
        }
        KeySet { ranges }
    }

    /// Whether the set contains `key`. O(log ranges).
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        let at = self.ranges.partition_point(|key_range| *key_range.largest < *key);
        self.ranges.get(at).is_some_and(|key_range| *key_range.smallest <= *key)
    }

    /// Whether the set has a key >= `start` and < `end`; an empty `end` means no end. O(log ranges).
    pub(crate) fn overlaps(&self, start: &[u8], end: &[u8]) -> bool {
        let at = self.ranges.partition_point(|key_range| *key_range.largest < *start);
        self.ranges.get(at).is_some_and(|key_range| is_before_end(&key_range.smallest, end))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::manifest::test_tables::table_of_keys;

    fn tables(ranges: &[(u8, u8)]) -> Vec<TableMeta> {
        let key = |n: u8| format!("{n:03}");
        ranges.iter().map(|&(a, b)| table_of_keys(1, &key(a.min(b)), &key(a.max(b)))).collect()
    }

    proptest! {
        #[test]
        fn a_key_set_holds_what_some_table_spans(ranges in prop::collection::vec((0u8..40, 0u8..40), 0..12)) {
            // Catches ranges that swallow each other, or the gap between them, when they are joined.
            let tables = tables(&ranges);
            let set = KeySet::covering(&tables);
            prop_assert_eq!(set.is_empty(), tables.is_empty());
            for n in 0..41u8 {
                let key = format!("{n:03}");
                let held = tables.iter().any(|t| *t.smallest <= *key.as_bytes() && *key.as_bytes() <= *t.largest);
                prop_assert_eq!(set.contains(key.as_bytes()), held, "{}", key);
                // A key between two keys, so it is in a table only if the table spans both.
                let between = format!("{n:03}x");
                let held = ranges.iter().any(|&(a, b)| a.min(b) <= n && n < a.max(b));
                prop_assert_eq!(set.contains(between.as_bytes()), held, "{}", between);
            }
        }
    }

    #[test]
    fn bounds_meet_a_table_at_its_ends() {
        // Catches an exclusive bound that includes a table without keys in the range, and an inclusive bound that misses one.
        let table = table_of_keys(1, "c", "f");
        use std::ops::Bound::{Excluded, Included, Unbounded};
        assert!(overlaps_bounds(&table, &(Unbounded, Included(b"c"))));
        assert!(!overlaps_bounds(&table, &(Unbounded, Excluded(b"c"))));
        assert!(overlaps_bounds(&table, &(Included(b"f"), Unbounded)));
        assert!(!overlaps_bounds(&table, &(Excluded(b"f"), Unbounded)));
        assert!(overlaps_bounds(&table, &(Included(b"d"), Excluded(b"e"))));
        assert!(overlaps_bounds(&table, &..));
    }

    #[test]
    fn spans_that_touch_overlap() {
        // Catches two tables of one run that share a key.
        let [a, b] = [("a", "c"), ("c", "e")].map(|(from, to)| table_of_keys(1, from, to));
        assert!(KeyRange::of(&a).overlaps(&KeyRange::of(&b)) && KeyRange::of(&a).overlaps_table(&b));
        let apart = table_of_keys(1, "d", "e");
        assert!(!KeyRange::of(&a).overlaps(&KeyRange::of(&apart)) && !KeyRange::of(&apart).overlaps_table(&a));
        let around = KeyRange::around([&apart, &a]).unwrap();
        assert_eq!((&*around.smallest, &*around.largest), (&b"a"[..], &b"e"[..]));
    }
}
