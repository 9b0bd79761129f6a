//! Tables of format version 1: one filter and one index for the whole table, which are read when it is opened and stay in memory.
//!
//! ```text
//! file     data blocks, filter (perhaps none), index, properties, footer
//! index    number of fences u32; for each: varint key length, key, varint seqno, varint block length
//! ```
//!
//! A table of version 1 is a table of one partition. Its filter has the same form today; its index is written anew, so that nothing else
//! knows of this version. Merges replace such tables.

use super::filter::Filter;
use super::frame::{Block, MAX_CONTENTS_LEN, TRAILER_LEN};
use super::index::{Index, IndexBuilder};
use super::partition::{self, Partition};
use crate::codec::{Malformed, Reader};
use crate::types::{MAX_KEY_LEN, MAX_SEQNO};

/// Checks the contents of a filter; none is sound too.
pub(super) fn check_filter(contents: &[u8]) -> Result<(), Malformed> {
    if contents.is_empty() {
        return Ok(());
    }
    Filter::decode(contents).map(drop).map_err(|expected| Malformed { offset: contents.len(), expected })
}

/// The root and the one partition of a table whose data blocks take `data_len` bytes; `filter` has been checked and may be
/// empty.
pub(super) fn convert(filter: &[u8], index: &[u8], data_len: u64) -> Result<(Index, Partition), Malformed> {
    let mut fences = convert_fences(index, data_len)?;
    if filter.len() + fences.len() > MAX_CONTENTS_LEN - TRAILER_LEN {
        return Err(Malformed { offset: 0, expected: "an index of less than 4 GiB" });
    }
    let block = Block::from_contents(&partition::encode(filter.to_vec(), &mut fences, 0));
    let partition = Partition::decode(block, data_len, None)?;
    if partition.end() != data_len {
        return Err(Malformed { offset: index.len(), expected: "fences that cover the data blocks" });
    }
    let mut root = IndexBuilder::default();
    if let Some(last) = partition.len().checked_sub(1).and_then(|last| partition.fence(last)) {
        root.push_fence(last, TRAILER_LEN as u64);
    }
    let mut contents = Vec::new();
    root.finish(&mut contents);
    let root = Index::decode(Block::from_contents(&contents), 0..TRAILER_LEN as u64)?;
    Ok((root, partition))
}

fn convert_fences(index: &[u8], data_len: u64) -> Result<IndexBuilder, Malformed> {
    let mut reader = Reader::new(index);
    let count = reader.u32().ok_or(reader.malformed("a number of fences"))?;
    let mut fences = IndexBuilder::default();
    let mut left = data_len;
    for _ in 0..count {
        let fence = (|| {
            let key = reader.prefixed(MAX_KEY_LEN)?;
            Some((key, reader.varint().filter(|&seqno| seqno <= MAX_SEQNO)?, reader.varint()?))
        })();
        let (key, seqno, len) = fence.ok_or(reader.malformed("a fence"))?;
        left = left.checked_sub(len).ok_or(reader.malformed("a block within the data blocks"))?;
        fences.push_fence((key, seqno), len);
    }
    if !reader.is_empty() {
        return Err(reader.malformed("the end of the fences"));
    }
    Ok(fences)
}
