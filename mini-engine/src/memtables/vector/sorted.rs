//! [`UnsortedEntries`], in the order of arrival, and [`Sorted`], in key order.
//!
//! An entry is the position of its key and its value in a chunk of bytes that many entries share. A comparison of two keys would fetch both from
//! memory, so each sorted entry is stored with a *head*: the eight bytes of the key after the prefix that all keys share, padded with zeros. If two
//! heads differ, the smaller one belongs to the smaller key. If they are equal, the keys are compared.

use std::cmp::Ordering;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

use crate::codec;
use crate::types::{Kind, MAX_STORED_KEY_LEN, SeqNo, Slice, entry_order};

/// The memory of an entry in bytes, without its key and value.
pub(super) const ENTRY_BYTES: usize = size_of::<VectorEntry>() + size_of::<u64>();

/// The number of bytes that the processor fetches from memory at once.
const CACHE_LINE: usize = 64;

/// An entry: the position of its bytes. The value directly follows the key.
#[derive(Clone, Copy, Debug)]
pub(super) struct VectorEntry {
    /// Like `chunk`, set when the entry is added to the unsorted entries.
    seqno: SeqNo,
    chunk: u32,
    key: u32,
    value_len: u32,
    /// The length of the entry's key, lowest byte first: with three bytes the whole entry has 24.
    key_len: [u8; 3],
    kind: Kind,
}

/// Entries in the order of arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct UnsortedEntries {
    entries: Vec<VectorEntry>,
    chunks: Vec<Arc<[u8]>>,
}

impl UnsortedEntries {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds entries whose chunk the next call of [`end_chunk`](Self::end_chunk) adds; the first one gets sequence number `first`.
    pub(super) fn extend(&mut self, entries: impl IntoIterator<Item = VectorEntry>, first: SeqNo) {
        let chunk = self.chunks.len() as u32;
        let entries = entries.into_iter().zip(first..);
        self.entries.extend(entries.map(|(entry, seqno)| VectorEntry { seqno, chunk, ..entry }));
    }

    /// Adds the chunk of the entries that were added since the last call.
    pub(super) fn end_chunk(&mut self, bytes: Arc<[u8]>) {
        self.chunks.push(bytes);
    }

    /// The newest version of `key` with a number <= `seqno`; examines all entries.
    pub(super) fn find(&self, key: &[u8], seqno: SeqNo) -> Option<(SeqNo, Kind, &[u8])> {
        let is_version = |entry: &&VectorEntry| entry.seqno <= seqno && entry.key_in(&self.chunks) == key;
        let newest = self.entries.iter().filter(is_version).max_by_key(|entry| entry.seqno)?;
        Some((newest.seqno, newest.kind, newest.value_in(&self.chunks)))
    }
}

impl VectorEntry {
    /// The entry whose bytes in its chunk begin at `key` and end at `end`.
    pub(super) fn new(key: u32, key_len: u32, end: u32, kind: Kind) -> Self {
        const { assert!(size_of::<Self>() == 24 && MAX_STORED_KEY_LEN < 1 << 24) };
        let [low, middle, high, _] = key_len.to_le_bytes();
        Self { seqno: 0, chunk: 0, key, value_len: end - key - key_len, key_len: [low, middle, high], kind }
    }

    fn key_len(&self) -> usize {
        let [low, middle, high] = self.key_len;
        u32::from_le_bytes([low, middle, high, 0]) as usize
    }

    fn bytes_in<'a>(&self, chunks: &'a [Arc<[u8]>], range: Range<usize>) -> &'a [u8] {
        chunks.get(self.chunk as usize).and_then(|chunk| chunk.get(range)).unwrap_or_default()
    }

    fn key_in<'a>(&self, chunks: &'a [Arc<[u8]>]) -> &'a [u8] {
        let start = self.key as usize;
        self.bytes_in(chunks, start..start + self.key_len())
    }

    fn value_range(&self) -> Range<usize> {
        let start = self.key as usize + self.key_len();
        start..start + self.value_len as usize
    }

    fn value_in<'a>(&self, chunks: &'a [Arc<[u8]>]) -> &'a [u8] {
        self.bytes_in(chunks, self.value_range())
    }
}

/// Entries sorted by key ascending, and within a key by number descending.
#[derive(Debug)]
pub(super) struct Sorted {
    /// The number of leading bytes that all keys share.
    shared: usize,
    heads: Box<[u64]>,
    entries: Box<[VectorEntry]>,
    chunks: Vec<Arc<[u8]>>,
}

impl Sorted {
    /// Sorts the entries. O(n log n), or O(n) if they are already in order.
    pub(super) fn new(unsorted: UnsortedEntries) -> Sorted {
        let UnsortedEntries { entries, chunks } = unsorted;
        let shared = shared_prefix(&entries, &chunks);
        let place = |(entry, at): (&VectorEntry, u32)| (head(entry.key_in(&chunks), shared), at);
        let mut order: Vec<(u64, u32)> = entries.iter().zip(0..).map(place).collect();
        let entry = |at: u32| &entries[at as usize];
        order.sort_unstable_by(|&(a_head, a), &(b_head, b)| {
            let (a, b) = (entry(a), entry(b));
            a_head.cmp(&b_head).then_with(|| entry_order((a.key_in(&chunks), a.seqno), (b.key_in(&chunks), b.seqno)))
        });
        let heads = order.iter().map(|&(head, _)| head).collect();
        let entries = order.iter().map(|&(_, at)| *entry(at)).collect();
        Sorted { shared, heads, entries, chunks }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn key(&self, at: usize) -> &[u8] {
        self.entries.get(at).map_or(&[], |entry| entry.key_in(&self.chunks))
    }

    pub(super) fn seqno(&self, at: usize) -> SeqNo {
        self.entries.get(at).map_or(0, |entry| entry.seqno)
    }

    pub(super) fn kind(&self, at: usize) -> Kind {
        self.entries.get(at).map_or(Kind::Tombstone, |entry| entry.kind)
    }

    pub(super) fn value(&self, at: usize) -> &[u8] {
        self.entries.get(at).map_or(&[], |entry| entry.value_in(&self.chunks))
    }

    pub(super) fn value_slice(&self, at: usize) -> Slice {
        let shared = |entry: &VectorEntry| {
            let chunk = self.chunks.get(entry.chunk as usize)?;
            Slice::view(chunk, entry.value_range())
        };
        self.entries.get(at).and_then(shared).unwrap_or_default()
    }

    /// Whether the previous entry has the same key.
    pub(super) fn repeats(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else { return false };
        self.heads.get(before) == self.heads.get(at) && self.key(before) == self.key(at)
    }

    /// Reads two bytes of each of these entries, which are needed soon. No read depends on another, so the processor fetches the entries in parallel;
    /// otherwise a scan would wait for each entry in turn.
    pub(super) fn fetch(&self, range: Range<usize>) {
        let end = range.end.min(self.len());
        let read = |entry: &VectorEntry| {
            let chunk = self.chunks.get(entry.chunk as usize)?;
            let last = entry.value_range().end.saturating_sub(1).min(entry.key as usize + CACHE_LINE);
            Some(chunk.get(entry.key as usize)? ^ chunk.get(last)?)
        };
        let entries = self.entries.get(range.start..end).unwrap_or_default();
        black_box(entries.iter().filter_map(read).fold(0, |all, read| all ^ read));
    }

    /// The newest version of `key` with a number <= `seqno`.
    pub(super) fn find(&self, key: &[u8], seqno: SeqNo) -> Option<(SeqNo, Kind, &[u8])> {
        let at = self.count(key, seqno, |order| order == Ordering::Less);
        (at < self.len() && self.key(at) == key).then(|| (self.seqno(at), self.kind(at), self.value(at)))
    }

    /// The number of entries for which `passes` accepts the comparison with `(key, seqno)`; these must be the first entries, up to some index.
    pub(super) fn count(&self, key: &[u8], seqno: SeqNo, passes: impl Fn(Ordering) -> bool) -> usize {
        let equal = self.equal_heads(key);
        let order = |entry: &VectorEntry| entry_order((entry.key_in(&self.chunks), entry.seqno), (key, seqno));
        let candidates = self.entries.get(equal.clone()).unwrap_or_default();
        equal.start + candidates.partition_point(|entry| passes(order(entry)))
    }

    /// The entries with the head of `key`: all entries before them are less, all entries after them greater.
    fn equal_heads(&self, key: &[u8]) -> Range<usize> {
        let shared = self.key(0).get(..self.shared).unwrap_or_default();
        match key.get(..self.shared).unwrap_or(key).cmp(shared) {
            Ordering::Less => 0..0,
            Ordering::Greater => self.len()..self.len(),
            Ordering::Equal => {
                let head = head(key, self.shared);
                let start = self.heads.partition_point(|&other| other < head);
                start..self.heads.partition_point(|&other| other <= head)
            }
        }
    }
}

/// The number of leading bytes that all keys share.
fn shared_prefix(entries: &[VectorEntry], chunks: &[Arc<[u8]>]) -> usize {
    let Some(first) = entries.first().map(|entry| entry.key_in(chunks)) else { return 0 };
    let mut shared = first;
    for entry in entries {
        let key = entry.key_in(chunks);
        if !key.starts_with(shared) {
            let len = codec::shared_len(shared, key);
            shared = shared.split_at(len).0;
        }
    }
    shared.len()
}

/// The eight bytes of `key` after the first `shared`, as a number with the same order.
fn head(key: &[u8], shared: usize) -> u64 {
    codec::head(key.get(shared..).unwrap_or_default())
}
