//! Finds one entry in a data block, without building keys or allocating memory.
//!
//! A restart stores its whole key. From there on it is enough to know how many bytes the target shares with the last passed key, which is less than
//! the target. An entry that shares more bytes with that key than the target does is less for the same reason; for any other entry only the
//! unshared bytes must be compared.

use std::cmp::Ordering;
use std::hint::black_box;
use std::ops::Range;

use crate::codec::shared_len;
use crate::table::block::entry::{Decoded, Entry, Parts};
use crate::table::block::key_heads::{KeyHeads, Start};
use crate::types::{Kind, SeqNo};

/// An entry that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: Kind,
    pub(crate) seqno: SeqNo,
    /// The place of the value in the contents.
    pub(crate) value: Range<usize>,
}

/// The newest version of `key` in the block that is not newer than `seqno`.
pub(crate) fn lookup((contents, heads): (&[u8], &KeyHeads), key: &[u8], seqno: SeqNo) -> Decoded<Option<Found>> {
    let place = find(&Parts::of(contents)?, contents, heads, (key, seqno), FEW_ENTRIES)?;
    Ok(place.filter(|place| place.is_key).map(|FoundEntry { entry, .. }| Found {
        kind: entry.kind,
        seqno: entry.seqno,
        value: entry.value_range(),
    }))
}

/// The entry at which a search ended.
pub(crate) struct FoundEntry<'a> {
    pub(crate) offset: usize,
    /// It shares no more bytes with the previous key than the target does, so its key starts with the same bytes of the target.
    pub(crate) entry: Entry<'a>,
    /// Whether its key is the target.
    pub(crate) is_key: bool,
}

/// The first entry at or after `(key, seqno)`. Reads this many bytes ahead at its start.
pub(crate) fn find<'a>(
    parts: &Parts,
    contents: &'a [u8],
    heads: &KeyHeads,
    (key, seqno): (&[u8], SeqNo),
    ahead: usize,
) -> Decoded<Option<FoundEntry<'a>>> {
    let (start, end) = match heads.start(contents, key) {
        Some(start) => (start, start.offset + ahead),
        None => {
            let (start, end) = start_at_restart(parts, contents, key, seqno)?;
            (start, end.min(start.offset + MANY_ENTRIES))
        }
    };
    read_ahead(contents, (start.offset..end.min(parts.entries_end)).step_by(LINE));
    // The length of the last passed key, and the number of its bytes that the target shares.
    let Start { mut offset, mut len, mut matched } = start;
    while offset < parts.entries_end {
        // Most entries can be passed by looking at their lengths and one byte of their keys.
        if let Some((header, rest)) = parts.header(contents, offset, len)
            && (header.shared > matched || header.unshared(rest).first() < key.get(header.shared))
        {
            matched = matched.min(header.shared);
            (len, offset) = (header.key_len(), offset + header.len);
            continue;
        }
        let entry = parts.entry(contents, offset, len)?;
        if entry.shared <= matched {
            let (more, order) = compare(entry.unshared, key.split_at(entry.shared).1);
            if order == Ordering::Greater || order == Ordering::Equal && entry.seqno <= seqno {
                return Ok(Some(FoundEntry { offset, entry, is_key: order == Ordering::Equal }));
            }
            matched = entry.shared + more;
        }
        (len, offset) = (entry.key_len(), entry.end);
    }
    Ok(None)
}

const LINE: usize = 64;
/// Bytes of entries that are read ahead for one of them.
const FEW_ENTRIES: usize = 256;
/// Bytes of entries that are read ahead for a scan. Entries that need more have large values, which are skipped.
pub(crate) const MANY_ENTRIES: usize = 2 << 10;
/// The maximum number of restarts that are read ahead of their search.
const RESTARTS_AHEAD: usize = 8;

/// Reads these bytes so that the processor loads their cache lines.
#[inline]
fn read_ahead(contents: &[u8], offsets: impl Iterator<Item = usize>) {
    let read = |at: usize| contents.get(at).copied().unwrap_or(0);
    black_box(offsets.fold(0, |all, at| all | read(at)));
}

/// The last restart whose entry is before the target, or the first one, and the place of the next one. Its entry shares nothing with the previous
/// one.
fn start_at_restart(parts: &Parts, contents: &[u8], key: &[u8], seqno: SeqNo) -> Decoded<(Start, usize)> {
    let restart = last_restart_before(parts, contents, key, seqno)?;
    let offset = parts.restart(contents, restart)?;
    let next = parts.restart(contents, restart + 1).unwrap_or(parts.entries_end);
    Ok((Start { offset, len: 0, matched: 0 }, next))
}

/// The last restart whose entry is before the target, or the first restart.
fn last_restart_before(parts: &Parts, contents: &[u8], key: &[u8], seqno: SeqNo) -> Decoded<usize> {
    let (mut low, mut high) = (0, parts.restarts);
    if (3..=RESTARTS_AHEAD).contains(&high) {
        read_ahead(contents, (1..high).map(|index| parts.restart(contents, index).unwrap_or(0)));
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let entry = parts.entry(contents, parts.restart(contents, middle)?, 0)?;
        let order = compare(entry.unshared, key).1.then_with(|| seqno.cmp(&entry.seqno));
        if order == Ordering::Less { low = middle } else { high = middle }
    }
    Ok(low)
}

/// The number of leading bytes that both share, and how `a` compares to `b`.
#[inline]
fn compare(a: &[u8], b: &[u8]) -> (usize, Ordering) {
    let shared = shared_len(a, b);
    (shared, a.get(shared).cmp(&b.get(shared)))
}
