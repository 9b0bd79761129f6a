//! Finds versions that are newer than a sequence number, of the keys and ranges that a transaction has read at this number.
//!
//! Every version counts: values, tombstones, and range tombstones, which are versions of all keys that they cover. As long as the number is
//! registered, no change is missed (P1): of the newer versions of a key, flushes and compactions keep at least the newest, also if it is a tombstone.
//! A range tombstone may be cut where no key was ever stored, which changes no read.
//!
//! Only sources that are newer than the number are searched. Without a flush since then, that is only the active memtable.
//!
//! Versions that are not visible yet count as well. So a caller that loads the visible number before it pins the view misses nothing up to that
//! number. This is the reverse of rule 16: there a read must not lack an older version, and here it must not lack a newer one.

use std::ops::Bound;

use crate::cache::CacheUse;
use crate::codec::key_hash;
use crate::db::core::View;
use crate::error::Result;
use crate::iter::EntryIter;
use crate::metrics::Counter;
use crate::types::{KeyBounds, MAX_SEQNO, OwnedBounds, RangeTombstone, SeqNo, Slice, is_below, overlaps};

/// The sequence number of a version of `key` newer than `since`, if `view` has one.
pub(crate) fn newer_version(view: &View, key: &[u8], since: SeqNo) -> Result<Option<SeqNo>> {
    let in_memory = view.memtables_since(since).filter_map(|memtable| memtable.newest(key));
    if let Some(seqno) = in_memory.max().filter(|seqno| *seqno > since) {
        return Ok(Some(seqno));
    }
    for table in view.runs_since(since).filter_map(|run| run.find(key)).filter(|table| table.max_seqno() > since) {
        let found = table.get(key, key_hash(key), MAX_SEQNO)?.map(|(_, seqno, _)| seqno);
        if found > Some(since) {
            return Ok(found);
        }
    }
    Ok(None)
}

/// A version newer than `since` of a key within `bounds`: returns the key, or the first key of a removed range that is within the bounds, and the
/// number. Walks over the entries of the range, and counts them in `passed`.
pub(crate) fn newer_within(
    view: &View,
    bounds: &OwnedBounds,
    since: SeqNo,
    passed: &Counter,
) -> Result<Option<(Slice, SeqNo)>> {
    for memtable in view.memtables_since(since) {
        let removed = memtable.range_sets().into_iter().find_map(|set| set.newer_within(bounds, since));
        if let Some(found) = first_newer(memtable.iter(), removed, bounds, (since, passed))? {
            return Ok(Some(found));
        }
    }
    let runs = view.runs_since(since).filter(|run| run.overlaps(bounds.start(), bounds.end()));
    let tables = runs.flat_map(|run| run.tables()).filter(|table| table.max_seqno() > since);
    for table in tables.filter(|table| overlaps(table.smallest(), table.largest(), bounds)) {
        let has_ranges = table.has_range_tombstones();
        let ranges = has_ranges.then(|| table.range_tombstones()).transpose()?;
        let removed = ranges.and_then(|ranges| ranges.newer_within(bounds, since));
        if let Some(found) = first_newer(table.iter(CacheUse::Fill), removed, bounds, (since, passed))? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// A removed range of the source, or the first of its entries within `bounds` that is newer than `since`.
fn first_newer(
    mut entries: impl EntryIter,
    removed: Option<RangeTombstone>,
    bounds: &OwnedBounds,
    (since, passed): (SeqNo, &Counter),
) -> Result<Option<(Slice, SeqNo)>> {
    if let Some(RangeTombstone { start, seqno, .. }) = removed {
        let (Bound::Included(lower) | Bound::Excluded(lower)) = &bounds.0 else { return Ok(Some((start, seqno))) };
        return Ok(Some((lower.clone().max(start), seqno)));
    }
    match &bounds.0 {
        Bound::Unbounded => entries.seek_to_first()?,
        Bound::Included(key) => entries.seek(key, MAX_SEQNO)?,
        Bound::Excluded(key) => entries.seek_past(key)?,
    }
    while entries.valid() && is_below(entries.key(), bounds.end()) {
        passed.add(1);
        if entries.seqno() > since {
            return Ok(Some((Slice::from(entries.key()), entries.seqno())));
        }
        entries.next()?;
    }
    Ok(None)
}
