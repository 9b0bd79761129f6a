//! The index: one fence pointer for each data block, in memory as long as the table is open.
//!
//! A fence `(key, seqno)` lies between its block and the next: at or after the last entry of the block, before the
//! first of the next. Where those entries' keys differ the fence is a short key that tells them apart, with seqno 0;
//! where a key's versions continue in the next block, it is the last entry itself. So the block that can hold an entry
//! is the first whose fence is not before it.
//!
//! ```text
//! index    number of fences u32; for each: varint key length, key, varint seqno, varint block length
//! ```
//!
//! Block lengths have their trailers in; the first block is at offset 0 and each other directly behind the one before.
//! On disk fences are sorted; a search goes through their [`Heads`], which are arranged when the table is opened.

use std::cmp::Ordering;

use crate::codec::{self, Malformed, Reader};
use crate::types::{MAX_KEY_LEN, MAX_SEQNO, SeqNo, entry_order};

use super::eytzinger::Heads;
use super::format::Handle;
use super::frame::{Block, TRAILER_LEN};

/// Bytes of the shortest fence.
const MIN_FENCE_LEN: usize = 3;

/// Builds the contents of an index block.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    fences: Vec<u8>,
    count: u32,
}

impl IndexBuilder {
    /// Adds the fence of a block of `len` bytes whose last entry is `last`; `next` is the first key of the block after
    /// it.
    pub(super) fn push(&mut self, (last_key, last_seqno): (&[u8], SeqNo), next: Option<&[u8]>, len: u64) {
        match next {
            Some(next) if next == last_key => {
                codec::put_prefixed(&mut self.fences, last_key);
                codec::put_varint(&mut self.fences, last_seqno);
            }
            Some(next) => {
                put_separator(&mut self.fences, last_key, next);
                codec::put_varint(&mut self.fences, 0);
            }
            None => {
                codec::put_prefixed(&mut self.fences, last_key);
                codec::put_varint(&mut self.fences, 0);
            }
        }
        codec::put_varint(&mut self.fences, len);
        self.count += 1;
    }

    pub(super) fn finish(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.fences.len() + 4);
        codec::put_u32(&mut out, self.count);
        out.extend_from_slice(&self.fences);
        out
    }
}

/// Appends a short key `k`, length first, with `last <= k < next`.
fn put_separator(out: &mut Vec<u8>, last: &[u8], next: &[u8]) {
    let shared = last.iter().zip(next).take_while(|(a, b)| a == b).count();
    let (prefix, last_rest) = last.split_at(shared);
    let next_rest = next.split_at(shared).1;
    let closing = match (last_rest, next_rest) {
        // Not shorter than `last`.
        ([] | [_], _) | (_, []) => None,
        // The start of `next` up to the byte that differs: less than `next`, since more follows.
        (_, [byte, _, ..]) => Some(*byte),
        // A byte between the two that differ.
        ([low, ..], [high]) => low.checked_add(1).filter(|byte| byte < high),
    };
    match closing {
        Some(byte) => {
            codec::put_varint(out, shared as u64 + 1);
            out.extend_from_slice(prefix);
            out.push(byte);
        }
        None => codec::put_prefixed(out, last),
    }
}

#[derive(Clone, Copy, Debug)]
struct Fence {
    key_start: u32,
    key_len: u16,
    seqno: SeqNo,
    /// Where the fence's block ends.
    end: u64,
}

/// The fences of an open table.
#[derive(Debug)]
pub(super) struct Index {
    block: Block,
    fences: Vec<Fence>,
    heads: Heads,
}

impl Index {
    /// Decodes the index of a table whose data blocks take `data_len` bytes.
    pub(super) fn decode(block: Block, data_len: u64) -> Result<Self, Malformed> {
        let contents = block.contents();
        let mut reader = Reader::new(contents);
        let count = reader.u32().ok_or(reader.malformed("a number of fences"))? as usize;
        if count == 0 || count > reader.rest().len() / MIN_FENCE_LEN {
            return Err(reader.malformed("a number of fences that fits the index"));
        }
        let mut fences: Vec<Fence> = Vec::with_capacity(count);
        for _ in 0..count {
            let start = fences.last().map_or(0, |fence| fence.end);
            let fence = decode_fence(&mut reader, start).ok_or(reader.malformed("a fence"))?;
            if let Some(last) = fences.last()
                && entry_order(entry(contents, last), entry(contents, &fence)) != Ordering::Less
            {
                return Err(reader.malformed("a fence after the one before it"));
            }
            fences.push(fence);
        }
        if !reader.is_empty() || fences.last().map_or(0, |fence| fence.end) != data_len {
            return Err(reader.malformed("fences that cover the data blocks"));
        }
        let heads = Heads::new(fences.len(), |index| entry(contents, &fences[index]).0);
        Ok(Self { heads, fences, block })
    }

    /// The number of data blocks.
    pub(super) fn len(&self) -> usize {
        self.fences.len()
    }

    /// Where block `index` is.
    pub(super) fn handle(&self, index: usize) -> Option<Handle> {
        let end = self.fences.get(index)?.end;
        let offset = index.checked_sub(1).and_then(|before| self.fences.get(before)).map_or(0, |fence| fence.end);
        Some(Handle { offset, len: end - offset })
    }

    /// The fence `(key, seqno)` of block `index`.
    pub(super) fn fence(&self, index: usize) -> Option<(&[u8], SeqNo)> {
        self.fences.get(index).map(|fence| entry(self.block.contents(), fence))
    }

    /// The first block that can hold an entry at or after `(key, seqno)`; `len()` if none does.
    pub(super) fn find(&self, key: &[u8], seqno: SeqNo) -> usize {
        let contents = self.block.contents();
        let is_before = |at: usize| entry_order(entry(contents, &self.fences[at]), (key, seqno)) == Ordering::Less;
        self.heads.first_not_before(key, is_before)
    }

    /// Bytes of memory that the index takes.
    pub(super) fn memory_len(&self) -> usize {
        self.block.shared().len() + self.fences.len() * size_of::<Fence>() + self.heads.memory_len()
    }
}

fn entry<'a>(contents: &'a [u8], fence: &Fence) -> (&'a [u8], SeqNo) {
    let key = contents.get(fence.key_start as usize..).and_then(|rest| rest.get(..usize::from(fence.key_len)));
    (key.unwrap_or_default(), fence.seqno)
}

fn decode_fence(reader: &mut Reader<'_>, start: u64) -> Option<Fence> {
    let key_len = u16::try_from(reader.prefixed(MAX_KEY_LEN)?.len()).ok()?;
    // Contents of a block are shorter than 4 GiB.
    let key_start = u32::try_from(reader.position() - usize::from(key_len)).ok()?;
    let seqno = reader.varint().filter(|&seqno| seqno <= MAX_SEQNO)?;
    let len = reader.varint().filter(|&len| len >= TRAILER_LEN as u64)?;
    Some(Fence { key_start, key_len, seqno, end: start.checked_add(len)? })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    fn block_of(contents: &[u8]) -> Block {
        let mut bytes = contents.to_vec();
        bytes.resize(contents.len() + TRAILER_LEN, 0);
        Block::from_shared(Arc::from(bytes))
    }

    #[test]
    fn separators_are_short_and_lie_between_the_blocks() {
        // Catches a separator equal to the next key, which would send reads of it to the block before.
        let cases: [(&[u8], &[u8], &[u8]); 8] = [
            (b"apple-long", b"banana", b"b"),
            (b"user/1000/x", b"user/1001/a", b"user/1001"),
            (b"a99", b"c", b"b"),
            (b"a99", b"b", b"a99"),
            (b"a", b"ab", b"a"),
            (b"", b"x", b""),
            (b"abc", b"abd", b"abc"),
            (b"a\xff\xff", b"b", b"a\xff\xff"),
        ];
        for (last, next, expected) in cases {
            let mut out = Vec::new();
            put_separator(&mut out, last, next);
            assert_eq!(&out[1..], expected, "{last:?} {next:?}");
        }
    }

    proptest! {
        #[test]
        fn separators_lie_between_any_two_keys(
            a in prop::collection::vec(0u8..4, 0..6), b in prop::collection::vec(0u8..4, 0..6),
        ) {
            // Catches a case of prefixes or adjacent bytes that the rules above miss.
            prop_assume!(a != b);
            let (last, next) = if a < b { (a, b) } else { (b, a) };
            let mut out = Vec::new();
            put_separator(&mut out, &last, &next);
            let separator = &out[1..];
            prop_assert!(*last <= *separator && *separator < *next && separator.len() <= last.len().max(1));
        }

        #[test]
        fn random_bytes_never_panic_the_index(
            bytes in prop::collection::vec(any::<u8>(), 0..200), data_len in 0u64..1000,
        ) {
            // Catches a count that is trusted before it is compared with the bytes there are.
            if let Ok(index) = Index::decode(block_of(&bytes), data_len) {
                prop_assert!(index.len() <= bytes.len() / MIN_FENCE_LEN);
                prop_assert!(index.find(b"key", 1) <= index.len());
            }
        }
    }

    #[test]
    fn a_huge_count_of_fences_allocates_nothing() {
        // Catches `with_capacity` of a number from disk: 4 billion fences are 128 GiB.
        let error = Index::decode(block_of(&u32::MAX.to_le_bytes()), 0).expect_err("no fence follows");
        assert_eq!(error.expected, "a number of fences that fits the index");
    }
}
