//! All that can be read of a damaged database as one sequence: the newest version that is left of each key, no tombstones and nothing
//! that a range tombstone hides.
//!
//! A sequence number decides which version is the newest, whatever level a table was on. A version is *older* if a newer one of its key
//! may have been in what is lost of a table ([`LostKeys::may_hide`]). All that is lost of a key is known when the merge comes to it.

use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, Mutex};

use super::logs::LogEntries;
use crate::compaction::Bounds;
use crate::error::Result;
use crate::iter::{self, EntryIter, MergeIter, impl_entry_iter, read_forward_only};
use crate::lock::lock;
use crate::table::{Lost, LostKeys, SalvageIter};
use crate::types::{Kind, MAX_SEQNO, RangeTombstones, SeqNo, Slice};

/// What is merged.
pub(super) enum Source {
    Table(Box<SalvageIter>),
    Logs(LogEntries),
}

impl_entry_iter!(Source { Table, Logs });

/// What a merge has come across so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) keys: u64,
    pub(super) older_keys: u64,
    pub(super) newest: SeqNo,
    pub(super) lost: Vec<LostKeys>,
}

/// The keys that are wanted.
pub(super) type OwnedBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The merge. Forward only.
pub(super) struct Salvaged {
    merged: MergeIter<Source>,
    /// Of all that is merged.
    ranges: RangeTombstones,
    lost: Lost,
    /// What is lost of keys from the current one on.
    active: Vec<LostKeys>,
    seen: Arc<Mutex<Seen>>,
    bounds: OwnedBounds,
    leaves_older_out: bool,
    key: Vec<u8>,
    is_started: bool,
}

impl Salvaged {
    /// Merges the keys of `sources`, which add to `lost`, within `bounds`. `ranges` are the range tombstones of all of them.
    pub(super) fn new(
        (sources, ranges): (Vec<Source>, RangeTombstones),
        lost: Lost,
        bounds: OwnedBounds,
        leaves_older_out: bool,
    ) -> Self {
        Self {
            merged: MergeIter::new(sources),
            ranges,
            lost,
            active: Vec::new(),
            seen: Arc::default(),
            bounds,
            leaves_older_out,
            key: Vec::new(),
            is_started: false,
        }
    }

    /// What was come across, to be looked at when the merge is over.
    pub(super) fn seen(&self) -> Arc<Mutex<Seen>> {
        Arc::clone(&self.seen)
    }

    /// From the version that the merge is on, goes to the first that is to be given out.
    fn settle(&mut self) -> Result<()> {
        self.note_lost();
        while self.merged.valid() && !self.is_wanted() {
            self.pass_key()?;
        }
        Ok(())
    }

    /// Whether the version, the newest that is left of its key, is a value and to be given out.
    fn is_wanted(&mut self) -> bool {
        let (key, seqno) = (self.merged.key(), self.merged.seqno());
        if !as_slices(&self.bounds).contains::<[u8]>(key) {
            return false;
        }
        self.active.retain(|lost| !lost.ends_before(key));
        let is_older = self.active.iter().any(|lost| lost.may_hide(key, seqno));
        let is_hidden = self.ranges.covering(key, MAX_SEQNO) > Some(seqno);
        let is_value = self.merged.kind() == Kind::Value && !is_hidden;
        let mut seen = lock(&self.seen);
        seen.newest = seen.newest.max(seqno);
        seen.older_keys += u64::from(is_value && is_older);
        let is_wanted = is_value && !(is_older && self.leaves_older_out);
        seen.keys += u64::from(is_wanted);
        is_wanted
    }

    /// Goes past all versions of the current key.
    fn pass_key(&mut self) -> Result<()> {
        self.key.clear();
        self.key.extend_from_slice(self.merged.key());
        while self.merged.valid() && self.merged.key() == self.key {
            self.merged.next()?;
        }
        self.note_lost();
        Ok(())
    }

    fn note_lost(&mut self) {
        let mut lost = self.lost.take();
        lost.retain(|lost| lost.overlaps(as_slices(&self.bounds)));
        lock(&self.seen).lost.extend(lost.iter().cloned());
        self.active.extend(lost);
    }
}

/// The bounds, borrowed.
pub(super) fn as_slices((lower, upper): &OwnedBounds) -> Bounds<'_> {
    (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice))
}

impl EntryIter for Salvaged {
    fn valid(&self) -> bool {
        self.merged.valid()
    }

    fn key(&self) -> &[u8] {
        self.merged.key()
    }

    fn seqno(&self) -> SeqNo {
        self.merged.seqno()
    }

    fn kind(&self) -> Kind {
        self.merged.kind()
    }

    fn value(&self) -> &[u8] {
        self.merged.value()
    }

    fn value_slice(&self) -> Slice {
        self.merged.value_slice()
    }

    fn repeats(&self) -> bool {
        false
    }

    /// Goes to the first entry; once.
    fn seek_to_first(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.is_started, true) {
            return iter::forward_only();
        }
        self.merged.seek_to_first()?;
        self.settle()
    }

    read_forward_only!();

    fn next(&mut self) -> Result<()> {
        if self.valid() {
            self.pass_key()?;
            self.settle()?;
        }
        Ok(())
    }
}
