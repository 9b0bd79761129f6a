//! Partitions: the filter and the fence pointers of a group of neighbouring data blocks, in one block.
//!
//! So one block determines whether a key may be in the group, and in which of its data blocks: without cached blocks a point read reads a partition
//! and a data block. RocksDB calls these partitioned indexes and filters, and stores them in separate blocks.
//!
//! ```text
//! partition   filter (perhaps none), fences of the data blocks, offset of the first data block u64, length of the filter u32
//! ```
//!
//! G1: the filter contains every key with a version in the group. The versions of a key may continue in the next group; then the key is in both
//! filters, and a read searches the one partition that can contain the wanted version. `verify` checks this.
//! G2: the last fence of a partition is also its fence in the root, and the groups are adjacent without gaps. The former is checked when a partition
//! is read, the latter by `verify`.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::codec::{self, Malformed};

use crate::table::block::Block;
use crate::table::index::fences::{FencePlace, Fences, Index, IndexBuilder};
use crate::table::index::filter::{self, Filter};

const TAIL_LEN: usize = 12;
/// The maximum number of bytes of the fences of a partition, if their keys stop sharing a prefix, and one fence.
const MOST_FENCES_LEN: usize = 1 << 20;
const BITS: usize = u64::BITS as usize;

/// Builds the contents of partitions, one after the other.
#[derive(Debug)]
pub(crate) struct PartitionBuilder {
    /// The fence pointers of the data blocks in the group.
    pub(crate) fences: IndexBuilder,
    /// The hashes of the keys in the group, without duplicates.
    hashes: Vec<u64>,
    bits_per_key: f64,
    start: u64,
}

impl PartitionBuilder {
    /// Partitions whose filters have `bits_per_key`.
    pub(crate) fn new(bits_per_key: f64) -> Self {
        Self { fences: IndexBuilder::default(), hashes: Vec::new(), bits_per_key, start: 0 }
    }

    /// Adds a key to the filter; it must be new or be in the previous partition already.
    pub(crate) fn add_key(&mut self, key: &[u8], is_new: bool) {
        if self.bits_per_key > 0.0 && (is_new || self.hashes.is_empty()) {
            self.hashes.push(codec::key_hash(key));
        }
    }

    /// Whether one more data block, if it needs the average bytes of those so far, would make the contents longer than `bytes`. The prefix that the
    /// fences share is not counted: otherwise a partition of long keys would have only one block, and the root would have the fences of all blocks.
    pub(crate) fn is_full(&self, bytes: usize) -> bool {
        let filter_len = filter::encoded_len(self.hashes.len(), self.bits_per_key);
        let (len, blocks) = (filter_len + self.fences.len() + TAIL_LEN, self.fences.count());
        blocks > 0 && (len + len / blocks > bytes || self.fences.whole_len() > bytes.max(MOST_FENCES_LEN))
    }

    /// The contents of the partition; the group of the next one begins at `next_start`.
    pub(crate) fn finish(&mut self, next_start: u64) -> Vec<u8> {
        let filter = Filter::build(&self.hashes, self.bits_per_key);
        let contents = encode(filter, &mut self.fences, self.start);
        self.hashes.clear();
        self.start = next_start;
        contents
    }
}

/// The contents of a partition with this filter, which may be empty; its first data block is at `start`.
pub(crate) fn encode(filter: Vec<u8>, fences: &mut IndexBuilder, start: u64) -> Vec<u8> {
    // The maximum block length also limits the filter's lines.
    let filter_len = filter.len() as u32;
    let mut out = filter;
    fences.finish(&mut out);
    codec::put_u64(&mut out, start);
    codec::put_u32(&mut out, filter_len);
    out
}

/// The last fence in the contents of a partition, which is the partition's fence in the root.
pub(crate) fn last_fence(contents: &[u8]) -> Option<FencePlace<'_>> {
    let fences = Fences::of(Parts::of(contents).ok()?.fences).ok()?;
    fences.last().map(|fence| fence.place())
}

struct Parts<'a> {
    filter: &'a [u8],
    fences: &'a [u8],
    start: u64,
}

impl<'a> Parts<'a> {
    fn of(contents: &'a [u8]) -> Result<Self, Malformed> {
        let malformed = |expected| Malformed { offset: contents.len(), expected };
        let (body, tail) = contents.split_last_chunk::<TAIL_LEN>().ok_or(malformed("the tail of a partition"))?;
        let [start @ .., a, b, c, d] = *tail;
        let filter_len = u32::from_le_bytes([a, b, c, d]) as usize;
        let parts = body.split_at_checked(filter_len).ok_or(malformed("a filter that fits the partition"))?;
        Ok(Self { filter: parts.0, fences: parts.1, start: u64::from_le_bytes(start) })
    }
}

/// A partition in memory.
#[derive(Debug)]
pub(crate) struct Partition {
    /// The fence pointers of the group's data blocks, and the block that contains them and the filter.
    pub(crate) index: Index,
    /// The length of the filter in bytes, and the number of its probes; `None` if the table has no filter.
    filter: Option<(usize, usize)>,
    /// A bit for each data block, set once the block in the mapped file was checked.
    checked: Box<[AtomicU64]>,
}

impl Partition {
    /// Decodes the partition in `block`. Its group must end within the data blocks, which end at `data_end`. If `fence` is given, the last fence of
    /// the partition must be equal to it (G2).
    pub(crate) fn decode(block: Block, data_end: u64, fence: Option<FencePlace<'_>>) -> Result<Self, Malformed> {
        let Parts { filter, fences, start } = Parts::of(block.contents())?;
        let (filter_len, end) = (filter.len(), filter.len() + fences.len());
        let malformed = |expected| Malformed { offset: filter_len, expected };
        let filter = match filter {
            [] => None,
            _ => Some((filter_len, Filter::decode(filter).map_err(malformed)?.probes())),
        };
        let index = Index::within(block, filter_len..end, start)?;
        if index.end() > data_end {
            return Err(malformed("a group within the data blocks"));
        }
        if fence.is_some() && fence != index.last() {
            return Err(malformed("the fence that the root has for the partition"));
        }
        let words = index.len().div_ceil(BITS);
        Ok(Self { filter, checked: (0..words).map(|_| AtomicU64::new(0)).collect(), index })
    }

    /// Whether data block `at` was checked.
    #[inline]
    pub(crate) fn is_checked(&self, at: usize) -> bool {
        // Relaxed: the bytes of a table never change.
        self.checked.get(at / BITS).is_some_and(|word| word.load(Ordering::Relaxed) >> (at % BITS) & 1 == 1)
    }

    /// Records that data block `at` was checked.
    pub(crate) fn set_checked(&self, at: usize) {
        if let Some(word) = self.checked.get(at / BITS) {
            word.fetch_or(1 << (at % BITS), Ordering::Relaxed);
        }
    }

    /// The memory of the partition in bytes, without the slots of its data blocks.
    pub(crate) fn memory_len(&self) -> usize {
        size_of::<Self>() + self.index.memory_len() + size_of_val(&*self.checked)
    }

    /// The filter; `None` if the table has none.
    #[inline]
    pub(crate) fn filter(&self) -> Option<Filter<'_>> {
        let (len, probes) = self.filter?;
        Some(Filter::of(self.index.block.contents().get(..len)?, probes))
    }

    /// The length of the filter in bytes; 0 if the table has none.
    pub(crate) fn filter_len(&self) -> usize {
        self.filter.map_or(0, |(len, _)| len)
    }
}
