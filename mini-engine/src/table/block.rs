//! Data blocks: sorted entries with shared-prefix compression and restart points.
//!
//! ```text
//! entry    varint shared, varint unshared, varint (seqno * 2 + kind), [varint value length: values only],
//!          the key's unshared bytes, the value
//! block    entries (at least one), offset of each restart u32, number of restarts u32
//! ```
//!
//! `shared` bytes of a key are those of the key before it; at a restart, every 16 entries, it is 0, so that a search
//! can start there. Entries are in entry order, strictly. [`Cursor`] reads bytes whose checksum matched, and trusts
//! them no further: each length is checked, each step moves on, so a block that lies gives an error and not a panic or
//! a loop.

use std::cmp::Ordering;
use std::ops::Range;

use crate::codec::{self, Malformed, Reader};
use crate::types::{Kind, MAX_KEY_LEN, MAX_SEQNO, MAX_VALUE_LEN, SeqNo, Slice, entry_order};

use super::frame::Block;

/// Entries from one restart to the next.
pub(super) const RESTART_INTERVAL: usize = 16;

/// Builds the contents of one block.
#[derive(Debug, Default)]
pub(super) struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    entries: usize,
    last_key: Vec<u8>,
}

impl BlockBuilder {
    /// Adds an entry, which comes after all before it.
    pub(super) fn add(&mut self, key: &[u8], seqno: SeqNo, kind: Kind, value: &[u8]) {
        let shared = if self.entries.is_multiple_of(RESTART_INTERVAL) {
            self.restarts.push(self.bytes.len() as u32);
            0
        } else {
            shared_len(&self.last_key, key)
        };
        let unshared = &key[shared..];
        codec::put_varint(&mut self.bytes, shared as u64);
        codec::put_varint(&mut self.bytes, unshared.len() as u64);
        codec::put_varint(&mut self.bytes, seqno << 1 | kind as u64);
        if kind == Kind::Value {
            codec::put_varint(&mut self.bytes, value.len() as u64);
        }
        self.bytes.extend_from_slice(unshared);
        if kind == Kind::Value {
            self.bytes.extend_from_slice(value);
        }
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(unshared);
        self.entries += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Bytes of the contents so far.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() + 4 * self.restarts.len() + 4
    }

    /// Hands the finished contents to `take` and starts the next block in the same memory.
    pub(super) fn finish<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> T {
        for &restart in &self.restarts {
            codec::put_u32(&mut self.bytes, restart);
        }
        codec::put_u32(&mut self.bytes, self.restarts.len() as u32);
        let taken = take(&self.bytes);
        self.bytes.clear();
        self.restarts.clear();
        self.entries = 0;
        taken
    }
}

/// The most bytes that an entry adds to a block.
pub(super) fn entry_len_bound(key: &[u8], value: &[u8]) -> usize {
    // Three varints of at most 3 + 3 + 9 bytes, one of 5, and a restart.
    key.len() + value.len() + 24
}

fn shared_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// The parts of a block's contents.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// Where the entries end and the restarts begin.
    pub(super) entries_end: usize,
    /// How many restarts there are, at least one.
    pub(super) restarts: usize,
}

impl Parts {
    pub(super) fn of(contents: &[u8]) -> Step<Self> {
        let malformed = |expected| Malformed { offset: contents.len(), expected };
        let Some((body, count)) = contents.split_last_chunk::<4>() else {
            return Err(malformed("a number of restarts"));
        };
        let restarts = u32::from_le_bytes(*count) as usize;
        let table_len = restarts.checked_mul(4).ok_or(malformed("a number of restarts that fits the block"))?;
        let entries_end =
            body.len().checked_sub(table_len).ok_or(malformed("a number of restarts that fits the block"))?;
        if restarts == 0 || entries_end == 0 {
            return Err(malformed("an entry and a restart"));
        }
        Ok(Self { entries_end, restarts })
    }

    /// The offset of the `index`-th restart, which lies within the entries.
    pub(super) fn restart(&self, contents: &[u8], index: usize) -> Step<usize> {
        let at = self.entries_end + 4 * index;
        let bytes = contents.get(at..).and_then(<[u8]>::first_chunk::<4>);
        let offset = bytes.map(|bytes| u32::from_le_bytes(*bytes) as usize);
        let malformed = Malformed { offset: at, expected: "a restart within the entries" };
        offset.filter(|&offset| offset < self.entries_end).ok_or(malformed)
    }

    /// The entry at `offset` and where it ends; the key before it has `last_key_len` bytes.
    pub(super) fn entry<'a>(&self, contents: &'a [u8], offset: usize, last_key_len: usize) -> Step<(Entry<'a>, usize)> {
        let mut reader = Reader::new(contents.get(offset..self.entries_end).unwrap_or_default());
        match decode_entry(&mut reader, last_key_len) {
            Some(entry) => Ok((entry, offset + reader.position())),
            None => Err(Malformed { offset: offset + reader.position(), expected: "an entry" }),
        }
    }
}

/// Walks the entries of one block, in both directions. After an error its position means nothing: drop it or seek.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    block: Block,
    parts: Parts,
    /// The current entry; an empty range when the cursor is invalid.
    entry: Range<usize>,
    key: Vec<u8>,
    seqno: SeqNo,
    kind: Kind,
    value: Range<usize>,
}

pub(super) type Step<T = ()> = Result<T, Malformed>;

impl Cursor {
    /// A cursor over `block`, invalid until it is positioned.
    pub(super) fn new(block: Block) -> Step<Self> {
        let parts = Parts::of(block.contents())?;
        let none = 0..0;
        let (key, seqno, kind) = (Vec::new(), 0, Kind::Tombstone);
        Ok(Self { parts, entry: none.clone(), key, seqno, kind, value: none, block })
    }

    /// Leaves its block for `block`, and becomes invalid. Keeps the memory of its key.
    pub(super) fn enter(&mut self, block: Block) -> Step {
        self.parts = Parts::of(block.contents())?;
        (self.entry, self.block) = (0..0, block);
        Ok(())
    }

    #[inline]
    pub(super) fn valid(&self) -> bool {
        !self.entry.is_empty()
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) fn seqno(&self) -> SeqNo {
        self.seqno
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn value(&self) -> &[u8] {
        self.block.contents().get(self.value.clone()).unwrap_or_default()
    }

    /// The value as a view of the block.
    pub(super) fn value_slice(&self) -> Slice {
        // The range was read within the contents; an invalid cursor's is empty.
        Slice::view(self.block.shared().clone(), self.value.clone()).unwrap_or_else(|| Slice::from(self.value()))
    }

    pub(super) fn seek_to_first(&mut self) -> Step {
        self.jump(0)
    }

    pub(super) fn seek_to_last(&mut self) -> Step {
        let from = self.restart(self.parts.restarts - 1)?;
        self.scan_to_last_before(from, self.parts.entries_end)
    }

    /// Goes to the first entry at or after `(key, seqno)`, or becomes invalid.
    pub(super) fn seek(&mut self, key: &[u8], seqno: SeqNo) -> Step {
        // The last restart whose entry is before the target, or the first restart.
        let (mut low, mut high) = (0, self.parts.restarts);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            self.jump(self.restart(middle)?)?;
            if self.order((key, seqno)) == Ordering::Less { low = middle } else { high = middle }
        }
        self.jump(self.restart(low)?)?;
        while self.valid() && self.order((key, seqno)) == Ordering::Less {
            self.next()?;
        }
        Ok(())
    }

    /// Goes to the last entry at or before `(key, seqno)`, or becomes invalid.
    pub(super) fn seek_for_prev(&mut self, key: &[u8], seqno: SeqNo) -> Step {
        self.seek(key, seqno)?;
        if !self.valid() {
            self.seek_to_last()
        } else if self.order((key, seqno)) == Ordering::Greater {
            self.prev()
        } else {
            Ok(())
        }
    }

    /// Goes to the next entry, or becomes invalid after the last.
    pub(super) fn next(&mut self) -> Step {
        self.read_entry(self.entry.end)
    }

    /// Goes to the entry before, or becomes invalid at the first. Costs a scan from a restart: at most 16 entries.
    pub(super) fn prev(&mut self) -> Step {
        let current = self.entry.start;
        // The last restart before the current entry; none when it is the first.
        let (mut low, mut high) = (0, self.parts.restarts);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.restart(middle)? < current { low = middle + 1 } else { high = middle }
        }
        match low.checked_sub(1) {
            Some(restart) => self.scan_to_last_before(self.restart(restart)?, current),
            None => {
                self.entry = 0..0;
                Ok(())
            }
        }
    }

    /// Where the current entry starts.
    pub(super) fn offset(&self) -> usize {
        self.entry.start
    }

    /// Checks that the restarts are the entries at `starts`, and that those can be read by themselves. The position means
    /// nothing afterwards.
    pub(super) fn check_restarts(&mut self, starts: &[usize]) -> Step {
        let table = self.parts.entries_end;
        let misplaced = |index: usize| Malformed {
            offset: table + 4 * index,
            expected: "a restart at every 16th entry and no other",
        };
        if self.parts.restarts != starts.len() {
            return Err(misplaced(self.parts.restarts));
        }
        for (index, &start) in starts.iter().enumerate() {
            if self.restart(index)? != start {
                return Err(misplaced(index));
            }
            self.jump(start)?;
        }
        Ok(())
    }

    fn order(&self, target: (&[u8], SeqNo)) -> Ordering {
        entry_order((&self.key, self.seqno), target)
    }

    fn restart(&self, index: usize) -> Step<usize> {
        self.parts.restart(self.block.contents(), index)
    }

    /// Goes to the entry at the restart `offset`.
    fn jump(&mut self, offset: usize) -> Step {
        self.key.clear();
        self.read_entry(offset)
    }

    /// Goes to the last entry that starts at or after the restart `from` and before `end`.
    fn scan_to_last_before(&mut self, from: usize, end: usize) -> Step {
        self.jump(from)?;
        while self.valid() && self.entry.end < end {
            self.next()?;
        }
        Ok(())
    }

    /// Decodes the entry at `offset`, whose shared bytes are those of the key that is here; invalid at the end.
    fn read_entry(&mut self, offset: usize) -> Step {
        self.entry = 0..0;
        if offset >= self.parts.entries_end {
            return Ok(());
        }
        let (read, end) = self.parts.entry(self.block.contents(), offset, self.key.len())?;
        self.key.truncate(read.shared);
        self.key.extend_from_slice(read.unshared);
        self.seqno = read.seqno;
        self.kind = read.kind;
        self.value = end - read.value.len()..end;
        self.entry = offset..end;
        Ok(())
    }
}

/// An entry as it is stored in the block.
pub(super) struct Entry<'a> {
    /// Bytes of the key before that this one starts with.
    pub(super) shared: usize,
    /// The rest of the key.
    pub(super) unshared: &'a [u8],
    pub(super) seqno: SeqNo,
    pub(super) kind: Kind,
    pub(super) value: &'a [u8],
}

fn decode_entry<'a>(reader: &mut Reader<'a>, last_key_len: usize) -> Option<Entry<'a>> {
    let shared = reader.varint32()? as usize;
    let unshared_len = reader.varint32()? as usize;
    let tag = reader.varint()?;
    let kind = Kind::try_from((tag & 1) as u8).ok()?;
    let value_len = if kind == Kind::Value { reader.varint32()? as usize } else { 0 };
    let key_len = shared.checked_add(unshared_len)?;
    let seqno = tag >> 1;
    if shared > last_key_len || key_len > MAX_KEY_LEN || value_len > MAX_VALUE_LEN || seqno > MAX_SEQNO {
        return None;
    }
    let unshared = reader.bytes(unshared_len)?;
    Some(Entry { shared, unshared, seqno, kind, value: reader.bytes(value_len)? })
}

#[cfg(test)]
mod tests;
