//! Merges all readable entries of a damaged database into one sequence: the newest remaining version of each key, without tombstones, without entries
//! that have expired, and without those that a range tombstone hides.
//!
//! The sequence number decides which version is the newest, whatever level its table was on. A version counts as *older* if the lost part of a table
//! may have contained a newer one of its key ([`LostKeys::may_hide`]). When the merge reaches a key, all losses that may affect the key are known.

use std::ops::RangeBounds;
use std::sync::{Arc, Mutex};

use super::lost::LostKeys;
use super::report::SalvageReport;
use super::table::{Lost, SalvageIter};
use crate::error::Result;
use crate::iter::{EntryIter, MergeIter, impl_entry_iter};
use crate::lock::lock;
use crate::memtables::MemtableIter;
use crate::types::{KeyBounds, Kind, MAX_SEQNO, Millis, OwnedBounds, RangeTombstones, Slice, shown};

pub(super) enum SalvageSource {
    Table(Box<SalvageIter>),
    Logs(MemtableIter),
}

impl_entry_iter!(SalvageSource { Table, Logs });

/// The merge: yields keys with their kinds and stored values.
pub(super) struct Salvaged {
    merged: MergeIter<SalvageSource>,
    /// The range tombstones of all sources.
    ranges: RangeTombstones,
    lost: Lost,
    /// The losses that may affect keys from the current one on.
    active: Vec<LostKeys>,
    /// The report, in which keys are counted as the merge reaches them.
    report: Arc<Mutex<SalvageReport>>,
    bounds: OwnedBounds,
    /// The instant at which expiry is judged.
    instant: Millis,
    key: Vec<u8>,
    is_started: bool,
}

impl Salvaged {
    /// Merges the keys of `sources` within `bounds` and as of `instant`; the sources add their losses to `lost`. `ranges` are the range tombstones of
    /// all sources; `report` has the results so far.
    pub(super) fn new(
        (sources, ranges): (Vec<SalvageSource>, RangeTombstones),
        lost: Lost,
        (bounds, instant): (OwnedBounds, Millis),
        report: SalvageReport,
    ) -> Self {
        Self {
            merged: MergeIter::new(sources),
            ranges,
            lost,
            active: Vec::new(),
            report: Arc::new(Mutex::new(report)),
            bounds,
            instant,
            key: Vec::new(),
            is_started: false,
        }
    }

    /// The parts that were read and those that could not be read, up to the current key.
    pub(super) fn report(&self) -> Arc<Mutex<SalvageReport>> {
        Arc::clone(&self.report)
    }

    /// Moves to the next entry to yield.
    fn advance(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.is_started, true) {
            self.merged.seek_to_first()?;
            self.note_lost();
        } else if self.merged.valid() {
            self.pass_key()?;
        }
        while self.merged.valid() && !self.is_wanted() {
            self.pass_key()?;
        }
        Ok(())
    }

    /// Whether the version, the newest remaining one of its key, is a value that must be yielded.
    fn is_wanted(&mut self) -> bool {
        let (key, seqno) = (self.merged.key(), self.merged.seqno());
        if !(self.bounds.start(), self.bounds.end()).contains::<[u8]>(key) {
            return false;
        }
        self.active.retain(|lost| !lost.ends_before(key));
        let is_older = self.active.iter().any(|lost| lost.may_hide(key, seqno));
        let is_hidden = self.ranges.covering(key, MAX_SEQNO) > Some(seqno);
        let value = shown(self.merged.kind(), self.merged.value(), || self.instant);
        let is_value = value.is_some() && !is_hidden;
        let mut report = lock(&self.report);
        report.older_keys += u64::from(is_value && is_older);
        let is_wanted = is_value && !(is_older && report.older_keys_left_out);
        report.keys += u64::from(is_wanted);
        is_wanted
    }

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
        lost.retain(|lost| lost.overlaps((self.bounds.start(), self.bounds.end())));
        lock(&self.report).lost_keys.extend(lost.iter().cloned());
        self.active.extend(lost);
    }
}

impl Iterator for Salvaged {
    type Item = Result<(Slice, Kind, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.advance() {
            Ok(()) if self.merged.valid() => {
                let merged = &self.merged;
                Some(Ok((Slice::from(merged.key()), merged.kind(), merged.value_slice())))
            }
            Ok(()) => None,
            Err(error) => Some(Err(error)),
        }
    }
}
