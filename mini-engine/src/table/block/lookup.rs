//! Finds one entry in a data block, without copying keys or allocating memory.
//!
//! A restart stores its whole key. After that, the search only needs the number of bytes that the target shares with the last passed key, which is
//! less than the target. An entry that shares more bytes with that key than the target does is also less than the target; for any other entry only
//! the unshared bytes must be compared.

use std::cmp::Ordering;
use std::hint::black_box;
use std::ops::Range;

use crate::codec::shared_len;
use crate::table::block::entry::{Decoded, Entry, Parts};
use crate::table::block::key_heads::{KeyHeads, Start};
use crate::types::{Kind, SeqNo, Slice};

/// An entry that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: Kind,
    pub(crate) seqno: SeqNo,
    /// The range of the value in the contents.
    pub(crate) value: Range<usize>,
}

impl Found {
    /// The entry, with its value converted by `view`.
    #[inline]
    pub(crate) fn with_value(self, view: impl FnOnce(Range<usize>) -> Option<Slice>) -> Option<(Kind, SeqNo, Slice)> {
        view(self.value).map(|value| (self.kind, self.seqno, value))
    }
}

/// The newest version of `key` in the block with a number <= `seqno`.
#[inline(always)]
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
    /// This entry shares no more bytes with the previous key than the target does, so its shared bytes are also those of the target.
    pub(crate) entry: Entry<'a>,
    /// Whether the key of the entry is the target.
    pub(crate) is_key: bool,
}

/// The first entry at or after `(key, seqno)`. First reads `ahead` bytes ahead from the start of the search.
#[inline(always)]
pub(crate) fn find<'a>(
    parts: &Parts,
    contents: &'a [u8],
    heads: &KeyHeads,
    (key, seqno): (&[u8], SeqNo),
    ahead: usize,
) -> Decoded<Option<FoundEntry<'a>>> {
    let start = match heads.start(contents, key) {
        Some(start) => start,
        None => start_at_restart(parts, contents, key, seqno)?,
    };
    // Skipped if the range ends beyond the block, whose end has been read already.
    read_ahead(contents.get(start.offset..start.offset + ahead).unwrap_or_default().chunks_exact(LINE));
    // `len` is the length of the last passed key, and `matched` the number of its bytes that the target shares.
    let Start { mut offset, mut len, mut matched } = start;
    while offset < parts.entries_end {
        let entry = match parts.header(contents, offset, len) {
            // Most entries can be passed after a comparison of their lengths and one byte of their keys.
            Some((header, rest))
                if header.shared > matched || header.unshared(rest).first() < key.get(header.shared) =>
            {
                matched = matched.min(header.shared);
                (len, offset) = (header.key_len(), offset + header.len);
                continue;
            }
            Some((header, rest)) => header.entry(rest, offset),
            None => parts.long_entry(contents, offset, len)?,
        };
        if entry.shared <= matched {
            let rest = key.split_at(entry.shared).1;
            let (more, order) = match entry.unshared == rest {
                true => (rest.len(), Ordering::Equal),
                false => compare(entry.unshared, rest),
            };
            if order == Ordering::Greater || order == Ordering::Equal && entry.seqno <= seqno {
                return Ok(Some(FoundEntry { offset, entry, is_key: order == Ordering::Equal }));
            }
            matched = entry.shared + more;
        }
        (len, offset) = (entry.key_len(), entry.end);
    }
    Ok(None)
}

pub(crate) const LINE: usize = 64;
/// The number of bytes of entries that are read ahead to find one of them.
const FEW_ENTRIES: usize = 256;
/// The number of bytes of entries that are read ahead for a scan. Entries that need more have large values, which a search skips.
pub(crate) const MANY_ENTRIES: usize = 2 << 10;
/// The maximum number of restarts that are read ahead before their search.
const RESTARTS_AHEAD: usize = 8;

/// Reads the first byte of each part so that the processor loads their cache lines.
#[inline]
pub(crate) fn read_ahead<'a>(parts: impl Iterator<Item = &'a [u8]>) {
    black_box(parts.fold(0, |all, part| all | part.first().copied().unwrap_or(0)));
}

/// The last restart whose entry is before the target, or the first one. The entry at a restart shares nothing with the previous one. Reads ahead the
/// entries up to the next restart.
#[inline(never)]
fn start_at_restart(parts: &Parts, contents: &[u8], key: &[u8], seqno: SeqNo) -> Decoded<Start> {
    let restart = last_restart_before(parts, contents, key, seqno)?;
    let offset = parts.restart(contents, restart)?;
    let end = parts.restart(contents, restart + 1).unwrap_or(parts.entries_end).min(offset + MANY_ENTRIES);
    read_ahead(contents.get(offset..end).unwrap_or_default().chunks_exact(LINE));
    Ok(Start { offset, len: 0, matched: 0 })
}

/// The last restart whose entry is before the target, or the first restart.
fn last_restart_before(parts: &Parts, contents: &[u8], key: &[u8], seqno: SeqNo) -> Decoded<usize> {
    let (mut low, mut high) = (0, parts.restarts);
    if (3..=RESTARTS_AHEAD).contains(&high) {
        let place = |index| contents.get(parts.restart(contents, index).unwrap_or(0)..);
        read_ahead((1..high).filter_map(place));
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let offset = parts.restart(contents, middle)?;
        let order = match parts.header(contents, offset, 0) {
            Some((header, rest)) => header.unshared(rest).cmp(key),
            None => parts.long_entry(contents, offset, 0)?.unshared.cmp(key),
        };
        let is_before = match order {
            Ordering::Equal => parts.entry(contents, offset, 0)?.seqno > seqno,
            order => order == Ordering::Less,
        };
        if is_before { low = middle } else { high = middle }
    }
    Ok(low)
}

/// The number of leading bytes that `a` and `b` share, and how `a` compares to `b`.
#[inline]
fn compare(a: &[u8], b: &[u8]) -> (usize, Ordering) {
    let shared = shared_len(a, b);
    (shared, a.get(shared).cmp(&b.get(shared)))
}
