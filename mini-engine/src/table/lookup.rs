//! Finds one entry in a data block, for point reads: builds no key and allocates nothing.
//!
//! A restart stores its key whole. From there on it is enough to know how many bytes the target shares with the last key that was
//! passed. That key is less than the target. So an entry that shares more with it than the target does is less for the same reason,
//! and of any other entry only the unshared bytes must be compared.

use std::cmp::Ordering;
use std::ops::Range;

use super::block::{Parts, Step};
use crate::types::{Kind, SeqNo, entry_order};

/// An entry that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) kind: Kind,
    pub(super) seqno: SeqNo,
    /// Where the value is in the contents.
    pub(super) value: Range<usize>,
}

/// The newest version of `key` in the block that is not newer than `seqno`.
pub(super) fn lookup(contents: &[u8], key: &[u8], seqno: SeqNo) -> Step<Option<Found>> {
    let parts = Parts::of(contents)?;
    let mut offset = last_restart_before(&parts, contents, key, seqno)?;
    // Of the key that was passed last: its length, and how many bytes of it the target starts with.
    let (mut len, mut matched) = (0, 0);
    while offset < parts.entries_end {
        let (entry, end) = parts.entry(contents, offset, len)?;
        if entry.shared <= matched {
            let rest = key.split_at(entry.shared).1;
            match entry.unshared.cmp(rest) {
                Ordering::Greater => return Ok(None),
                Ordering::Equal if entry.seqno <= seqno => {
                    let value = end - entry.value.len()..end;
                    return Ok(Some(Found { kind: entry.kind, seqno: entry.seqno, value }));
                }
                Ordering::Equal | Ordering::Less => {}
            }
            matched = entry.shared + shared_len(entry.unshared, rest);
        }
        len = entry.shared + entry.unshared.len();
        offset = end;
    }
    Ok(None)
}

/// The offset of the last restart whose entry is before the target, or of the first restart.
fn last_restart_before(parts: &Parts, contents: &[u8], key: &[u8], seqno: SeqNo) -> Step<usize> {
    let (mut low, mut high) = (0, parts.restarts);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let (entry, _) = parts.entry(contents, parts.restart(contents, middle)?, 0)?;
        let before = entry_order((entry.unshared, entry.seqno), (key, seqno)) == Ordering::Less;
        if before { low = middle } else { high = middle }
    }
    parts.restart(contents, low)
}

fn shared_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}
