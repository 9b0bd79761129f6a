//! [`VisibleIter`]: the entries of a sequence that a snapshot sees, within bounds, in both directions.
//!
//! In forward direction the inner iterator is at the shown entry. In backward direction the versions of a key are found oldest first, so the newest
//! visible one is known only after the inner iterator has left the key. The shown entry is then kept here, and the inner iterator is before it.
//!
//! A key may have any number of versions that are not shown, because they are too new or too old. After stepping over [`STEPS_BEFORE_SEEK`] of them,
//! the iterator seeks to the next position, in either direction.
//!
//! A caller may know ranges of keys without values. So after a number of consecutive keys without a value, which the caller chooses, a move pauses
//! before the next key that it has not examined. The caller resumes the move there or at another position.
//!
//! Entries that range tombstones hide are skipped ([`Hidden`]). If a version of a key is hidden, so are all older ones.

use std::ops::Bound;

use super::{Batch, Direction, EntryIter, Hidden, MergeIter, Next, Wanted};
use crate::error::Result;
use crate::types::{
    EXPIRY_LEN, Kind, MAX_SEQNO, Millis, SeqNo, Slice, is_above, is_below, shown, shown_slice, split_expiry,
};

/// The number of versions of one key that are stepped over before a seek skips the others.
const STEPS_BEFORE_SEEK: u32 = 16;

enum State {
    Invalid,
    /// In this state, too, the iterator is not valid. This is not valid either.
    Paused,
    /// The inner iterator is at the shown entry.
    Forward,
    /// Like `Forward`, and the entry expires.
    Expiring,
    /// The shown entry is kept here; the inner iterator is before all visible versions of its key.
    Backward,
    /// The shown entry is the current one of the batch, which the inner iterator has filled in this direction.
    Batch(Direction),
}

/// The newest visible version of each key, without tombstones and without entries that have expired.
pub(crate) struct VisibleIter<I> {
    inner: MergeIter<I>,
    snapshot: SeqNo,
    /// The instant at which expiry is judged.
    instant: Millis,
    hidden: Hidden,
    /// Versions below this number are shown without a lookup of range tombstones: it is one more than the snapshot's number if there are no range
    /// tombstones, otherwise 0.
    shown_below: SeqNo,
    lower: Bound<Slice>,
    upper: Bound<Slice>,
    state: State,
    batch: Batch,
    /// The shown entry in backward direction.
    key: Vec<u8>,
    value: Slice,
    expiry: Option<Millis>,
    /// The number of keys without a value after which a move pauses.
    pause_after: u32,
}

impl<I: EntryIter> VisibleIter<I> {
    /// The entries of `inner` between the bounds that are visible at `snapshot`. Inverted bounds are empty. The iterator is invalid until the first
    /// seek.
    pub(crate) fn new(inner: MergeIter<I>, snapshot: SeqNo, lower: Bound<Slice>, upper: Bound<Slice>) -> Self {
        let (hidden, shown_below) = (Hidden::new(snapshot), snapshot.saturating_add(1));
        let (state, batch, key, value) = (State::Invalid, Batch::default(), Vec::new(), Slice::default());
        let (instant, expiry, pause_after) = (0, None, u32::MAX);
        Self {
            inner,
            snapshot,
            instant,
            hidden,
            shown_below,
            lower,
            upper,
            state,
            batch,
            key,
            value,
            expiry,
            pause_after,
        }
    }

    /// The same at `instant`: without the entries that have expired by then.
    pub(crate) fn at(self, instant: Millis) -> Self {
        Self { instant, ..self }
    }

    /// The same, but moves pause after this number of keys without a value.
    pub(crate) fn pausing_after(self, pause_after: u32) -> Self {
        Self { pause_after, ..self }
    }

    /// The same without the entries that `hidden` hides.
    pub(crate) fn hiding(self, hidden: Hidden) -> Self {
        let shown_below = if hidden.is_empty() { self.shown_below } else { 0 };
        Self { hidden, shown_below, ..self }
    }

    #[inline]
    pub(crate) fn valid(&self) -> bool {
        !matches!(self.state, State::Invalid | State::Paused)
    }

    /// The key before which the last move has paused.
    #[inline]
    pub(crate) fn paused_at(&self) -> Option<&[u8]> {
        matches!(self.state, State::Paused).then(|| self.inner.key())
    }

    /// Continues a move that has paused. If `place` is given, a forward move continues at that position, and a backward move before it. This time the
    /// move pauses again after `pause_after` keys.
    #[cold]
    pub(crate) fn resume(&mut self, direction: Direction, place: Option<&[u8]>, pause_after: u32) -> Result<()> {
        self.state = State::Invalid;
        match (direction, place) {
            (Direction::Forward, Some(place)) => self.inner.seek(place, self.snapshot)?,
            (Direction::Backward, Some(place)) => self.inner.seek_before(place)?,
            (_, None) => {}
        }
        let usual = std::mem::replace(&mut self.pause_after, pause_after);
        let moved = match direction {
            Direction::Forward => self.show_next(),
            Direction::Backward => self.show_prev(),
        };
        self.pause_after = usual;
        moved
    }

    /// The key of the shown entry; empty if there is none.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        if matches!(self.state, State::Batch(_)) { self.batch.key() } else { self.single_key() }
    }

    /// The key of a shown entry that is not in a batch.
    #[inline(never)]
    fn single_key(&self) -> &[u8] {
        match self.state {
            State::Batch(_) => self.batch.key(),
            State::Forward | State::Expiring => self.inner.key(),
            State::Backward => &self.key,
            State::Invalid | State::Paused => &[],
        }
    }

    /// The value of the shown entry; empty if there is none.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        if matches!(self.state, State::Batch(_)) { self.batch.value() } else { self.single_value() }
    }

    /// The value of a shown entry that is not in a batch.
    #[inline(never)]
    fn single_value(&self) -> &[u8] {
        match &self.state {
            State::Batch(_) => self.batch.value(),
            State::Forward => self.inner.value(),
            State::Expiring => split_expiry(self.inner.value()).1,
            State::Backward => &self.value,
            State::Invalid | State::Paused => &[],
        }
    }

    /// Like `value`, but the result outlives the iterator.
    #[inline]
    pub(crate) fn value_slice(&self) -> Slice {
        match &self.state {
            State::Batch(_) => self.batch.value_slice(),
            State::Forward => self.inner.value_slice(),
            State::Expiring => self.inner.value_slice().split_at(EXPIRY_LEN).1,
            State::Backward => self.value.clone(),
            State::Invalid | State::Paused => Slice::default(),
        }
    }

    /// The instant at which the shown entry expires, if it does.
    pub(crate) fn expiry(&self) -> Option<Millis> {
        match self.state {
            State::Expiring => Some(split_expiry(self.inner.value()).0),
            State::Backward => self.expiry,
            // Entries in a batch never expire (B1).
            State::Batch(_) | State::Forward | State::Invalid | State::Paused => None,
        }
    }

    pub(crate) fn seek_to_first(&mut self) -> Result<()> {
        self.state = State::Invalid;
        match &self.lower {
            Bound::Unbounded => self.inner.seek_to_first()?,
            Bound::Included(key) => self.inner.seek(key, MAX_SEQNO)?,
            Bound::Excluded(key) => self.inner.seek_past(key)?,
        }
        self.show_next()
    }

    pub(crate) fn seek_to_last(&mut self) -> Result<()> {
        self.state = State::Invalid;
        match &self.upper {
            Bound::Unbounded => self.inner.seek_to_last()?,
            Bound::Included(key) => self.inner.seek_for_prev(key, 0)?,
            Bound::Excluded(key) => self.inner.seek_before(key)?,
        }
        self.show_prev()
    }

    /// Moves to the first shown key at or after `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        if !self.above_lower(key) {
            return self.seek_to_first();
        }
        self.state = State::Invalid;
        self.inner.seek(key, self.snapshot)?;
        self.show_next()
    }

    /// Moves to the last shown key at or before `key`.
    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        if !self.below_upper(key) {
            return self.seek_to_last();
        }
        self.state = State::Invalid;
        self.inner.seek_for_prev(key, 0)?;
        self.show_prev()
    }

    /// Moves to the next entry if it is in the batch, which is returned. Otherwise does nothing, and `next` has to be called.
    #[inline(always)]
    pub(crate) fn next_in_batch(&mut self) -> Option<&Batch> {
        (matches!(self.state, State::Batch(Direction::Forward)) && self.batch.next()).then_some(&self.batch)
    }

    /// The same in backward direction.
    #[inline(always)]
    pub(crate) fn prev_in_batch(&mut self) -> Option<&Batch> {
        (matches!(self.state, State::Batch(Direction::Backward)) && self.batch.prev()).then_some(&self.batch)
    }

    /// The batch that has the shown entry, if one does.
    #[inline]
    pub(crate) fn batch(&self) -> Option<&Batch> {
        matches!(self.state, State::Batch(_)).then_some(&self.batch)
    }

    pub(crate) fn next(&mut self) -> Result<()> {
        if self.next_in_batch().is_some() {
            return Ok(());
        }
        match self.state {
            State::Batch(Direction::Forward) | State::Forward | State::Expiring => self.next_of_inner(),
            State::Batch(Direction::Backward) | State::Backward => self.turn_forward(),
            State::Invalid | State::Paused => Ok(()),
        }
    }

    /// Shows the next entry in forward direction; the inner iterator must be at the shown one.
    fn next_of_inner(&mut self) -> Result<()> {
        self.state = State::Invalid;
        let wanted =
            Wanted { below: self.shown_below, bound: self.upper.as_ref().map(|upper| &**upper), is_near: false };
        match self.inner.next_batch(&mut self.batch, &wanted)? {
            Next::Batch => self.state = State::Batch(Direction::Forward),
            Next::Entry { seqno, kind: Kind::Value, repeats: false }
                if seqno < self.shown_below && self.is_below_upper() =>
            {
                self.state = State::Forward;
            }
            Next::Entry { repeats, .. } => {
                if repeats {
                    self.skip_versions()?;
                }
                self.show_next()?;
            }
            Next::End => {}
        }
        Ok(())
    }

    /// Shows the next entry after a change of direction: the shown one was found in backward direction.
    #[cold]
    fn turn_forward(&mut self) -> Result<()> {
        self.keep_key();
        self.state = State::Invalid;
        self.inner.seek_past(&self.key)?;
        self.show_next()
    }

    pub(crate) fn prev(&mut self) -> Result<()> {
        if self.prev_in_batch().is_some() {
            return Ok(());
        }
        match self.state {
            State::Batch(Direction::Backward) | State::Backward => self.prev_of_inner(),
            State::Batch(Direction::Forward) | State::Forward | State::Expiring => self.turn_backward(),
            State::Invalid | State::Paused => Ok(()),
        }
    }

    /// Shows the next entry in backward direction; the inner iterator must be before the shown one.
    fn prev_of_inner(&mut self) -> Result<()> {
        let wanted =
            Wanted { below: self.shown_below, bound: self.lower.as_ref().map(|lower| &**lower), is_near: false };
        if self.inner.fill(Direction::Backward, &mut self.batch, &wanted) {
            self.state = State::Batch(Direction::Backward);
            return Ok(());
        }
        self.state = State::Invalid;
        self.show_prev()
    }

    /// Shows the previous entry after a change of direction: the shown one was found in forward direction.
    #[cold]
    fn turn_backward(&mut self) -> Result<()> {
        self.keep_key();
        self.state = State::Invalid;
        self.inner.seek_before(&self.key)?;
        self.show_prev()
    }

    /// Shows the first visible key at or after the inner iterator's position, which is not below the lower bound.
    fn show_next(&mut self) -> Result<()> {
        let mut passed = 0;
        while self.inner.valid() && self.is_below_upper() {
            if self.inner.seqno() > self.snapshot {
                self.skip_newer()?;
            } else if let Some(span) = self.hidden.hidden_of(self.inner.child(), self.inner.key()) {
                self.inner.skip_to(&span.end)?;
            } else if !self.is_there() || self.hidden.hides(self.inner.key(), self.inner.seqno())? {
                self.skip_versions()?;
            } else {
                self.state = if self.inner.kind() == Kind::Value { State::Forward } else { State::Expiring };
                return Ok(());
            }
            passed += 1;
            if passed == self.pause_after {
                self.pause(Self::is_below_upper);
                return Ok(());
            }
        }
        Ok(())
    }

    #[cold]
    fn pause(&mut self, is_within: impl FnOnce(&Self) -> bool) {
        if self.inner.valid() && is_within(self) {
            self.state = State::Paused;
        }
    }

    /// Whether the inner iterator's entry has a value at the instant.
    #[inline]
    fn is_there(&self) -> bool {
        match self.inner.kind() {
            Kind::Value => true,
            Kind::Tombstone => false,
            Kind::Expiring => shown(Kind::Expiring, self.inner.value(), || self.instant).is_some(),
        }
    }

    /// Moves the inner iterator past the versions of its current key that are too new for the snapshot; these come first.
    fn skip_newer(&mut self) -> Result<()> {
        for _ in 0..STEPS_BEFORE_SEEK {
            self.inner.next()?;
            if !self.inner.valid() || !self.inner.repeats() || self.inner.seqno() <= self.snapshot {
                return Ok(());
            }
        }
        self.copy_key();
        self.inner.seek(&self.key, self.snapshot)
    }

    /// Moves the inner iterator past all versions of its current key.
    fn skip_versions(&mut self) -> Result<()> {
        for _ in 0..STEPS_BEFORE_SEEK {
            self.inner.next()?;
            if !self.inner.repeats() || !self.inner.valid() {
                return Ok(());
            }
        }
        self.copy_key();
        self.inner.seek_past(&self.key)
    }

    /// Whether the inner iterator's entry is not above the upper bound.
    #[inline]
    fn is_below_upper(&self) -> bool {
        matches!(self.upper, Bound::Unbounded) || self.below_upper(self.inner.key())
    }

    /// Shows the last visible key at or before the inner iterator's position, which is on the oldest version of its key and not above the upper
    /// bound.
    fn show_prev(&mut self) -> Result<()> {
        let mut passed = 0;
        while self.inner.valid() && self.above_lower(self.inner.key()) {
            if let Some(span) = self.hidden.hidden_of(self.inner.child(), self.inner.key()) {
                self.inner.skip_before(&span.start)?;
            } else {
                self.copy_key();
                if let Some((kind, seqno, stored)) = self.take_newest()?
                    && let Some((value, expiry)) = shown_slice(kind, stored, || self.instant)
                    && !self.hidden.hides(&self.key, seqno)?
                {
                    (self.state, self.value, self.expiry) = (State::Backward, value, expiry);
                    return Ok(());
                }
            }
            passed += 1;
            if passed == self.pause_after {
                self.pause(|iter| iter.above_lower(iter.inner.key()));
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the newest version of the kept key that the snapshot sees. Moves the inner iterator from the oldest version to before all of them.
    fn take_newest(&mut self) -> Result<Option<(Kind, SeqNo, Slice)>> {
        let mut newest = None;
        for _ in 0..STEPS_BEFORE_SEEK {
            newest = self.version().or(newest);
            self.inner.prev()?;
            if !self.inner.valid() || self.inner.key() != self.key {
                return Ok(newest);
            }
        }
        self.inner.seek(&self.key, self.snapshot)?;
        let newest = if self.inner.valid() && self.inner.key() == self.key { self.version() } else { None };
        self.inner.seek_before(&self.key)?;
        Ok(newest)
    }

    /// The inner iterator's version, if the snapshot sees it.
    fn version(&self) -> Option<(Kind, SeqNo, Slice)> {
        let inner = &self.inner;
        (inner.seqno() <= self.snapshot).then(|| (inner.kind(), inner.seqno(), inner.value_slice()))
    }

    /// Keeps a copy of the shown key while the inner iterator moves.
    fn keep_key(&mut self) {
        match self.state {
            State::Batch(_) => {
                self.key.clear();
                self.key.extend_from_slice(self.batch.key());
            }
            State::Forward | State::Expiring => self.copy_key(),
            State::Backward | State::Invalid | State::Paused => {}
        }
    }

    fn copy_key(&mut self) {
        self.key.clear();
        self.key.extend_from_slice(self.inner.key());
    }

    fn above_lower(&self, key: &[u8]) -> bool {
        is_above(key, self.lower.as_ref().map(|lower| &**lower))
    }

    fn below_upper(&self, key: &[u8]) -> bool {
        is_below(key, self.upper.as_ref().map(|upper| &**upper))
    }
}
