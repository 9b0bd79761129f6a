//! [`Reads`]: the reads of a transaction: single keys, and ranges as far as its iterators have moved.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use crate::db::core::{Core, NewerWrites};
use crate::db::read::{newer_version, newer_within};
use crate::error::{Error, Result};
use crate::types::{
    DEFAULT_KEYSPACE, KeyspaceRef, Millis, OpenKeyspace, OwnedBounds, SeqNo, Shown, Slice, is_before_end, split_stored,
    start_and_end,
};

/// An upper estimate of the memory of a key or a range without its bytes.
const READ_BYTES: usize = 96;
/// The maximum number of keys for which looking up each costs less than recording newer writes.
const FEW_KEYS: usize = 16;

/// The index of a range among the others, once it has been added.
pub(super) type RangeSlot = Option<usize>;

#[derive(Debug, Default)]
pub(super) struct Reads {
    keys: BTreeSet<Slice>,
    ranges: Vec<OwnedBounds>,
    /// The ranges in order, as first positions and ends; between two of them there is a position that was not read. Computed by the first check.
    places: OnceCell<Vec<(Vec<u8>, Vec<u8>)>>,
    /// The first instant at which an entry that was read expires, and the key of that entry.
    expires: Option<(Millis, Slice)>,
    /// The keyspaces of the transaction, except the default one, including those that it only writes.
    keyspaces: Vec<Arc<OpenKeyspace>>,
    bytes: usize,
}

impl Reads {
    /// Records that keys of `keyspace` are read or written.
    pub(super) fn note_keyspace(&mut self, keyspace: &KeyspaceRef) {
        let is_noted = |keyspace: &&Arc<_>| self.keyspaces.iter().any(|noted| Arc::ptr_eq(noted, keyspace));
        if let Some(keyspace) = keyspace.open().filter(|keyspace| !is_noted(keyspace)) {
            self.keyspaces.push(Arc::clone(keyspace));
        }
    }

    pub(super) fn keyspaces(&self) -> impl Iterator<Item = KeyspaceRef> {
        self.keyspaces.iter().cloned().map(KeyspaceRef::new)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.ranges.is_empty()
    }

    /// The memory of these reads, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The memory that another key would take, in bytes.
    pub(super) fn bytes_for_key(&self, key: &[u8]) -> usize {
        if self.keys.contains(key) { 0 } else { READ_BYTES + key.len() }
    }

    pub(super) fn add_key(&mut self, key: &[u8]) {
        self.bytes += self.bytes_for_key(key);
        self.keys.insert(Slice::from(key));
    }

    /// Records that the entry of `key` was read, and the instant at which it expires, if it does.
    pub(super) fn note_expiry(&mut self, key: &[u8], at: Option<Millis>) {
        let is_first = |at: &Millis| self.expires.as_ref().is_none_or(|(first, _)| at < first);
        if let Some(at) = at.filter(is_first) {
            self.expires = Some((at, Slice::from(key)));
        }
    }

    /// Adds `range`, or replaces the range in `slot`.
    pub(super) fn set_range(&mut self, slot: &mut RangeSlot, range: OwnedBounds) {
        let at = *slot.get_or_insert_with(|| {
            self.ranges.push((Bound::Unbounded, Bound::Unbounded));
            self.bytes += READ_BYTES;
            self.ranges.len() - 1
        });
        self.bytes += bytes_of_range(&range);
        self.bytes -= bytes_of_range(&self.ranges[at]);
        self.ranges[at] = range;
        self.places.take();
    }

    /// Whether to compare the record of newer writes with the reads, instead of looking the reads up in the database.
    pub(super) fn prefer_record(&self) -> bool {
        !self.ranges.is_empty() || self.keys.len() > FEW_KEYS
    }

    /// Checks that none of the `newer` writes changes what was read at `read_at`. O(w log r) for w writes and r reads, after a sort of the ranges.
    ///
    /// # Errors
    /// [`Error::Conflict`].
    pub(super) fn validate_in_record(&self, core: &Core, newer: &NewerWrites, read_at: SeqNo) -> Result<()> {
        core.store.counters.commit_checks.add(newer.len() as u64);
        for write in newer.iter() {
            let (seqno, key) = (write.seqno, &write.key);
            let changed = match &write.end {
                None => self.keys.get(key),
                Some(end) => self.keys.range::<Slice, _>(key..).next().filter(|key| is_before_end(key, end)),
            };
            if let Some(key) = changed {
                return Err(self.key_conflict(key, read_at, seqno));
            }
            let places = self.places.get_or_init(|| in_order(&self.ranges));
            let at = places.partition_point(|(_, end)| !is_before_end(key, end));
            let Some((start, _)) = places.get(at) else { continue };
            let is_within = match &write.end {
                None => **start <= **key,
                Some(end) => is_before_end(start, end),
            };
            if is_within {
                let first = <&[u8]>::max(key, start);
                return Err(self.range_conflict(first, read_at, seqno));
            }
        }
        Ok(())
    }

    /// Checks that the present view has no version newer than `since` of anything that was read at `read_at`.
    ///
    /// # Errors
    /// [`Error::Conflict`]; the errors of reading the tables that are newer than `since`.
    pub(super) fn validate_in_view(&self, core: &Core, read_at: SeqNo, since: SeqNo) -> Result<()> {
        let (view, passed) = (core.view.get(), &core.store.counters.commit_checks);
        for key in &self.keys {
            if let Some(changed) = newer_version(&view, key, since)? {
                return Err(self.key_conflict(key, read_at, changed));
            }
        }
        for range in &self.ranges {
            if let Some((key, changed)) = newer_within(&view, range, since, passed)? {
                return Err(self.range_conflict(&key, read_at, changed));
            }
        }
        Ok(())
    }

    /// Checks that no entry that was read at `read_at` has expired; reads the clock only if such an entry has an expiry.
    ///
    /// # Errors
    /// [`Error::Conflict`].
    pub(super) fn validate_expiries(&self, read_at: SeqNo, now: impl FnOnce() -> Millis) -> Result<()> {
        match &self.expires {
            Some((at, key)) if *at <= now() => {
                Err(self.conflict(key, |key| format!("{key} was read at {read_at}, and has expired since")))
            }
            _ => Ok(()),
        }
    }

    fn key_conflict(&self, key: &[u8], read_at: SeqNo, changed: SeqNo) -> Error {
        self.conflict(key, |key| format!("{key} was read at {read_at}, and changed at {changed}"))
    }

    fn range_conflict(&self, key: &[u8], read_at: SeqNo, changed: SeqNo) -> Error {
        self.conflict(key, |key| format!("a range was read at {read_at}, and its {key} changed at {changed}"))
    }

    /// The error of a conflict at the stored key `stored`; `what` completes the description.
    fn conflict(&self, stored: &[u8], what: impl FnOnce(String) -> String) -> Error {
        let (id, key) = split_stored(stored).unwrap_or((DEFAULT_KEYSPACE, stored));
        let name =
            self.keyspaces.iter().find(|keyspace| keyspace.prefix.id() == id).map_or("", |keyspace| &*keyspace.name);
        let of_keyspace =
            if name.is_empty() { String::new() } else { format!(" of keyspace \"{}\"", name.escape_debug()) };
        let what = what(format!("key {}{of_keyspace}", Shown(key)));
        Error::Conflict { keyspace: name.to_owned(), key: key.to_vec(), what }
    }
}

/// The `ranges` in order; those that overlap or touch are merged.
fn in_order(ranges: &[OwnedBounds]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut places: Vec<_> = ranges.iter().filter_map(start_and_end).collect();
    places.sort_unstable();
    places.dedup_by(|(start, end), (_, upto)| {
        let is_behind = !upto.is_empty() && *upto < *start;
        if !is_behind && is_before_end(upto, end) && !upto.is_empty() {
            std::mem::swap(upto, end);
        }
        !is_behind
    });
    places
}

/// The bytes of the keys at the ends of a range.
fn bytes_of_range((lower, upper): &OwnedBounds) -> usize {
    let len = |bound: &Bound<Slice>| match bound {
        Bound::Included(key) | Bound::Excluded(key) => key.len(),
        Bound::Unbounded => 0,
    };
    len(lower) + len(upper)
}
