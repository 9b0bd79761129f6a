//! [`RangeTombstone`]: the removal of a range of keys; and [`RangeTombstones`], any number of them, cut into fragments.
//!
//! A range goes from its first key to its *end*, which does not belong to it. An end is a place between keys: a key, or a key with a
//! zero behind it, which is the place right after that key, and so may be a byte longer than any key. In batches and memtables a range
//! may have no end; the empty string stands for that, since nothing comes before it.
//!
//! Fragments are how all but the log keep range tombstones (as RocksDB and Pebble do): where ranges overlap they are cut at each
//! other's ends.
//! F1 fragments ascend and are disjoint; none is empty. Each begins with a key.
//! F2 a fragment has the numbers of all tombstones that cover it, at least one, the newest first, none twice.
//! So a read finds what covers a key by one binary search.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::types::{KeyBounds, MAX_KEY_LEN, SeqNo, Slice};

/// The longest end of a range, in bytes: the place right after the longest key.
pub(crate) const MAX_END_LEN: usize = MAX_KEY_LEN + 1;

/// The removal of the keys of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RangeTombstone {
    pub(crate) start: Slice,
    pub(crate) end: Slice,
    pub(crate) seqno: SeqNo,
}

/// The keys within `bounds` as their first key and their end; `None` if there can be none.
pub(crate) fn start_and_end(bounds: &impl KeyBounds) -> Option<(Vec<u8>, Vec<u8>)> {
    let start = match bounds.start() {
        Bound::Unbounded => Vec::new(),
        Bound::Included(key) => key.to_vec(),
        Bound::Excluded(key) if key.len() < MAX_KEY_LEN => place_after(key),
        // No key begins with this one and is longer.
        Bound::Excluded(key) => after_prefix(key)?,
    };
    let end = match bounds.end() {
        Bound::Unbounded => Vec::new(),
        Bound::Excluded([]) => return None,
        Bound::Excluded(key) => key.to_vec(),
        Bound::Included(key) => place_after(key),
    };
    is_before_end(&start, &end).then_some((start, end))
}

/// The place right after `key`.
pub(crate) fn place_after(key: &[u8]) -> Vec<u8> {
    let mut place = Vec::with_capacity(key.len() + 1);
    place.extend_from_slice(key);
    place.push(0);
    place
}

/// The first key that is after all keys that begin with `prefix`: the prefix with its last byte that can grow grown by one, and
/// nothing behind it. A prefix of 0xff bytes has no such key.
pub(crate) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    *end.last_mut()? += 1;
    Some(end)
}

/// The first key at or behind a place. Behind the longest key there is none that begins with it.
fn first_key_at(place: &Slice) -> Option<Slice> {
    match place.split_at_checked(MAX_KEY_LEN) {
        Some((key, [_, ..])) => after_prefix(key).map(Slice::from),
        _ => Some(place.clone()),
    }
}

/// Whether `key` comes before `end`, where an empty one is no end.
pub(crate) fn is_before_end(key: &[u8], end: &[u8]) -> bool {
    end.is_empty() || key < end
}

/// Whether bytes can be an end: one that is longer than any key is the place right after a key.
pub(crate) fn is_end(end: &[u8]) -> bool {
    end.len() <= MAX_KEY_LEN || end.len() == MAX_END_LEN && end.last() == Some(&0)
}

/// A range whose keys the same tombstones cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) start: Slice,
    pub(crate) end: Slice,
    /// The newest first.
    pub(crate) seqnos: Arc<[SeqNo]>,
}

impl Fragment {
    /// The newest of its tombstones that is not newer than `seqno`.
    pub(crate) fn newest(&self, seqno: SeqNo) -> Option<SeqNo> {
        self.seqnos.get(self.seqnos.partition_point(|&newer| newer > seqno)).copied()
    }

    /// The last key that it can cover, or its end where that is not known: the key before a place right after a key is that key;
    /// before any other there are endlessly many.
    pub(crate) fn largest(&self) -> &[u8] {
        self.end.strip_suffix(&[0]).unwrap_or(&self.end)
    }
}

/// Range tombstones, in fragments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeTombstones {
    fragments: Vec<Fragment>,
}

/// Where a range begins or ends. The last of all is the end of one that has none.
type Place<'a> = (bool, &'a [u8]);

impl RangeTombstones {
    /// Cuts `tombstones`, whose ranges are not empty, into fragments. O(n log n) and the size of the outcome.
    pub(crate) fn new<'a>(tombstones: impl IntoIterator<Item = &'a RangeTombstone>) -> Self {
        let range = |tombstone: &'a RangeTombstone| (&tombstone.start, &tombstone.end, tombstone.seqno);
        Self::cut(tombstones.into_iter().map(range))
    }

    /// All of several. O(n log n) and the size of the outcome.
    pub(crate) fn union<'a>(sets: impl IntoIterator<Item = &'a Self>) -> Self {
        let each = |part: &'a Fragment| part.seqnos.iter().map(move |&seqno| (&part.start, &part.end, seqno));
        Self::cut(sets.into_iter().flat_map(|set| set.fragments.iter()).flat_map(each))
    }

    fn cut<'a>(ranges: impl Iterator<Item = (&'a Slice, &'a Slice, SeqNo)>) -> Self {
        let mut places: Vec<(Place<'a>, &Slice, bool, SeqNo)> = Vec::new();
        for (start, end, seqno) in ranges {
            places.push(((false, start), start, true, seqno));
            places.push(((end.is_empty(), end), end, false, seqno));
        }
        places.sort_by(|a, b| a.0.cmp(&b.0));
        // How many parts of each tombstone cover what follows: of two inputs that both have it there are two.
        let mut open: BTreeMap<SeqNo, usize> = BTreeMap::new();
        let (mut cut, mut from) = (Self::default(), None);
        for chunk in places.chunk_by(|a, b| a.0 == b.0) {
            let Some((_, place, ..)) = chunk.first() else { continue };
            if let Some(start) = from.filter(|_| !open.is_empty()) {
                cut.push(start, place, open.keys().rev().copied().collect());
            }
            from = Some(*place);
            for &(_, _, begins, seqno) in chunk {
                let count = open.entry(seqno).or_default();
                // Not below zero: the two ends of a range may come in one chunk only if it is empty.
                *count = if begins { *count + 1 } else { count.saturating_sub(1) };
                if *count == 0 {
                    open.remove(&seqno);
                }
            }
        }
        cut
    }

    /// Adds a fragment behind all others, from the first key at `start` on, or joins it to the last one if it is a part of that.
    pub(crate) fn push(&mut self, start: &Slice, end: &Slice, seqnos: Arc<[SeqNo]>) {
        if let Some(last) = self.fragments.last_mut().filter(|last| last.end == *start && last.seqnos == seqnos) {
            last.end = end.clone();
        } else if let Some(start) = first_key_at(start).filter(|start| is_before_end(start, end)) {
            self.fragments.push(Fragment { start, end: end.clone(), seqnos });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// In key order.
    pub(crate) fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// The fragment that covers `key`. O(log fragments).
    pub(crate) fn fragment_of(&self, key: &[u8]) -> Option<&Fragment> {
        let at = self.fragments.partition_point(|part| !is_before_end(key, &part.end));
        self.fragments.get(at).filter(|part| *part.start <= *key)
    }

    /// The newest tombstone that covers `key` and is not newer than `seqno`. O(log n).
    pub(crate) fn covering(&self, key: &[u8], seqno: SeqNo) -> Option<SeqNo> {
        self.fragment_of(key)?.newest(seqno)
    }

    /// What lies from `from` on and before `end`, an empty one of which is no end. O(log fragments) and the size of the outcome.
    pub(crate) fn within(&self, from: &Slice, end: &Slice) -> Self {
        let mut within = Self::default();
        let first = self.fragments.partition_point(|part| !is_before_end(from, &part.end));
        let begins = |part: &&Fragment| is_before_end(&part.start, end);
        for part in self.fragments.iter().skip(first).take_while(begins) {
            let start = if part.start < *from { from } else { &part.start };
            let ends_first = !part.end.is_empty() && is_before_end(&part.end, end);
            let end = if ends_first { &part.end } else { end };
            if is_before_end(start, end) {
                within.push(start, end, part.seqnos.clone());
            }
        }
        within
    }

    /// The same ranges with those numbers that `kept` leaves of each fragment's, newest first; without those of which none is left.
    pub(crate) fn retain(&self, kept: impl Fn(&Fragment) -> Vec<SeqNo>) -> Self {
        let mut retained = Self::default();
        for part in &self.fragments {
            let seqnos = kept(part);
            if !seqnos.is_empty() {
                retained.push(&part.start, &part.end, seqnos.into());
            }
        }
        retained
    }

    /// What a read at `seqno` has to know: the newest number of each fragment that it sees.
    pub(crate) fn visible_at(&self, seqno: SeqNo) -> Self {
        self.retain(|part| part.newest(seqno).into_iter().collect())
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn memory_len(&self) -> usize {
        let part = |part: &Fragment| part.start.len() + part.end.len() + size_of_val(&*part.seqnos);
        self.fragments.iter().map(part).sum::<usize>() + size_of_val(&self.fragments[..])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tombstone((start, end): (&[u8], &[u8]), seqno: SeqNo) -> RangeTombstone {
        RangeTombstone { start: start.into(), end: end.into(), seqno }
    }

    #[test]
    fn bounds_of_any_kind_become_a_first_key_and_an_end() {
        // Catches a bound taken for one of the other kind, and ranges without a key that become ranges of all.
        use Bound::{Excluded, Included, Unbounded};
        let of = |lower: Bound<&'static [u8]>, upper: Bound<&'static [u8]>| start_and_end(&(lower, upper));
        let some = |start: &[u8], end: &[u8]| Some((start.to_vec(), end.to_vec()));
        assert_eq!(of(Unbounded, Unbounded), some(b"", b""));
        assert_eq!(of(Included(b"a"), Excluded(b"b")), some(b"a", b"b"));
        assert_eq!(of(Excluded(b"a"), Included(b"b")), some(b"a\0", b"b\0"));
        assert_eq!(of(Included(b"a"), Included(b"a")), some(b"a", b"a\0"));
        assert_eq!(of(Included(b""), Included(b"")), some(b"", b"\0"));
        for (lower, upper) in [
            (Included(&b"b"[..]), Excluded(&b"b"[..])),
            (Included(b"b"), Included(b"a")),
            (Excluded(b"a"), Included(b"a")),
            (Unbounded, Excluded(b"")),
            (Excluded(b"a"), Excluded(b"a\0")),
        ] {
            assert_eq!(of(lower, upper), None, "{lower:?}, {upper:?}");
        }
        let longest = vec![b'k'; MAX_KEY_LEN];
        let (start, _) = start_and_end(&(Excluded(&longest[..]), Unbounded)).expect("later keys");
        assert_eq!(start, [&longest[1..], b"l"].concat());
        let last = vec![u8::MAX; MAX_KEY_LEN];
        assert_eq!(start_and_end(&(Excluded(&last[..]), Unbounded)), None);
        let (_, end) = start_and_end(&(Unbounded, Included(&last[..]))).expect("all keys");
        assert_eq!(end.len(), MAX_END_LEN);
    }

    #[test]
    fn the_last_key_of_a_fragment_is_known_where_its_end_is_right_after_a_key() {
        // Catches a table whose keys seem to reach into the next one of its run.
        let largest = |end: &[u8]| tombstone_largest(end);
        assert_eq!(largest(b"k\0"), b"k");
        assert_eq!(largest(b"k\0\0"), b"k\0");
        assert_eq!(largest(b"k"), b"k");
    }

    fn tombstone_largest(end: &[u8]) -> Vec<u8> {
        RangeTombstones::new(&[tombstone((b"a", end), 1)]).fragments()[0].largest().to_vec()
    }

    #[test]
    fn what_is_cut_behind_the_longest_key_begins_with_the_next_one() {
        // Catches a fragment whose first key is longer than any key, so that its table cannot be read.
        let longest = vec![b'k'; MAX_KEY_LEN];
        let end = place_after(&longest);
        let cut = RangeTombstones::new(&[tombstone((b"", b"z"), 2), tombstone((b"", &end), 3)]);
        let next = [&longest[1..], b"l"].concat();
        assert_eq!(cut.fragments().len(), 2);
        assert_eq!((&*cut.fragments()[0].end, &*cut.fragments()[1].start), (&end[..], &next[..]));
        assert_eq!((cut.covering(&longest, 9), cut.covering(&next, 9)), (Some(3), Some(2)));
        let rest = cut.within(&Slice::from(&end[..]), &Slice::default());
        assert_eq!(rest.fragments().len(), 1);
        let last = place_after(&[u8::MAX; MAX_KEY_LEN]);
        let all = RangeTombstones::new(&[tombstone((b"", b""), 2), tombstone((b"", &last), 3)]);
        assert_eq!(all.fragments().len(), 1, "there is no key behind the last one");
    }

    #[test]
    fn parts_of_one_tombstone_become_one_again() {
        // Catches ever more fragments, cut by each merge at the ends of its tables and never joined.
        let parts = [tombstone((b"a", b"c"), 7), tombstone((b"c", b"m"), 7), tombstone((b"m", b""), 7)];
        let joined = RangeTombstones::new(&parts);
        assert_eq!(joined, RangeTombstones::new(&[tombstone((b"a", b""), 7)]));
        assert_eq!(joined.fragments().len(), 1);
    }

    fn place() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0u8..3, 0..4)
    }

    fn tombstones() -> impl Strategy<Value = Vec<RangeTombstone>> {
        let range = (place(), place())
            .prop_filter_map("an empty range", |(start, end)| is_before_end(&start, &end).then_some((start, end)));
        prop::collection::vec((range, 1u64..30), 0..12)
            .prop_map(|all| all.into_iter().map(|((start, end), seqno)| tombstone((&start, &end), seqno)).collect())
    }

    fn covering(all: &[RangeTombstone], key: &[u8], seqno: SeqNo) -> Option<SeqNo> {
        let covers = |t: &&RangeTombstone| *t.start <= *key && is_before_end(key, &t.end) && t.seqno <= seqno;
        all.iter().filter(covers).map(|t| t.seqno).max()
    }

    proptest! {
        #[test]
        fn fragments_cover_what_the_tombstones_do(
            all in tombstones(), more in tombstones(), key in place(), seqno in 0u64..31,
            from in place(), end in place(),
        ) {
            // Catches a range lost or grown where it is cut, joined, united or clipped, and a number lost among several.
            let [one, other] = [&all, &more].map(RangeTombstones::new);
            prop_assert_eq!(one.covering(&key, seqno), covering(&all, &key, seqno));
            let parts = one.fragments();
            prop_assert!(parts.iter().all(|part| is_before_end(&part.start, &part.end)));
            prop_assert!(parts.iter().zip(parts.iter().skip(1)).all(|(a, b)| !a.end.is_empty() && a.end <= b.start));
            prop_assert!(parts.iter().all(|part| part.seqnos.is_sorted_by(|a, b| a > b) && !part.seqnos.is_empty()));
            let united = RangeTombstones::union([&one, &other, &one]);
            prop_assert_eq!(united.covering(&key, seqno), covering(&[all.clone(), more].concat(), &key, seqno));
            let clipped = one.within(&Slice::from(&from[..]), &Slice::from(&end[..]));
            let is_within = from <= key && is_before_end(&key, &end);
            prop_assert_eq!(clipped.covering(&key, seqno), covering(&all, &key, seqno).filter(|_| is_within));
            prop_assert!(clipped.fragments().iter().all(|part| is_before_end(&part.start, &part.end)));
            let seen = one.visible_at(seqno);
            prop_assert_eq!(seen.covering(&key, 99), covering(&all, &key, seqno));
        }
    }
}
