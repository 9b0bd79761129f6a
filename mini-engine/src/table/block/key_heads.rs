//! Key heads: short prefixes of some keys that the cache keeps with a data block, so that a search decodes only a few entries.
//!
//! Every entry that a search decodes is on another cache line, and if the block cache is larger than the processor's cache, each such line is a cache
//! miss. So up to [`MOST_HEADS`] entries of a block have heads: a head is a number made of the first four bytes of a key after the prefix that all
//! keys of the block share. A search reads the heads, which are adjacent and take 3 % of the data's bytes, and then the few entries after the head
//! that it finds. Heads that are stored apart from their keys are Graefe and Larson's *poor man's normalized keys* ("B-tree indexes and CPU caches",
//! 2001). Heads are computed when a search finds a block in the cache that was used before, and are never stored in a file.
//!
//! H1: if the keys of a block are sorted, all of them start with the prefix; the head of a key that is too short is padded with zeros. So of two keys
//! with different heads, the one with the smaller head is the smaller.
//! H2: the number of bytes that the target shares with a smaller key is computed as the prefix plus the equal leading bytes of their heads. The
//! result is too large if the key ends within its head: the heads of `x` and `x\0y` agree in two bytes. This is harmless, since no entry shares more
//! bytes with the previous key than that key has.

use std::ops::Range;

use crate::codec::{shared_len, strip_prefix};
use crate::table::block::entry::{Decoded, Parts, RESTART_INTERVAL};
use crate::types::MAX_STORED_KEY_LEN;

/// The maximum number of heads of a block.
const MOST_HEADS: usize = 20;
/// The minimum number of bytes of entries from one head to the next.
const MIN_SPACING: usize = 128;
/// The maximum number of entries from one head to the next: with more, a search from a restart would decode fewer.
const MOST_ENTRIES: usize = 2 * RESTART_INTERVAL;
/// If more heads than this equal that of the target, a search begins at a restart.
const MOST_EQUAL: usize = 2;
const HEAD_LEN: usize = 4;
/// The maximum length of the prefix, in bytes. If keys share more, heads begin within the shared bytes and distinguish fewer keys.
const MOST_PREFIX: usize = u8::MAX as usize;

/// The heads of a block; none if they were not computed.
#[derive(Clone, Debug)]
pub(crate) struct KeyHeads {
    heads: [u32; MOST_HEADS],
    /// For each head, the offset of the entry after that of the head.
    behind: [u16; MOST_HEADS],
    count: u8,
    /// The offset of the first key in the block, after a few lengths, and the number of its leading bytes that form the prefix.
    prefix: (u8, u8),
}

/// The start of a search among entries. All earlier entries are less than the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) offset: usize,
    /// The length of the previous key, or an upper bound.
    pub(crate) len: usize,
    /// The number of bytes that the previous key shares with the target; it may exceed the length of that key (H2).
    pub(crate) matched: usize,
}

impl Start {
    /// A search that starts at the first entry.
    const FIRST: Self = Self { offset: 0, len: 0, matched: 0 };
}

impl KeyHeads {
    pub(crate) const NONE: &Self = &Self::EMPTY;
    const EMPTY: Self = Self { heads: [0; MOST_HEADS], behind: [0; MOST_HEADS], count: 0, prefix: (0, 0) };

    /// Computes the heads of the block with these contents. There are none if the block is too long for the offsets, too short or with too small
    /// entries for heads to be useful, or not a valid data block. Decodes every entry once, but the first one and those after the last restart twice.
    pub(crate) fn of(contents: &[u8]) -> Self {
        Self::spaced(contents, MIN_SPACING.max(contents.len() / MOST_HEADS + 1))
    }

    /// A head for about every `spacing` bytes, up to the maximum number.
    fn spaced(contents: &[u8], spacing: usize) -> Self {
        let mut heads = Self::EMPTY;
        if !(2 * spacing..=usize::from(u16::MAX)).contains(&contents.len()) || heads.fill(contents, spacing).is_err() {
            return Self::EMPTY;
        }
        heads
    }

    fn fill(&mut self, contents: &[u8], spacing: usize) -> Decoded {
        let parts = Parts::of(contents)?;
        let prefix = shared_prefix(&parts, contents)?;
        self.prefix = (prefix.start as u8, prefix.len() as u8);
        let (mut offset, mut len, mut head, mut next, mut passed, mut most_passed) = (0, 0, 0, spacing, 0, 0);
        while offset < parts.entries_end {
            let (shared, unshared, end) = key_at(&parts, contents, offset, len)?;
            head = head_after(head, (shared, unshared), prefix.len());
            (offset, len, passed) = (end, shared + unshared.len(), passed + 1);
            if offset >= next {
                // After the last entry there is nothing to find.
                if offset < parts.entries_end {
                    self.push(head, offset as u16);
                }
                (next, most_passed, passed) = (offset + spacing, most_passed.max(passed), 0);
            }
        }
        if most_passed.max(passed) > MOST_ENTRIES {
            *self = Self::EMPTY;
        }
        Ok(())
    }

    fn push(&mut self, head: u32, behind: u16) {
        let at = usize::from(self.count);
        if let (Some(place), Some(offset)) = (self.heads.get_mut(at), self.behind.get_mut(at)) {
            (*place, *offset, self.count) = (head, behind, self.count + 1);
        }
    }

    /// The position at which a search for `key` in the contents starts; `None` if the heads do not determine it.
    #[inline(always)]
    pub(crate) fn start(&self, contents: &[u8], key: &[u8]) -> Option<Start> {
        let heads = self.heads.get(..usize::from(self.count)).filter(|heads| !heads.is_empty())?;
        let prefix = contents.get(usize::from(self.prefix.0)..)?.get(..usize::from(self.prefix.1))?;
        let Some(rest) = strip_prefix(key, prefix) else {
            return Some(self.start_outside_the_prefix(key.split_at(key.len().min(prefix.len())).0, prefix));
        };
        let head = head_of(rest);
        let before = heads.partition_point(|other| *other < head);
        if heads.get(before + MOST_EQUAL) == Some(&head) {
            return None;
        }
        let Some(at) = before.checked_sub(1) else { return Some(Start::FIRST) };
        // See H2. At the first difference of the heads, the byte of the target is the greater one, so it is not a padding zero of the head. In a
        // block with keys in a wrong order the heads may be in any order.
        let matched = (prefix.len() + (heads[at] ^ head).leading_zeros() as usize / 8).min(key.len());
        Some(Start { offset: usize::from(self.behind[at]), len: MAX_STORED_KEY_LEN, matched })
    }

    /// Like `start`, for a key that does not start with the common prefix.
    #[cold]
    fn start_outside_the_prefix(&self, begin: &[u8], prefix: &[u8]) -> Start {
        if begin < prefix {
            return Start::FIRST;
        }
        let last = usize::from(self.count.saturating_sub(1));
        Start { offset: usize::from(self.behind[last]), len: MAX_STORED_KEY_LEN, matched: shared_len(begin, prefix) }
    }
}

/// The number of shared bytes of the entry at `offset`, its unshared bytes, and its end. Does not decode the rest of the entry.
#[inline(always)]
fn key_at<'a>(parts: &Parts, contents: &'a [u8], offset: usize, len: usize) -> Decoded<(usize, &'a [u8], usize)> {
    if let Some((header, rest)) = parts.header(contents, offset, len) {
        return Ok((header.shared, header.unshared(rest), offset + header.len));
    }
    let entry = parts.long_entry(contents, offset, len)?;
    Ok((entry.shared, entry.unshared, entry.end))
}

/// The head of a key that has the bytes `unshared` after those that it shares with the previous key, whose head is `before`.
#[inline]
fn head_after(before: u32, (shared, unshared): (usize, &[u8]), prefix_len: usize) -> u32 {
    let Some(kept) = shared.checked_sub(prefix_len) else {
        return head_of(unshared.get(prefix_len - shared..).unwrap_or_default());
    };
    // Keeps the bytes of the head that the key shares with the previous one.
    if kept >= HEAD_LEN {
        return before;
    }
    let fresh = u32::MAX >> (8 * kept);
    before & !fresh | head_of(unshared) >> (8 * kept)
}

/// The range in the contents where the first key has the prefix of all keys, up to the maximum stored length. Since keys are sorted, the prefix is
/// the one that the first and the last key share.
fn shared_prefix(parts: &Parts, contents: &[u8]) -> Decoded<Range<usize>> {
    let first = parts.entry(contents, 0, 0)?;
    let mut prefix = first.unshared.split_at(first.unshared.len().min(MOST_PREFIX)).0;
    let at = first.end - first.value.len() - first.unshared.len();
    let (mut offset, mut len) = (parts.restart(contents, parts.restarts - 1)?, 0);
    while offset < parts.entries_end {
        let (shared, unshared, end) = key_at(parts, contents, offset, len)?;
        if shared < prefix.len() {
            let (start, rest) = prefix.split_at(shared);
            prefix = prefix.split_at(start.len() + shared_len(rest, unshared)).0;
        }
        (offset, len) = (end, shared + unshared.len());
    }
    Ok(at..at + prefix.len())
}

#[inline]
fn head_of(rest: &[u8]) -> u32 {
    if let Some(head) = rest.first_chunk() {
        return u32::from_be_bytes(*head);
    }
    let mut head = [0; HEAD_LEN];
    head.split_at_mut(rest.len()).0.copy_from_slice(rest);
    u32::from_be_bytes(head)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::table::block::cursor::BlockBuilder;
    use crate::table::block::lookup::find;
    use crate::types::Kind;

    /// Bytes that produce many keys with equal prefixes, and zeros that look like the padding of heads.
    fn ends() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![0u8, 1, b'a', u8::MAX]), 0..9)
    }

    /// `None` for a tombstone.
    fn value_len() -> impl Strategy<Value = Option<usize>> {
        prop_oneof![20 => Just(None), 20 => (0usize..40).prop_map(Some), 1 => Just(Some(17_000))]
    }

    fn place(block: (&[u8], &KeyHeads), key: &[u8], seqno: u64) -> Option<(usize, usize, bool)> {
        let (contents, heads) = block;
        let found = find(&Parts::of(contents).expect("sound"), contents, heads, (key, seqno), 100).expect("sound");
        found.map(|place| (place.offset, place.entry.shared, place.is_key))
    }

    proptest! {
        #[test]
        fn a_search_with_heads_ends_where_one_without_does(
            prefix in (ends(), prop_oneof![0usize..12, 30usize..60]), spacing in 1usize..80,
            keys in prop::collection::btree_set((ends(), 0u64..4), 1..60), values in prop::collection::vec(value_len(), 60),
            asked in prop::collection::vec((ends(), ends(), 0usize..80), 1..30),
        ) {
            // Catches a start after the key, a shared length that is too large, zeros of a key confused with the padding of a shorter one, and keys
            // less or greater than the common prefix. Long prefixes and values produce entries that do not have the common form.
            let prefix = prefix.0.repeat(prefix.1);
            let mut builder = BlockBuilder::default();
            let keys: BTreeSet<_> = keys.into_iter().map(|(end, age)| ([&prefix[..], &end].concat(), age)).collect();
            for ((key, age), value_len) in keys.iter().zip(&values) {
                match value_len {
                    Some(len) => builder.add(key, 9 - age, Kind::Value, &vec![7; *len]),
                    None => builder.add(key, 9 - age, Kind::Tombstone, b""),
                }
            }
            let contents = builder.finish(<[u8]>::to_vec);
            let heads = KeyHeads::spaced(&contents, spacing);
            let (headed, plain) = ((&contents[..], &heads), (&contents[..], KeyHeads::NONE));
            let asked = asked.into_iter().map(|(end, more, cut)| {
                let start = prefix.split_at(cut.min(prefix.len())).0;
                [if cut < 20 { start } else { &prefix }, &end, &more].concat()
            });
            for key in asked.chain(keys.iter().map(|(key, _)| key.clone())).chain([Vec::new()]) {
                for seqno in [0, 7, 9, 100] {
                    prop_assert_eq!(place(headed, &key, seqno), place(plain, &key, seqno), "{:?} at {}", key, seqno);
                }
            }
        }
    }

    #[test]
    fn heads_are_small_and_lead_to_the_entries() {
        // Catches a cache that keeps fewer blocks than it should, and blocks without heads, whose searches are as slow as before.
        let mut builder = BlockBuilder::default();
        for number in 0..36_u32 {
            builder.add(format!("key of 16b {number:05}").as_bytes(), 600_000, Kind::Value, &[7; 100]);
        }
        let contents = builder.finish(<[u8]>::to_vec);
        let heads = KeyHeads::of(&contents);
        assert!(size_of::<KeyHeads>() * 30 <= contents.len(), "{}", size_of::<KeyHeads>());
        assert!((16..=18).contains(&heads.count), "one for two entries: {heads:?}");
        let start = |key: &[u8]| heads.start(&contents, key).expect("heads that tell");
        assert_eq!(start(b"key of 16b 00000"), Start::FIRST);
        let here = start(b"key of 16b 00017");
        assert_eq!(here.matched, 15);
        assert!((15 * 108..17 * 112).contains(&here.offset), "{here:?}");
        assert_eq!(start(b"before"), Start::FIRST);
        let (behind, last) = (start(b"key of 17"), start(b"key of 16b 00099"));
        assert_eq!((behind.offset, behind.matched, last.offset), (last.offset, 8, last.offset));
    }

    #[test]
    fn blocks_of_which_heads_would_tell_too_little_have_none() {
        // Catches offsets that are truncated, heads that are slower than restarts, and heads of bytes that are not a block.
        let block_of = |value_len: usize| {
            let mut builder = BlockBuilder::default();
            (0..9_u8).for_each(|key| builder.add(&[key], 1, Kind::Value, &vec![7; value_len]));
            builder.finish(<[u8]>::to_vec)
        };
        let counts = [10, 1000, 7000, 8000].map(|value_len| KeyHeads::of(&block_of(value_len)).count);
        assert_eq!(counts, [0, 8, 8, 0]);
        assert_eq!(KeyHeads::of(&[7; 1000]).count, 0);
        let tiny = |entries: u32| {
            let mut builder = BlockBuilder::default();
            (0..entries).for_each(|key| builder.add(&key.to_be_bytes(), 1, Kind::Value, b"8 bytes."));
            KeyHeads::of(&builder.finish(<[u8]>::to_vec)).count
        };
        assert!(tiny(300) > 10, "a dozen entries for each");
        assert_eq!(tiny(4000), 0, "hundreds for each");
    }

    #[test]
    fn a_block_whose_heads_are_alike_is_searched_by_its_restarts() {
        // Catches a search through all entries of a block if all heads are equal.
        let mut builder = BlockBuilder::default();
        for version in 0..200 {
            builder.add(b"one key", 1000 - version, Kind::Value, &[7; 20]);
        }
        let contents = builder.finish(<[u8]>::to_vec);
        let heads = KeyHeads::of(&contents);
        assert!(heads.count > 10);
        assert_eq!(heads.start(&contents, b"one key"), None);
    }
}
