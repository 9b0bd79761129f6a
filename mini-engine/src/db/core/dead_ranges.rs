//! [`DeadRanges`]: ranges in which a reader has found no entry, so that later readers skip them in one step.
//!
//! A removed key leaves a tombstone, and an expired entry stays, until a compaction drops it. A reader that searches for the first live entry after
//! them steps over all of them. Without this set, each removal of the first entry of a queue steps over all entries that were removed before.
//!
//! D1 For a range with `dead = (r, i)`: at sequence number r and instant i no key in the range has a value.
//! D2 For every range: no insertion with a sequence number above `since` has a key in the range. `since` <= r.
//! D3 So no key in the range has a value at any number >= r and any instant >= i: only an insertion could change that, since removals add no entries,
//! and time only makes entries expire. A reader at such a number and instant may skip the range; other readers must not.
//!
//! D1 holds because a reader has stepped over each key in the range. It reads at one number and instant, in a view that has all writes up to the
//! number (`read/scan.rs`).
//!
//! D2 holds because of two steps, both with the write lock held. A reader adds a range with `since`, the last number that was assigned. A write
//! removes the keys that it inserts from all ranges in the step that assigns its numbers; an ingest removes all ranges. So a range in the set has had
//! no insertion above `since`: either the insertion's number was assigned before the range was added, and is not above `since`, or its key was
//! removed from the range. A write does this before it becomes visible; a reader at a number that includes the write takes the set's lock later and
//! finds the key removed. A key that was removed from the ranges stays removed, so a reader may skip too few keys, but never too many.
//!
//! A reader's number may be smaller than `since`. Then its range is a *candidate*, without `dead`, until a later reader at `since` or above steps
//! over it and confirms it (D1 at its own number). Without concurrent writes a range is confirmed at once.
//!
//! Adjacent ranges of similar size are merged. So there are O(log n) ranges for n dead keys in a row. A large range keeps its number, from which on
//! readers may skip it, while its ends are extended. The ranges take a bounded amount of memory: the least recently used ones are dropped, which
//! affects only the cost of reads.
//!
//! A range that is dead only for one snapshot or one transaction is kept there, in a separate set, which insertions do not change.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use fastskip::{Kind, Op};

use crate::iter::Direction;
use crate::lock::lock;
use crate::types::{Millis, SeqNo, Slice, place_after};

/// The maximum memory of a set, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// An upper estimate of the memory of a range, without long keys.
const RANGE_BYTES: usize = 160;

/// The sequence number and the instant of a reader.
pub(crate) type Moment = (SeqNo, Millis);

/// The keys from the position under which the range is stored up to `end`, exclusive.
#[derive(Clone, Debug)]
struct DeadRange {
    end: Slice,
    /// See D2.
    since: SeqNo,
    /// See D1; `None` for a candidate.
    dead: Option<Moment>,
    /// The approximate number of keys in the range.
    keys: u64,
    /// The time of the last use.
    used: u64,
}

impl DeadRange {
    /// Whether D3 allows a reader at this moment to skip the range.
    fn is_dead_at(&self, (seqno, instant): Moment) -> bool {
        self.dead.is_some_and(|(from, since)| from <= seqno && since <= instant)
    }

    /// Whether the range and a neighbour are similar enough to be merged.
    fn is_like(&self, other: &DeadRange) -> bool {
        self.dead.is_some() == other.dead.is_some() && self.keys.min(other.keys) >= self.keys.max(other.keys) / 2
    }

    fn memory(&self, start: &Slice) -> usize {
        let outside = |bytes: &Slice| if Slice::is_inline(bytes.len()) { 0 } else { bytes.len() };
        RANGE_BYTES + outside(start) + outside(&self.end)
    }
}

/// Disjoint ranges of stored keys.
#[derive(Debug, Default)]
pub(crate) struct DeadRanges {
    ranges: BTreeMap<Slice, DeadRange>,
    bytes: usize,
    /// Counts uses, as a clock for `used`.
    time: u64,
}

impl DeadRanges {
    /// The end of the keys from `place` on in `direction` that have no value at this moment. Forward, it is the first position after these keys;
    /// backward, where `place` itself is excluded, it is the lowest of these keys. `None` if there are no such keys. O(log² n).
    pub(crate) fn skip(&mut self, place: &Slice, at: Moment, direction: Direction) -> Option<Slice> {
        self.time += 1;
        let mut here = None;
        loop {
            let from = here.as_ref().unwrap_or(place);
            let nearest = match direction {
                Direction::Forward => self.ranges.range_mut::<Slice, _>(..=from).next_back(),
                Direction::Backward => self.ranges.range_mut::<Slice, _>(..from).next_back(),
            };
            let Some((start, range)) = nearest else { return here };
            let reaches = match direction {
                Direction::Forward => *from < range.end,
                Direction::Backward => *from <= range.end,
            };
            if !reaches || !range.is_dead_at(at) {
                return here;
            }
            range.used = self.time;
            here = Some(match direction {
                Direction::Forward => range.end.clone(),
                Direction::Backward => start.clone(),
            });
        }
    }

    /// Records that a reader at this moment has stepped over all keys from `start` up to `end`, exclusive, about `keys` of them, and found no live
    /// entry. `claimed` is the last number that was assigned: every insertion above it calls [`cut`](Self::cut). O(log n) for each range within.
    pub(crate) fn note(&mut self, (start, end): (&Slice, &Slice), keys: u64, at: Moment, claimed: SeqNo) {
        if start >= end {
            return;
        }
        self.time += 1;
        // Candidates are confirmed where the reader stepped over them.
        self.split(start);
        self.split(end);
        let mut gaps = Vec::new();
        let mut from = start.clone();
        let before = self.ranges.range::<Slice, _>(..=start).next_back().filter(|(_, range)| range.end > *start);
        let first = before.map_or(start, |(first, _)| first).clone();
        for (begin, range) in self.ranges.range_mut::<Slice, _>(&first..end) {
            if from < *begin {
                gaps.push((from, begin.clone()));
            }
            if range.dead.is_none() && range.since <= at.0 {
                range.dead = Some(at);
            }
            (from, range.used) = (range.end.clone(), self.time);
        }
        if from < *end {
            gaps.push((from, end.clone()));
        }
        let keys = keys / (gaps.len() as u64).max(1);
        let dead = (claimed <= at.0).then_some(at);
        for (begin, end) in gaps {
            self.insert(begin, DeadRange { end, since: claimed, dead, keys, used: self.time });
        }
        self.merge(start, end);
        if self.bytes > MAX_BYTES {
            self.drop_unused();
        }
    }

    /// Removes `key`, which is about to be inserted. O(log n).
    pub(crate) fn cut(&mut self, key: &[u8]) {
        if let Some((start, range)) = self.around(key) {
            self.divide(&start, range, Slice::from(key), Slice::from(place_after(key)));
        }
        if self.bytes > MAX_BYTES {
            self.drop_unused();
        }
    }

    /// Splits the candidate that contains `place`.
    fn split(&mut self, place: &Slice) {
        if let Some((start, range)) = self.around(place).filter(|(start, range)| range.dead.is_none() && start < place)
        {
            self.divide(&start, range, place.clone(), place.clone());
        }
    }

    /// The range that contains `key`.
    fn around(&self, key: &[u8]) -> Option<(Slice, DeadRange)> {
        let (start, range) = self.ranges.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        (*key < *range.end).then(|| (start.clone(), range.clone()))
    }

    /// Keeps the parts of a range before `upto` and from `from` on.
    fn divide(&mut self, start: &Slice, range: DeadRange, upto: Slice, from: Slice) {
        self.remove(start);
        let keys = range.keys / 2;
        if *start < upto {
            self.insert(start.clone(), DeadRange { end: upto, keys, ..range.clone() });
        }
        if from < range.end {
            self.insert(from, DeadRange { keys, ..range });
        }
    }

    /// Merges similar neighbours, from those around `start` to those around `end`.
    fn merge(&mut self, start: &Slice, end: &Slice) {
        let Some((last, _)) = self.ranges.range::<Slice, _>(..=end).next_back() else { return };
        let mut at = last.clone();
        while let Some((before, _)) = self.ranges.range::<Slice, _>(..&at).next_back() {
            let before = before.clone();
            let is_merged = self.join(&before, &at);
            if !is_merged && before < *start {
                break;
            }
            at = before;
        }
        let mut at = self.ranges.range::<Slice, _>(..=start).next_back().map(|(at, _)| at.clone());
        while let Some(start) = at {
            let next = self.ranges.get(&start).map(|range| range.end.clone());
            at = next.filter(|next| self.join(&start, next)).map(|_| start);
        }
    }

    /// Merges the ranges at these positions, if they touch and are similar.
    fn join(&mut self, start: &Slice, next: &Slice) -> bool {
        let (Some(left), Some(right)) = (self.ranges.get(start), self.ranges.get(next)) else { return false };
        if left.end != *next || !left.is_like(right) {
            return false;
        }
        let latest = |(left, right): (Moment, Moment)| (left.0.max(right.0), left.1.max(right.1));
        let joined = DeadRange {
            end: right.end.clone(),
            since: left.since.max(right.since),
            dead: left.dead.zip(right.dead).map(latest),
            keys: left.keys + right.keys,
            used: left.used.max(right.used),
        };
        self.remove(next);
        self.remove(start);
        self.insert(start.clone(), joined);
        true
    }

    fn insert(&mut self, start: Slice, range: DeadRange) {
        self.bytes += range.memory(&start);
        self.ranges.insert(start, range);
    }

    fn remove(&mut self, start: &Slice) {
        if let Some(range) = self.ranges.remove(start) {
            self.bytes -= range.memory(start);
        }
    }

    /// Drops the least recently used half of the ranges.
    #[cold]
    fn drop_unused(&mut self) {
        let mut times: Vec<u64> = self.ranges.values().map(|range| range.used).collect();
        let middle = times.len() / 2;
        let (_, &mut median, _) = times.select_nth_unstable(middle);
        self.ranges.retain(|_, range| range.used > median);
        self.bytes = self.ranges.iter().map(|(start, range)| range.memory(start)).sum();
    }
}

/// The ranges that are dead at present, for all readers and writers of a database.
#[derive(Debug, Default)]
pub(crate) struct PresentDeadRanges {
    /// Whether the set has any ranges. It changes with the write lock held, so writers need no further ordering (D2).
    is_used: AtomicBool,
    /// In the lock order, this lock is the last.
    ranges: Mutex<DeadRanges>,
}

impl PresentDeadRanges {
    /// Whether a write has to [`cut`](Self::cut).
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Like [`DeadRanges::skip`].
    pub(crate) fn skip(&self, place: &Slice, at: Moment, direction: Direction) -> Option<Slice> {
        self.lock().skip(place, at, direction)
    }

    /// Like [`DeadRanges::note`]; called with the write lock held.
    pub(crate) fn note(&self, range: (&Slice, &Slice), keys: u64, at: Moment, claimed: SeqNo) {
        self.lock().note(range, keys, at, claimed);
        self.is_used.store(true, Ordering::Relaxed);
    }

    /// Removes the keys that `ops` insert; called with the write lock held, in the step that assigns their numbers.
    #[cold]
    pub(crate) fn cut(&self, ops: &[Op<'_>]) {
        let mut ranges = self.lock();
        // An operation of tombstone kind with a value inserts an entry that expires.
        let stores = |op: &&Op<'_>| op.kind() == Kind::Value || !op.value().is_empty();
        ops.iter().filter(stores).for_each(|op| ranges.cut(op.key()));
        self.is_used.store(!ranges.ranges.is_empty(), Ordering::Relaxed);
    }

    /// Removes all ranges; called with the write lock held, before an ingest becomes visible.
    pub(crate) fn clear(&self) {
        *self.lock() = DeadRanges::default();
        self.is_used.store(false, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, DeadRanges> {
        lock(&self.ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proof::Random;

    /// A version: the key, its sequence number, and the instant until which it has a value, which is 0 for a removal.
    type Version = (u64, SeqNo, Millis);

    fn place(n: u64) -> Slice {
        Slice::from(&n.to_be_bytes()[..])
    }

    fn number(place: &[u8]) -> u64 {
        let (key, after) = place.split_first_chunk().expect("a key");
        u64::from_be_bytes(*key) + u64::from(!after.is_empty())
    }

    /// Whether a key from `from` up to `end`, exclusive, has a value at this moment.
    fn is_live(versions: &[Version], (from, end): (u64, u64), (seqno, instant): Moment) -> bool {
        (from..end).any(|key| {
            let newest = versions.iter().rev().find(|version| version.0 == key && version.1 <= seqno);
            newest.is_some_and(|version| instant < version.2)
        })
    }

    #[test]
    fn what_is_skipped_has_no_value_whoever_has_noted_it_and_whatever_is_inserted() {
        // Catches a range that survives an insertion of one of its keys, one that is confirmed at a number before which an insertion was missed, one
        // that is used for readers at older numbers or instants, and positions that are confused in either direction.
        const KEYS: u64 = 40;
        for seed in 0..60 {
            let mut random = Random(seed);
            let (mut ranges, mut versions) = (DeadRanges::default(), Vec::<Version>::new());
            let (mut last, mut now, mut skips) = (0, 1, 0);
            for step in 0..400 {
                let lag = random.below(2) * random.below(30);
                let at = (u64::saturating_sub(last, lag), u64::saturating_sub(now, random.below(2) * random.below(4)));
                match random.below(10) {
                    0 | 1 => {
                        last += 1;
                        let key = random.below(KEYS);
                        let until = if random.one_in(2) { now + random.below(9) } else { u64::MAX };
                        versions.push((key, last, until));
                        ranges.cut(&place(key));
                    }
                    2..=4 => {
                        last += 1;
                        versions.push((random.below(KEYS), last, 0));
                    }
                    5 => now += random.below(3),
                    6 | 7 => {
                        // A reader that walks from a position to the first key with a value.
                        let from = random.below(KEYS);
                        let to = (from..KEYS).find(|key| is_live(&versions, (*key, key + 1), at)).unwrap_or(KEYS);
                        let end = if random.one_in(2) { to } else { from + (to - from) / 2 };
                        ranges.note((&place(from), &place(end)), end - from, at, last);
                    }
                    _ => {
                        let from = random.below(KEYS + 1);
                        let forward = ranges.skip(&place(from), at, Direction::Forward).map(|end| (from, number(&end)));
                        let backward =
                            ranges.skip(&place(from), at, Direction::Backward).map(|start| (number(&start), from));
                        for skipped in forward.into_iter().chain(backward) {
                            assert!(skipped.0 <= skipped.1, "{skipped:?} in step {step} of seed {seed}");
                            assert!(!is_live(&versions, skipped, at), "{skipped:?} in step {step} of seed {seed}");
                            skips += 1;
                        }
                    }
                }
                let places: Vec<_> = ranges.ranges.iter().map(|(start, range)| (start, &range.end)).collect();
                assert!(places.is_sorted_by(|a, b| a.1 <= b.0) && places.iter().all(|(start, end)| start < end));
                let bytes: usize = ranges.ranges.iter().map(|(start, range)| range.memory(start)).sum();
                assert_eq!(bytes, ranges.bytes);
            }
            assert!(skips > 5, "{skips} skips with seed {seed}");
        }
    }

    #[test]
    fn a_queue_has_few_ranges_and_a_set_is_bounded() {
        // Catches a separate range for each removed key, in either direction; a range that is renewed as a whole whenever it grows, so that a lagging
        // reader must step over all of it; and a set that grows with the number of queues.
        const COUNT: u64 = 20_000;
        for direction in [Direction::Forward, Direction::Backward] {
            let mut ranges = DeadRanges::default();
            let (mut most, mut passed_by_lagging) = (0, 0);
            for taken in 1..COUNT {
                let (front, from, to) = match direction {
                    Direction::Forward => (0, taken - 1, taken),
                    Direction::Backward => (COUNT, COUNT - taken, COUNT + 1 - taken),
                };
                ranges.note((&place(from), &place(to)), 1, (taken, 0), taken);
                most = most.max(ranges.ranges.len());
                let skipped = ranges.skip(&place(front), (taken, 0), direction).map(|end| number(&end));
                assert_eq!(skipped, Some(front.abs_diff(taken)), "all that was taken");
                let lagging = (taken.saturating_sub(8), 0);
                let skipped = ranges.skip(&place(front), lagging, direction).map_or(front, |end| number(&end));
                passed_by_lagging += taken - skipped.abs_diff(front);
            }
            assert!(most < 40, "{most} ranges");
            assert!(passed_by_lagging < 300 * COUNT, "{passed_by_lagging} keys");
        }
        let mut ranges = DeadRanges::default();
        for n in 0..50_000 {
            ranges.note((&place(10 * n), &place(10 * n + 5)), 5, (n, 0), n);
            assert!(ranges.bytes <= MAX_BYTES);
        }
        assert!(ranges.ranges.len() > 1000, "the ranges that were used last are left");
    }
}
