//! The properties of a table: counts and bounds, from which [`TableMeta`] is made when the table is opened.
//!
//! ```text
//! properties   varints: entries, tombstones, distinct keys, smallest seqno, largest seqno;
//!              varint length and smallest key, varint length and largest key; if entries expire:
//!              varints: their number, the first of 8 instants, and the difference of each later one
//! ```
//!
//! By the n-th instant, at least n eighths of the entries with an expiry have expired; by the last one, all. So a compaction can determine when most
//! entries of a table have expired, even if others last long.

use std::fmt;
use std::mem;
use std::path::Path;
use std::sync::Arc;

use crate::codec::{self, Malformed, Reader};
use crate::error::Error;
use crate::types::{
    Kind, MAX_SEQNO, MAX_STORED_KEY_LEN, Millis, RangeTombstones, SeqNo, ShownKey, Slice, split_expiry,
};

/// The counts and bounds of a table, collected while it is written and again when it is verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Properties {
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    /// The number of distinct keys, each counted once however many versions it has.
    pub(crate) keys: u64,
    pub(crate) min_seqno: SeqNo,
    pub(crate) max_seqno: SeqNo,
    pub(crate) smallest: Vec<u8>,
    pub(crate) largest: Vec<u8>,
    /// Set once all entries are counted ([`Properties::finish`]).
    pub(crate) expiring: Expiring,
    /// Used until all entries are counted.
    instants: Instants,
}

/// The number of instants that describe the entries of a table with an expiry.
const PARTS: usize = 8;

/// The expiries of a table's entries. Clones are cheap, and small if there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expiring(Option<Arc<Expiries>>);

#[derive(Debug, PartialEq, Eq)]
struct Expiries {
    count: u64,
    /// By the n-th instant, at least n parts of the entries have expired; by the last one, all. The instants ascend.
    instants: [Millis; PARTS],
}

impl Expiring {
    /// The expiries of `count` entries, of which one more part has expired by each instant.
    pub(crate) fn new(count: u64, instants: [Millis; PARTS]) -> Self {
        Self((count > 0).then(|| Arc::new(Expiries { count, instants })))
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, |expiries| expiries.count)
    }

    /// The instant by which all entries have expired; 0 if there are none.
    fn last(&self) -> Millis {
        self.0.as_ref().map_or(0, |expiries| expiries.instants[PARTS - 1])
    }

    /// A lower bound of the number of entries that have expired by `instant`.
    pub(crate) fn by(&self, instant: Millis) -> u64 {
        let Some(Expiries { count, instants }) = self.0.as_deref() else { return 0 };
        of_parts(*count, instants.partition_point(|at| *at <= instant))
    }

    /// Appends the expiries, if there are any.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let Some(Expiries { count, instants }) = self.0.as_deref() else { return };
        codec::put_varint(out, *count);
        let mut before = 0;
        for at in instants {
            codec::put_varint(out, at.saturating_sub(before));
            before = *at;
        }
    }

    /// Decodes the output of `encode`.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        let count = reader.varint().filter(|&count| count > 0 && count <= MAX_SEQNO)?;
        let (mut instants, mut before) = ([0; PARTS], 0u64);
        for at in &mut instants {
            before = before.checked_add(reader.varint()?)?;
            *at = before;
        }
        Some(Self::new(count, instants))
    }
}

/// The number of entries in `parts` of the [`PARTS`] parts of `count`, rounded up.
fn of_parts(count: u64, parts: usize) -> u64 {
    (u128::from(count) * parts as u128).div_ceil(PARTS as u128) as u64
}

/// Neighbouring instants are merged when this many were collected.
const MOST_COLLECTED: usize = 1024;
/// Neighbours are merged as long as they have together at most this part of the entries: this frees half of the places.
const MERGED_PART: u64 = 256;

/// The instants of entries that expire, collected in bounded memory. Neighbours are merged: an entry is then counted at a later instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Instants(Vec<(Millis, u64)>);

impl Instants {
    /// O(log [`MOST_COLLECTED`]), amortised.
    fn add(&mut self, at: Millis) {
        if self.0.len() == MOST_COLLECTED {
            self.merge();
        }
        self.0.push((at, 1));
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    fn merge(&mut self) {
        let most = self.count() / MERGED_PART;
        self.0.sort_unstable();
        self.0.dedup_by(|(at, count), (before, sum)| {
            let is_merged = at == before || *sum + *count <= most;
            if is_merged {
                (*before, *sum) = (*at, *sum + *count);
            }
            is_merged
        });
    }

    fn finish(mut self) -> Expiring {
        self.0.sort_unstable();
        let (count, mut instants) = (self.count(), [0; PARTS]);
        let (mut sum, mut parts) = (0, 0);
        for (at, entries) in self.0 {
            sum += entries;
            while parts < PARTS && sum >= of_parts(count, parts + 1) {
                instants[parts] = at;
                parts += 1;
            }
        }
        Expiring::new(count, instants)
    }
}

impl Properties {
    /// Counts an entry, which must come after all earlier ones. Returns whether its key is new.
    pub(crate) fn count(&mut self, key: &[u8], seqno: SeqNo, kind: Kind, stored: &[u8]) -> bool {
        let first = self.entries == 0;
        let new_key = first || self.largest != key;
        if first {
            self.smallest = key.to_vec();
            self.min_seqno = seqno;
        }
        if new_key {
            self.largest.clear();
            self.largest.extend_from_slice(key);
            self.keys += 1;
        }
        self.entries += 1;
        self.tombstones += u64::from(kind == Kind::Tombstone);
        if kind == Kind::Expiring {
            self.instants.add(split_expiry(stored).0);
        }
        self.min_seqno = self.min_seqno.min(seqno);
        self.max_seqno = self.max_seqno.max(seqno);
        new_key
    }

    /// Extends the bounds to include the range tombstones, once all entries are counted. In the rest of a narrowed table there may be no entry.
    pub(crate) fn finish(&mut self, tombstones: &RangeTombstones) {
        self.expiring = mem::take(&mut self.instants).finish();
        let (Some(first), Some(last)) = (tombstones.first_key(), tombstones.largest()) else { return };
        if self.entries == 0 {
            (self.smallest, self.min_seqno) = (first.to_vec(), SeqNo::MAX);
        }
        if **first < *self.smallest {
            self.smallest = first.to_vec();
        }
        if *last > *self.largest {
            self.largest = last.to_vec();
        }
        for seqno in tombstones.iter().map(|range| range.seqno) {
            self.min_seqno = self.min_seqno.min(seqno);
            self.max_seqno = self.max_seqno.max(seqno);
        }
    }

    /// The metadata of table `number` with `size` bytes, these properties and these range tombstones.
    pub(crate) fn meta(&self, number: u64, size: u64, ranges: &RangeTombstones) -> TableMeta {
        TableMeta {
            number,
            size,
            entries: self.entries,
            tombstones: self.tombstones,
            smallest: Slice::from(&self.smallest[..]),
            largest: Slice::from(&self.largest[..]),
            min_seqno: self.min_seqno,
            max_seqno: self.max_seqno,
            narrowed: false,
            range_tombstones: ranges.parts().count() as u64,
            expiring: self.expiring.clone(),
        }
    }

    /// Whether these may be the properties of the last part of a table with the properties `whole`.
    pub(crate) fn is_end_of(&self, whole: &Properties) -> bool {
        let counts = |of: &Properties| [of.entries, of.tombstones, of.keys, of.expiring.count(), of.expiring.last()];
        let fewer = counts(self).iter().zip(counts(whole)).all(|(part, whole)| *part <= whole);
        let within = whole.min_seqno <= self.min_seqno && self.max_seqno <= whole.max_seqno;
        fewer && within && whole.smallest <= self.smallest && self.largest == whole.largest
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [self.entries, self.tombstones, self.keys, self.min_seqno, self.max_seqno] {
            codec::put_varint(&mut out, number);
        }
        codec::put_prefixed(&mut out, &self.smallest);
        codec::put_prefixed(&mut out, &self.largest);
        self.expiring.encode(&mut out);
        out
    }

    pub(crate) fn decode(contents: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(contents);
        let properties = (|| {
            Some(Self {
                entries: reader.varint()?,
                tombstones: reader.varint()?,
                keys: reader.varint()?,
                min_seqno: reader.varint()?,
                max_seqno: reader.varint().filter(|&seqno| seqno <= MAX_SEQNO)?,
                smallest: reader.prefixed(MAX_STORED_KEY_LEN)?.to_vec(),
                largest: reader.prefixed(MAX_STORED_KEY_LEN)?.to_vec(),
                expiring: if reader.is_empty() { Expiring::default() } else { Expiring::decode(&mut reader)? },
                instants: Instants::default(),
            })
        })();
        let properties = properties.ok_or(reader.malformed("the properties of a table"))?;
        if !reader.is_empty() {
            return Err(reader.malformed("the end of the properties"));
        }
        Ok(properties)
    }
}

/// The information about a table that is known without reading its data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableMeta {
    /// The number in the name of the file.
    pub(crate) number: u64,
    /// The length of the file in bytes.
    pub(crate) size: u64,
    /// The number of entries, including tombstones.
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    /// The smallest key, including range tombstones; for a narrowed table, its bound.
    pub(crate) smallest: Slice,
    /// The largest key, including range tombstones: it may be the exclusive end of one.
    pub(crate) largest: Slice,
    pub(crate) min_seqno: SeqNo,
    pub(crate) max_seqno: SeqNo,
    /// Whether a compaction has already consumed the keys below `smallest`: they are still in the file, but must not be read. Size and counts are
    /// then those of the whole file; sequence numbers are limits.
    pub(crate) narrowed: bool,
    /// The number of range tombstones; those with equal bounds count once.
    pub(crate) range_tombstones: u64,
    pub(crate) expiring: Expiring,
}

impl TableMeta {
    /// The table without its entries below `from`, which lies within its key range.
    pub(crate) fn narrowed_to(&self, from: Slice) -> TableMeta {
        debug_assert!(self.smallest <= from && from <= self.largest, "a bound outside of the table");
        TableMeta { smallest: from, narrowed: true, ..self.clone() }
    }

    /// Checks that the table in the file at `path`, whose metadata is `found`, is the one that this metadata, from a version, describes.
    ///
    /// # Errors
    /// [`Error::Corruption`].
    pub(crate) fn check_is(&self, found: &TableMeta, path: &Path) -> Result<(), Error> {
        let same = TableMeta { smallest: found.smallest.clone(), narrowed: false, ..self.clone() } == *found;
        let begins = if self.narrowed { self.smallest >= found.smallest } else { self.smallest == found.smallest };
        if same && begins && self.smallest <= self.largest {
            return Ok(());
        }
        let what = format!("table: expected {self:?} as the manifest says, found {found:?}");
        Err(Error::corruption(path, 0, what))
    }
}

/// Displays number, size, counts and bounds.
impl fmt::Display for TableMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, size, entries, tombstones, min_seqno, max_seqno, range_tombstones, .. } = self;
        write!(f, "table {number}, {size} bytes, {entries} entries, {tombstones} of them tombstones, ")?;
        if let Some(Expiries { count, instants }) = self.expiring.0.as_deref() {
            let (half, last) = (instants[PARTS / 2 - 1], self.expiring.last());
            write!(f, "{count} that expire, half by {half}, the last at {last}, ")?;
        }
        if *range_tombstones > 0 {
            write!(f, "{range_tombstones} range tombstones, ")?;
        }
        let (narrowed, from, to) = (if self.narrowed { "narrowed to " } else { "" }, &self.smallest, &self.largest);
        write!(f, "seqnos {min_seqno} to {max_seqno}, {narrowed}keys {} to {}", ShownKey(from), ShownKey(to))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use proof::Random;

    #[test]
    fn counts_and_bounds_are_those_of_the_entries() {
        // Catches versions counted as keys, a smallest seqno that starts at 0, and a largest seqno that is the last one. Also catches an entry that
        // expires counted as a tombstone, and bytes for expiries where there are none.
        let mut properties = Properties::default();
        let new = [(b"a", 9, Kind::Value), (b"a", 5, Kind::Tombstone), (b"b", 7, Kind::Value)]
            .map(|(key, seqno, kind)| properties.count(key, seqno, kind, b""));
        assert_eq!(new, [true, false, true]);
        let expected = Properties {
            entries: 3,
            tombstones: 1,
            keys: 2,
            min_seqno: 5,
            max_seqno: 9,
            smallest: b"a".to_vec(),
            largest: b"b".to_vec(),
            ..Properties::default()
        };
        assert_eq!(properties, expected);
        let plain = properties.encode();
        assert_eq!(Properties::decode(&plain), Ok(expected.clone()));
        for at in [700u64, 900, 800] {
            properties.count(b"c", at, Kind::Expiring, &at.to_le_bytes());
        }
        properties.finish(&RangeTombstones::default());
        let expiring = Expiring::new(3, [700, 700, 800, 800, 800, 900, 900, 900]);
        assert_eq!((&properties.expiring, properties.tombstones), (&expiring, 1));
        assert_eq!(Properties::decode(&properties.encode()), Ok(properties.clone()));
        assert!(properties.encode().len() > plain.len());
        assert_eq!([699, 700, 799, 800, 899, 900].map(|at| expiring.by(at)), [0, 1, 1, 2, 2, 3]);
    }

    proptest! {
        #[test]
        fn an_instant_has_no_more_entries_than_have_expired_and_an_eighth_and_some_fewer_at_most(
            seed in any::<u64>(), count in 1..9000u64, spread in 1..1_000_000u64, step in 0..1000u64,
        ) {
            // Catches entries that are counted before they have expired, for which a compaction would search in vain, and instants that are so
            // inaccurate that most of a table expires unnoticed.
            let mut random = Random(seed);
            let mut properties = Properties::default();
            let mut all: Vec<u64> = (0..count).map(|n| 1 + n * step + random.below(spread)).collect();
            for at in &all {
                properties.count(b"k", 1, Kind::Expiring, &at.to_le_bytes());
                prop_assert!(properties.instants.0.len() <= MOST_COLLECTED);
            }
            properties.finish(&RangeTombstones::default());
            let expiring = properties.expiring;
            let instants = expiring.0.as_deref().expect("some expire").instants;
            all.sort_unstable();
            prop_assert_eq!((expiring.count(), expiring.last()), (count, all[all.len() - 1]));
            prop_assert!(instants.is_sorted());
            // Each merge leaves at most one group that includes an instant, with a 256th of the entries so far; at most 17 merges are a 28th in all.
            let most_behind = count / 8 + count / 28 + 1;
            for at in all.iter().step_by(7).copied().chain(instants) {
                let (expired, by) = (all.partition_point(|other| *other <= at) as u64, expiring.by(at));
                prop_assert!(by <= expired && expired <= by + most_behind, "{} {}", by, expired);
            }
        }

        #[test]
        fn random_bytes_never_panic_the_properties(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            // Catches an unchecked key length; decoded properties must encode to the same bytes, or shorter varints.
            if let Ok(properties) = Properties::decode(&bytes) {
                prop_assert!(properties.encode().len() <= bytes.len());
            }
        }
    }
}
