//! [`DeadRanges`]: ranges in which a reader has found no entry, so that later readers pass over them in one step.
//!
//! A removed key leaves a tombstone, and an expired entry stays, until a compaction drops it. A reader that looks for the first entry behind them
//! passes all of them. Without this set, each take from a queue passes everything that was taken before.
//!
//! D1 For a range with `dead = (r, i)`: at number r and instant i no key within has a value.
//! D2 For every range: no insertion with a number above `since` concerns a key within. And `since` <= r.
//! D3 So no key within has a value at any number from r on and any instant from i on: only an insertion could change that, since removals do not add
//! entries, and time only ends them. A reader at such a number and instant may skip the range; all others must not.
//!
//! D1 comes from a reader that has passed each key within. It reads at one number and instant, in a view that has all writes up to the number
//! (`read/scan.rs`).
//!
//! D2 comes from a pair of steps, both with the write lock held. A reader adds a range with `since`, the last number that was assigned. A write removes
//! the keys that it inserts from all ranges, in the step that assigns its numbers; a bulk load removes all ranges. So a range that is still there
//! has had no insertion above `since`: either the number was assigned before the range was added, and is not above, or the key was removed from it.
//! The write does so before it becomes visible; a reader at a number that includes the write takes the lock of the set after that and finds
//! the key removed. A removed key stays removed, so what a reader gets here may be too little and never too much.
//!
//! A reader's number may be older than `since`. Then its range is a *candidate*, with `dead` missing, and the next reader at `since` or later that
//! passes it confirms it (D1 at its own number). Without concurrent writes a range is dead at once.
//!
//! Neighbours become one range if they are of similar size. So there are O(log n) of them for n dead keys in a row; and a large range keeps its number,
//! from which on readers may skip it, while readers and writers go on at one of its ends. The ranges take a bounded amount of memory: those that
//! were not used for the longest time are dropped, which only changes costs.
//!
//! Ranges that are known dead for one snapshot only, or for one transaction, are kept with it, in a set of its own, where no insertion counts.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use fastskip::{Kind, Op};

use crate::iter::Direction;
use crate::lock::lock;
use crate::types::{Millis, SeqNo, Slice, place_after};

/// The memory that a set takes at most, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// An upper estimate of what a range takes besides long keys.
const RANGE_BYTES: usize = 160;

/// The number and the instant of a reader.
pub(crate) type Moment = (SeqNo, Millis);

/// The keys from the place that it is stored under, and before `end`.
#[derive(Clone, Debug)]
struct DeadRange {
    end: Slice,
    /// D2.
    since: SeqNo,
    /// D1; `None` for a candidate.
    dead: Option<Moment>,
    /// About the number of keys that are stored within.
    keys: u64,
    /// The time of the last use.
    used: u64,
}

impl DeadRange {
    /// D3.
    fn is_dead_at(&self, (seqno, instant): Moment) -> bool {
        self.dead.is_some_and(|(from, since)| from <= seqno && since <= instant)
    }

    /// Whether it and a neighbour are to be one.
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
    /// Counts uses.
    time: u64,
}

impl DeadRanges {
    /// The end of the keys from `place` on in `direction` that have no value at this moment: in forward direction the first place behind them, in
    /// backward direction, in which `place` itself is not among them, the first of them. `None` if there are none. O(log² n).
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

    /// Notes that a reader at this moment has passed all keys from `start` on and before `end`, about `keys` of them, and found no entry. `claimed`
    /// is the last number that was assigned: no insertion above it comes without a [`cut`](Self::cut). O(log n) for each range within.
    pub(crate) fn note(&mut self, (start, end): (&Slice, &Slice), keys: u64, at: Moment, claimed: SeqNo) {
        if start >= end {
            return;
        }
        self.time += 1;
        // Candidates are confirmed as far as they were passed.
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

    /// Divides the candidate around `place`.
    fn split(&mut self, place: &Slice) {
        if let Some((start, range)) = self.around(place).filter(|(start, range)| range.dead.is_none() && start < place)
        {
            self.divide(&start, range, place.clone(), place.clone());
        }
    }

    /// The range that `key` lies in.
    fn around(&self, key: &[u8]) -> Option<(Slice, DeadRange)> {
        let (start, range) = self.ranges.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        (*key < *range.end).then(|| (start.clone(), range.clone()))
    }

    /// Leaves what lies before `upto` and from `from` on of a range.
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

    /// Makes neighbours that are alike one, from those around `start` to those around `end`.
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

    /// Makes the ranges at these places one, if they touch and are alike.
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

    /// Drops the half of the ranges that was not used for the longest time.
    #[cold]
    fn drop_unused(&mut self) {
        let mut times: Vec<u64> = self.ranges.values().map(|range| range.used).collect();
        let middle = times.len() / 2;
        let (_, &mut median, _) = times.select_nth_unstable(middle);
        self.ranges.retain(|_, range| range.used > median);
        self.bytes = self.ranges.iter().map(|(start, range)| range.memory(start)).sum();
    }
}

/// The ranges of the present, for all readers and writers of a database.
#[derive(Debug, Default)]
pub(crate) struct PresentDeadRanges {
    /// Whether there are any. Changed with the write lock held, and so without an ordering of its own for writers (D2).
    is_used: AtomicBool,
    /// The last lock to be taken.
    ranges: Mutex<DeadRanges>,
}

impl PresentDeadRanges {
    /// Whether a write has to [`cut`](Self::cut).
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// As [`DeadRanges::skip`].
    pub(crate) fn skip(&self, place: &Slice, at: Moment, direction: Direction) -> Option<Slice> {
        self.lock().skip(place, at, direction)
    }

    /// As [`DeadRanges::note`], with the write lock held.
    pub(crate) fn note(&self, range: (&Slice, &Slice), keys: u64, at: Moment, claimed: SeqNo) {
        self.lock().note(range, keys, at, claimed);
        self.is_used.store(true, Ordering::Relaxed);
    }

    /// Removes the keys that `ops` store, with the write lock held, in the step that assigns their numbers.
    #[cold]
    pub(crate) fn cut(&self, ops: &[Op<'_>]) {
        let mut ranges = self.lock();
        // A tombstone that has a value is an entry that expires.
        let stores = |op: &&Op<'_>| op.kind() == Kind::Value || !op.value().is_empty();
        ops.iter().filter(stores).for_each(|op| ranges.cut(op.key()));
        self.is_used.store(!ranges.ranges.is_empty(), Ordering::Relaxed);
    }

    /// Removes all ranges, with the write lock held, before a bulk load becomes visible.
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

    /// A version: the key, its number, and the instant until which it has a value; 0 for a removal.
    type Version = (u64, SeqNo, Millis);

    fn place(n: u64) -> Slice {
        Slice::from(&n.to_be_bytes()[..])
    }

    fn number(place: &[u8]) -> u64 {
        let (key, after) = place.split_first_chunk().expect("a key");
        u64::from_be_bytes(*key) + u64::from(!after.is_empty())
    }

    /// Whether a key from `from` on and before `end` has a value at the moment.
    fn is_live(versions: &[Version], (from, end): (u64, u64), (seqno, instant): Moment) -> bool {
        (from..end).any(|key| {
            let newest = versions.iter().rev().find(|version| version.0 == key && version.1 <= seqno);
            newest.is_some_and(|version| instant < version.2)
        })
    }

    #[test]
    fn what_is_skipped_has_no_value_whoever_has_noted_it_and_whatever_is_inserted() {
        // Catches a range that lives on where a key was inserted, one that is confirmed at a number before which an insertion was missed, one that
        // serves readers of older numbers or instants, and places that are mixed up in either direction.
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
                        // A reader that walks from a place to the first key with a value.
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
        // Catches a range for each key that was taken, in either direction, one that is all renewed whenever it grows, so that a reader which lags
        // must pass it as a whole; and a set that grows with the number of queues.
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
