//! Finds one entry in a data block, without copying keys or allocating memory.

use std::hint::black_box;
use std::ops::Range;

use crate::columns::{Columns, KeySamples, Place};
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
pub(crate) fn lookup(
    (columns, samples): (&Columns, &KeySamples),
    contents: &[u8],
    key: &[u8],
    seqno: SeqNo,
) -> Option<Found> {
    let near = match samples.near(columns, contents, key) {
        Some((first, last)) => {
            let bytes = |range| contents.get(range).unwrap_or_default();
            read_ahead(bytes(columns.suffix(contents, first).start..columns.suffix(contents, last).end));
            read_ahead(bytes(columns.value(contents, first).start..columns.value(contents, last).end));
            first
        }
        None => {
            read_ahead(columns.searched(contents));
            usize::MAX
        }
    };
    let Place { at, is_key } = columns.find_near(contents, key, seqno, near);
    let (kind, seqno) = (columns.kind(contents, at), columns.seqno(contents, at));
    is_key.then(|| Found { kind, seqno, value: columns.value(contents, at) })
}

const LINE: usize = 64;
/// The maximum number of bytes that are read ahead.
const MOST_AHEAD: usize = 4 << 10;

/// Reads a byte of each cache line so that the processor loads them at once.
#[inline]
pub(crate) fn read_ahead(bytes: &[u8]) {
    let (mut at, mut all) = (0, 0);
    while let Some(byte) = bytes.get(at).filter(|_| at < MOST_AHEAD) {
        (at, all) = (at + LINE, all | byte);
    }
    black_box(all);
}
