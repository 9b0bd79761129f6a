//! Fence pointers: the positions of the blocks in a list, each with a bound, in entry order, for the entries of the block.
//!
//! A fence `(key, seqno)` lies between its block and the next: at or after the last entry of its block, and before the first entry of the next. If
//! the keys of those entries differ, the fence is a short key between them, with seqno 0; if a key's versions continue in the next block, it is the
//! last entry itself. So the block that can contain an entry is the first one whose fence is at or after the entry.
//!
//! ```text
//! fences   if they share one: varint length of a prefix, prefix;
//!          for each block: varint key length, key behind the prefix, varint seqno, varint end of the block;
//!          then the offset of each fence u32, their number u32, whose highest bit is set if there is a prefix
//! ```
//!
//! A separator is one byte longer than the prefix that its neighbours share. So if long keys share a long prefix, all fences would contain it: the
//! prefix is stored once if it has at least [`LEAST_SHARED`] bytes.
//!
//! The end of a block is stored as an offset from the start of the first block; each block begins where the previous one ends. A partition has the
//! fences of its data blocks, and the root has those of the partitions. [`Fences`] decodes the bytes in place; [`Index`] is built from them in
//! memory: it searches the [`Heads`] of the fences, and decodes a fence only if those are not enough.
//!
//! All bytes are checked once, when they are read from the file ([`Fences::checked`]); later reads rely on that for the order, but still check every
//! length.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

use crate::codec::{self, Malformed, Reader};
use crate::types::{MAX_SEQNO, MAX_STORED_KEY_LEN, SeqNo, entry_order};

use crate::table::block::{Block, TRAILER_LEN};
use crate::table::format::Handle;
use crate::table::index::heads::Heads;

/// The highest bit in the number of fences: it is set if all fences share a stored prefix.
const SHARES: u32 = 1 << 31;
/// Shorter prefixes are stored with each fence.
const LEAST_SHARED: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct IndexBuilder {
    /// The fences with their whole keys.
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    end: u64,
    /// The first key, cut to the prefix that all keys so far share.
    shared: Vec<u8>,
}

impl IndexBuilder {
    /// Adds the fence of a block of `len` bytes whose last entry is `last`; `next` is the first key of the following block.
    pub(crate) fn push(&mut self, (last_key, last_seqno): (&[u8], SeqNo), next: Option<&[u8]>, len: u64) {
        match next {
            Some(next) if next == last_key => self.push_fence((last_key, last_seqno), len),
            Some(next) => self.push_fence((&separator(last_key, next), 0), len),
            None => self.push_fence((last_key, 0), len),
        }
    }

    /// Adds this fence of a block of `len` bytes.
    pub(crate) fn push_fence(&mut self, (key, seqno): (&[u8], SeqNo), len: u64) {
        match self.offsets.is_empty() {
            true => self.shared = key.to_vec(),
            false => self.shared.truncate(codec::shared_len(&self.shared, key)),
        }
        // The caller ensures that the contents are shorter than 4 GiB.
        self.offsets.push(self.bytes.len() as u32);
        self.end += len;
        codec::put_prefixed(&mut self.bytes, key);
        codec::put_varint(&mut self.bytes, seqno);
        codec::put_varint(&mut self.bytes, self.end);
    }

    pub(crate) fn count(&self) -> usize {
        self.offsets.len()
    }

    /// The bytes of the fences with their whole keys; [`IndexBuilder::finish`] appends at most one byte more.
    pub(crate) fn whole_len(&self) -> usize {
        self.bytes.len() + 4 * self.offsets.len() + 4
    }

    /// The same without the shared prefix, which is stored only once.
    pub(crate) fn len(&self) -> usize {
        self.whole_len() - self.shared_prefix().len() * self.offsets.len()
    }

    fn shared_prefix(&self) -> &[u8] {
        if self.shared.len() < LEAST_SHARED { &[] } else { &self.shared }
    }

    /// Appends the fences to `out`, and resets the builder.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        let count = self.offsets.len() as u32;
        match self.shared_prefix().len() {
            0 => out.append(&mut self.bytes),
            shared => self.put_behind_prefix(shared, out),
        }
        let shares = if self.shared_prefix().is_empty() { 0 } else { SHARES };
        for offset in self.offsets.drain(..).chain([count | shares]) {
            codec::put_u32(out, offset);
        }
        *self = Self::default();
    }

    /// Appends the first `shared` bytes, which all keys have, and then the fences without them.
    fn put_behind_prefix(&mut self, shared: usize, out: &mut Vec<u8>) {
        let start = out.len();
        codec::put_prefixed(out, self.shared.split_at(shared).0);
        let mut whole = Reader::new(&self.bytes);
        for offset in &mut self.offsets {
            *offset = (out.len() - start) as u32;
            let Some(fence) = Fence::read(&mut whole, &[]) else { break };
            codec::put_prefixed(out, fence.rest.get(shared..).unwrap_or_default());
            codec::put_varint(out, fence.seqno);
            codec::put_varint(out, fence.end);
        }
    }
}

/// A short key `k` with `last <= k < next`.
fn separator<'a>(last: &'a [u8], next: &[u8]) -> Cow<'a, [u8]> {
    let (prefix, last_rest) = last.split_at(codec::shared_len(last, next));
    let closing = match (last_rest, next.split_at(prefix.len()).1) {
        // There is no separator shorter than `last`.
        ([] | [_], _) | (_, []) => None,
        // The prefix of `next` up to the differing byte: it is less than `next`, since more bytes follow.
        (_, [byte, _, ..]) => Some(*byte),
        // A byte between the two bytes that differ.
        ([low, ..], [high]) => low.checked_add(1).filter(|byte| byte < high),
    };
    closing.map_or(Cow::Borrowed(last), |byte| [prefix, &[byte]].concat().into())
}

/// A fence, and the end of its block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fence<'a> {
    /// The prefix of all keys of the list, and the rest of this key.
    prefix: &'a [u8],
    rest: &'a [u8],
    seqno: SeqNo,
    pub(crate) end: u64,
}

impl<'a> Fence<'a> {
    fn read(reader: &mut Reader<'a>, prefix: &'a [u8]) -> Option<Self> {
        let rest = reader.prefixed(MAX_STORED_KEY_LEN - prefix.len())?;
        let seqno = reader.varint().filter(|&seqno| seqno <= MAX_SEQNO)?;
        Some(Self { prefix, rest, seqno, end: reader.varint()? })
    }

    pub(crate) fn place(&self) -> FencePlace<'a> {
        match self.prefix {
            [] => (Cow::Borrowed(self.rest), self.seqno),
            prefix => (Cow::Owned([prefix, self.rest].concat()), self.seqno),
        }
    }
}

/// The position of a fence in entry order.
pub(crate) type FencePlace<'a> = (Cow<'a, [u8]>, SeqNo);

/// Fences in their stored form.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fences<'a> {
    /// The prefix of all keys; empty if none is stored.
    prefix: &'a [u8],
    /// The stored fences, from the first one on.
    fences: &'a [u8],
    offsets: &'a [[u8; 4]],
}

impl<'a> Fences<'a> {
    /// The fences whose bytes are `contents`, which are not checked except for the number of fences.
    pub(crate) fn of(contents: &'a [u8]) -> Result<Self, Malformed> {
        let malformed = Malformed { offset: contents.len(), expected: "a number of fences that fits the index" };
        let (body, count) = contents.split_last_chunk::<4>().ok_or(malformed)?;
        let marked = u32::from_le_bytes(*count);
        let count = (marked & !SHARES) as usize;
        let fences_end = count.checked_mul(4).and_then(|len| body.len().checked_sub(len)).ok_or(malformed)?;
        let (fences, offsets) = body.split_at(fences_end);
        let prefix = match marked & SHARES {
            0 => Some(&[][..]),
            _ => Reader::new(fences).prefixed(MAX_STORED_KEY_LEN),
        };
        let prefix = prefix.filter(|_| count > 0).ok_or(malformed)?;
        Ok(Self { prefix, fences, offsets: offsets.as_chunks().0 })
    }

    /// Returns all fences after a check: each can be decoded, is at its offset, and comes after the previous one.
    fn checked(&self) -> Result<Vec<Fence<'a>>, Malformed> {
        let mut reader = Reader::new(self.fences);
        if !self.prefix.is_empty() {
            reader.prefixed(MAX_STORED_KEY_LEN);
        }
        let mut read: Vec<Fence<'a>> = Vec::new();
        for offset in self.offsets {
            if u32::from_le_bytes(*offset) as usize != reader.position() {
                return Err(reader.malformed("a fence where its offset says"));
            }
            let fence = Fence::read(&mut reader, self.prefix).ok_or(reader.malformed("a fence"))?;
            let last = read.last();
            let place = |fence: &Fence<'a>| (fence.rest, fence.seqno);
            if last.is_some_and(|last| entry_order(place(last), place(&fence)) != Ordering::Less) {
                return Err(reader.malformed("a fence after the one before it"));
            }
            let start = last.map_or(0, |last| last.end);
            if fence.end.checked_sub(start).is_none_or(|len| len < TRAILER_LEN as u64) {
                return Err(reader.malformed("a block that is longer than its trailer"));
            }
            read.push(fence);
        }
        if !reader.is_empty() {
            return Err(reader.malformed("the end of the fences"));
        }
        Ok(read)
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len()
    }

    /// The fence of block `at`.
    pub(crate) fn get(&self, at: usize) -> Option<Fence<'a>> {
        Fence::read(&mut self.reader(at)?, self.prefix)
    }

    pub(crate) fn last(&self) -> Option<Fence<'a>> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Whether the fence of block `at` is before the target, which must have the prefix of all fences. Decodes no more of the fence than necessary.
    #[inline]
    fn is_before(&self, at: usize, key: &[u8], seqno: SeqNo) -> bool {
        let (Some(mut reader), Some(rest)) = (self.reader(at), key.get(self.prefix.len()..)) else { return false };
        match reader.prefixed(MAX_STORED_KEY_LEN).map(|fence| fence.cmp(rest)) {
            Some(Ordering::Equal) => reader.varint().is_some_and(|fence| fence > seqno),
            order => order == Some(Ordering::Less),
        }
    }

    #[inline]
    fn reader(&self, at: usize) -> Option<Reader<'a>> {
        let offset = u32::from_le_bytes(*self.offsets.get(at)?) as usize;
        Some(Reader::new(self.fences.get(offset..)?))
    }
}

/// Fences in memory, ready to be searched.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) block: Block,
    /// The range of the fences in the block's contents.
    place: Range<usize>,
    heads: Heads,
    /// The end of each block, relative to `start`.
    ends: Box<[u64]>,
    /// The start of the first block.
    pub(crate) start: u64,
}

impl Index {
    /// The fences in `block`, for blocks that fill the bytes `blocks` of the file.
    pub(crate) fn decode(block: Block, blocks: Range<u64>) -> Result<Self, Malformed> {
        let len = block.contents().len();
        let index = Self::within(block, 0..len, blocks.start)?;
        if index.end() != blocks.end {
            return Err(Malformed { offset: len, expected: "fences that cover their blocks" });
        }
        Ok(index)
    }

    /// The fences at `place` of the contents of `block`, for blocks that begin at `start` of the file. Allocates memory only for checked fences.
    pub(crate) fn within(block: Block, place: Range<usize>, start: u64) -> Result<Self, Malformed> {
        let malformed = |error: Malformed| Malformed { offset: place.start + error.offset, ..error };
        let contents = block.contents().get(place.clone()).unwrap_or_default();
        let fences = Fences::of(contents).and_then(|fences| fences.checked()).map_err(malformed)?;
        if fences.last().is_some_and(|last| start.checked_add(last.end).is_none()) {
            return Err(Malformed { offset: place.end, expected: "blocks within a file" });
        }
        let prefix = fences.first().map_or(&[][..], |fence| fence.prefix);
        let heads = Heads::new(prefix, fences.len(), |at| fences.get(at).map_or(&[], |fence| fence.rest));
        let ends = fences.iter().map(|fence| fence.end).collect();
        Ok(Self { heads, ends, place, block, start })
    }

    fn fences(&self) -> Fences<'_> {
        let bytes = self.block.contents().get(self.place.clone());
        bytes.and_then(|bytes| Fences::of(bytes).ok()).unwrap_or_default()
    }

    /// The end of the last block; it was checked to be a valid offset.
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.ends.last().copied().unwrap_or(0))
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The position of block `at`.
    pub(crate) fn handle(&self, at: usize) -> Option<Handle> {
        let end = *self.ends.get(at)?;
        let before = at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end);
        Some(Handle { offset: self.start.checked_add(before)?, len: end.checked_sub(before)? })
    }

    /// The fence `(key, seqno)` of block `at`.
    pub(crate) fn fence(&self, at: usize) -> Option<FencePlace<'_>> {
        self.fences().get(at).map(|fence| fence.place())
    }

    /// The last fence, which is also the fence of the whole group in the index above.
    pub(crate) fn last(&self) -> Option<FencePlace<'_>> {
        self.fence(self.len().checked_sub(1)?)
    }

    /// The first block that can contain an entry at or after `(key, seqno)`; `len()` if there is none. O(log blocks).
    #[inline(always)]
    pub(crate) fn find(&self, key: &[u8], seqno: SeqNo) -> usize {
        self.heads.first_not_before(key, |at| self.fences().is_before(at, key, seqno))
    }

    /// Like `find`, but also returns the position of the block; `None` if there is no such block.
    #[inline]
    pub(crate) fn locate(&self, key: &[u8], seqno: SeqNo) -> Option<(usize, Handle)> {
        let at = self.find(key, seqno);
        Some((at, self.handle(at)?))
    }

    pub(crate) fn memory_len(&self) -> usize {
        self.block.memory_len() + self.heads.memory_len() + size_of_val(&*self.ends)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the end of the last block if the fences are valid.
    fn check(fences: Fences<'_>) -> Result<u64, Malformed> {
        Ok(fences.checked()?.last().map_or(0, |last| last.end))
    }

    #[test]
    fn separators_are_short_and_lie_between_the_blocks() {
        // Catches a separator equal to the next key, which would direct reads of that key to the previous block.
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
            assert_eq!(*separator(last, next), *expected, "{last:?} {next:?}");
        }
    }

    proptest! {
        #[test]
        fn separators_lie_between_any_two_keys(
            a in prop::collection::vec(0u8..4, 0..6), b in prop::collection::vec(0u8..4, 0..6),
        ) {
            // Catches a case of prefixes or adjacent bytes that the rules above do not cover.
            prop_assume!(a != b);
            let (last, next) = if a < b { (a, b) } else { (b, a) };
            let separator = separator(&last, &next);
            prop_assert!(*last <= *separator && *separator < *next && separator.len() <= last.len().max(1));
        }

        #[test]
        fn a_search_of_fences_finds_the_first_block_that_can_hold_the_entry(
            places in prop::collection::btree_set((prop::collection::vec(0u8..3, 0..5), 0u64..4), 1..60),
            asked in prop::collection::vec((prop::collection::vec(0u8..3, 0..6), 0u64..5), 1..40),
            start in 0u64..1000, shared in prop::sample::select(&[0, LEAST_SHARED - 2, LEAST_SHARED, 300][..]),
        ) {
            // Catches a wrong offset, seqnos in the wrong order, a handle that does not follow the previous one, a root whose search by heads differs
            // from a partition's search of bytes, a shared prefix that is stored with each fence, and a key without that prefix.
            let behind = |(key, seqno): (Vec<u8>, SeqNo)| ([vec![1; shared], key].concat(), seqno);
            let mut asked: Vec<_> = asked;
            asked.extend(asked.clone().into_iter().map(behind));
            let mut places: Vec<_> = places.into_iter().map(behind).collect();
            places.sort_by(|a, b| entry_order((&a.0, a.1), (&b.0, b.1)));
            let mut builder = IndexBuilder::default();
            for (at, (key, seqno)) in (0..).zip(&places) {
                builder.push_fence((key, *seqno), 20 + at);
            }
            let (mut bytes, whole, len) = (Vec::new(), builder.whole_len(), builder.len());
            builder.finish(&mut bytes);
            prop_assert!(bytes.len() <= whole + 1 && bytes.len() <= len + MAX_STORED_KEY_LEN && builder.count() == 0);
            prop_assert!(shared < LEAST_SHARED || bytes.len() <= shared + 20 * places.len() + 10, "{}", bytes.len());
            let fences = Fences::of(&bytes).expect("own encoding");
            let end = check(fences).expect("own encoding");
            let index = Index::decode(Block::from_contents(&bytes), start..start + end).expect("own encoding");
            prop_assert_eq!((fences.len(), index.len()), (places.len(), places.len()));
            let mut offset = start;
            for (at, (key, seqno)) in places.iter().enumerate() {
                prop_assert_eq!(index.fence(at), Some((key.into(), *seqno)));
                prop_assert_eq!(index.handle(at), Some(Handle { offset, len: 20 + at as u64 }));
                offset += 20 + at as u64;
            }
            prop_assert_eq!((index.handle(places.len()), offset), (None, start + end));
            for (key, seqno) in asked.iter().chain(&places) {
                let expected = places.partition_point(|a| entry_order((&a.0, a.1), (key, *seqno)) == Ordering::Less);
                prop_assert_eq!(index.find(key, *seqno), expected);
            }
        }

        #[test]
        fn random_bytes_never_panic_the_index(
            mut bytes in prop::collection::vec(any::<u8>(), 0..200), count in 0u32..40, at in 0usize..50,
        ) {
            // Catches a count or an offset that is used before it is compared with the available bytes.
            bytes.extend_from_slice(&count.to_le_bytes());
            if let Ok(fences) = Fences::of(&bytes) {
                prop_assert!(fences.len() <= bytes.len() / 4);
                let sound = check(fences);
                let within = |start| Index::within(Block::from_contents(&bytes), 0..bytes.len(), start);
                prop_assert_eq!((within(0).is_ok(), within(u64::MAX).is_ok()), (sound.is_ok(), false));
                if let Ok(index) = within(7) {
                    prop_assert!(index.handle(at).is_none() || at < fences.len());
                    prop_assert!(index.find(b"key", 1) <= fences.len() && index.end() >= 7);
                }
                prop_assert_eq!(Index::decode(Block::from_contents(&bytes), 5..99).is_ok(), sound == Ok(94));
            }
        }
    }

    #[test]
    fn a_huge_count_of_fences_allocates_nothing() {
        // Catches `with_capacity` of a number from disk: 4 billion fences would be 128 GiB.
        let error = Fences::of(&u32::MAX.to_le_bytes()).expect_err("no fence precedes it");
        assert_eq!(error.expected, "a number of fences that fits the index");
    }

    #[test]
    fn fences_that_lie_about_each_other_are_refused() {
        // Catches a search over fences that are not sorted, wrong offsets, and blocks that begin before others end.
        let encoded = |fences: &[(&[u8], SeqNo, u64)]| {
            let mut builder = IndexBuilder::default();
            fences.iter().for_each(|(key, seqno, len)| builder.push_fence((key, *seqno), *len));
            let mut bytes = Vec::new();
            builder.finish(&mut bytes);
            bytes
        };
        let check = |bytes: &[u8]| Fences::of(bytes).and_then(check);
        let sound = encoded(&[(b"a", 2, 13), (b"a", 1, 13), (b"b", 0, 40)]);
        assert_eq!(check(&sound), Ok(66));
        let mut moved = sound.clone();
        moved[sound.len() - 8] += 1;
        let mut longer = sound.clone();
        longer.insert(12, 0);
        let cases = [
            ("a fence after the one before it", encoded(&[(b"b", 0, 13), (b"a", 0, 13)])),
            ("a fence after the one before it", encoded(&[(b"a", 1, 13), (b"a", 2, 13)])),
            ("a fence after the one before it", encoded(&[(b"a", 1, 13), (b"a", 1, 13)])),
            ("a block that is longer than its trailer", encoded(&[(b"a", 1, 13), (b"b", 1, 12)])),
            ("a fence where its offset says", moved),
            ("the end of the fences", longer),
        ];
        for (expected, bytes) in cases {
            assert_eq!(check(&bytes).map_err(|error| error.expected), Err(expected));
        }
    }
}
