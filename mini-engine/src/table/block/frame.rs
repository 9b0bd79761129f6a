//! The frame of a block in the file: its contents, which may be compressed, and a trailer.
//!
//! ```text
//! block    stored bytes, compression u8, contents length u32, xxh3 of all bytes before u64
//! ```
//!
//! The compression byte is 0 for none, 1 for lz4 (block format), 2 for zstd (one frame). The checksum is seeded with the table's number and the
//! block's offset. Memory for the contents is allocated only after the checksum has matched, and at most as much as the compression can produce from
//! the stored bytes, so a forged length cannot request more.

use std::borrow::Cow;
use std::hint::black_box;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::cache::clock::Evict;
use crate::codec;
use crate::columns::{Columns, Decoded, KeySamples};
use crate::error::{Error, Result};
use crate::fs::File;
use crate::options::Compression;
use crate::types::{MappedBytes, SeqNo, Slice};

use crate::table::block::lookup::{Found, lookup};
use crate::table::format::Handle;

/// The number of bytes after the stored contents.
pub(crate) const TRAILER_LEN: usize = 13;
const CHECKSUM_LEN: usize = 8;

/// The maximum length of a block's contents: a little more than the longest entry, and within `u32`.
pub(crate) const MAX_CONTENTS_LEN: usize = u32::MAX as usize;

const RAW: u8 = 0;
const LZ4: u8 = 1;
const ZSTD: u8 = 2;

/// A block in its own memory: the contents, followed by room for the trailer, so that an uncompressed block is used as it was read.
#[derive(Clone, Debug)]
pub(crate) struct OwnBlock {
    pub(crate) bytes: Arc<[u8]>,
    /// The columns of a data block that was checked, beside the pointer; otherwise empty.
    columns: Columns,
}

/// A data block in the cache, with samples of its keys beside the pointer: a search need not wait for the block.
#[derive(Debug)]
pub(crate) struct SampledBlock {
    pub(crate) block: OwnBlock,
    samples: KeySamples,
}

impl Evict for SampledBlock {}

impl SampledBlock {
    pub(crate) fn new(block: OwnBlock) -> Self {
        let samples = block.columns().map(|columns| KeySamples::of(&columns, block.contents()));
        Self { samples: samples.unwrap_or_default(), block }
    }

    /// Like [`Block::find`].
    #[inline(always)]
    pub(crate) fn find(&self, key: &[u8], seqno: SeqNo) -> Decoded<Option<Found>> {
        Ok(lookup((&self.block.columns()?, &self.samples), self.block.contents(), key, seqno))
    }

    pub(crate) fn memory_len(&self) -> usize {
        self.block.bytes.len() + size_of::<Self>()
    }
}

impl OwnBlock {
    fn new(bytes: Arc<[u8]>) -> Self {
        Self { bytes, columns: Columns::default() }
    }

    /// Reads the cache lines of the reference count and of the block's end, which has its footer. Both are cache misses, and no load can be
    /// executed before an earlier atomic increment, so both are read before the increment, in parallel. Safe code has no other prefetch.
    #[inline]
    pub(crate) fn prefetch(&self) {
        black_box((self.bytes.first().copied(), self.bytes.last().copied()));
    }

    #[inline]
    pub(crate) fn contents(&self) -> &[u8] {
        contents_of(&self.bytes)
    }

    /// The columns of a data block.
    #[inline]
    pub(crate) fn columns(&self) -> Decoded<Columns> {
        if self.columns.len() > 0 { Ok(self.columns) } else { Columns::of(self.contents()) }
    }
}

/// A block in memory.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    Own(OwnBlock),
    /// The position of the block in a mapped file.
    Mapped {
        file: Arc<MappedBytes>,
        place: Range<usize>,
    },
}

impl Block {
    /// A block that was not read from a file.
    #[cfg(test)]
    pub(crate) fn from_contents(contents: &[u8]) -> Self {
        Self::Own(OwnBlock::new(contents.iter().copied().chain([0; TRAILER_LEN]).collect()))
    }

    /// The bytes of memory that the block takes; 0 in a mapped file.
    pub(crate) fn memory_len(&self) -> usize {
        if let Self::Own(block) = self { block.bytes.len() + size_of::<OwnBlock>() } else { 0 }
    }

    /// A part of the contents, or `None` if the range does not lie within the block.
    #[inline]
    pub(crate) fn slice(&self, range: Range<usize>) -> Option<Slice> {
        match self {
            Self::Own(block) => {
                (range.end <= block.contents().len()).then(|| Slice::view(&block.bytes, range)).flatten()
            }
            Self::Mapped { file, place } => {
                let (start, end) = (place.start.checked_add(range.start)?, place.start.checked_add(range.end)?);
                (end <= place.end).then(|| Slice::mapped(file, start..end)).flatten()
            }
        }
    }

    /// The newest version of `key` with a number <= `seqno`, in a data block.
    pub(crate) fn find(&self, key: &[u8], seqno: SeqNo) -> Decoded<Option<Found>> {
        Ok(lookup((&self.columns()?, &KeySamples::default()), self.contents(), key, seqno))
    }

    /// The columns of a data block.
    #[inline]
    pub(crate) fn columns(&self) -> Decoded<Columns> {
        match self {
            Self::Own(block) => block.columns(),
            Self::Mapped { .. } => Columns::of(self.contents()),
        }
    }

    #[inline]
    pub(crate) fn contents(&self) -> &[u8] {
        match self {
            Self::Own(block) => contents_of(&block.bytes),
            Self::Mapped { file, place } => contents_of(file.get(place.clone()).unwrap_or_default()),
        }
    }
}

/// The contents of a block, without the room for the trailer that follows them.
#[inline]
pub(crate) fn contents_of(block: &[u8]) -> &[u8] {
    block.split_at(block.len().saturating_sub(TRAILER_LEN)).0
}

/// Whether the block with these bytes, including the trailer, is marked as uncompressed. This does not verify its checksum.
#[inline]
pub(crate) fn is_raw(bytes: &[u8]) -> bool {
    bytes.split_last_chunk::<TRAILER_LEN>().is_some_and(|(_, trailer)| trailer[0] == RAW)
}

/// Appends the block with these contents, which is stored at `offset` of table `number`.
pub(crate) fn encode(out: &mut Vec<u8>, contents: &[u8], compression: Compression, number: u64, offset: u64) {
    let (start, stored) = (out.len(), Stored::of(contents, compression));
    out.extend_from_slice(&stored.bytes);
    out.push(stored.tag);
    codec::put_u32(out, contents.len() as u32);
    let checksum = codec::checksum(&out[start..], codec::seed([number, offset]));
    codec::put_u64(out, checksum);
}

/// The bytes of a block in the file, without the trailer.
pub(crate) struct Stored<'a> {
    tag: u8,
    contents_len: u32,
    pub(crate) bytes: Cow<'a, [u8]>,
}

impl<'a> Stored<'a> {
    pub(crate) fn of(contents: &'a [u8], compression: Compression) -> Self {
        let (tag, bytes) = match compressed(contents, compression) {
            Some((tag, bytes)) => (tag, Cow::Owned(bytes)),
            None => (RAW, Cow::Borrowed(contents)),
        };
        Self { tag, contents_len: contents.len() as u32, bytes }
    }

    /// The trailer, which [`encode`] appends to the stored bytes.
    pub(crate) fn trailer(&self, number: u64, offset: u64) -> Vec<u8> {
        let mut trailer = vec![self.tag];
        codec::put_u32(&mut trailer, self.contents_len);
        let checksum = codec::checksum_of([&self.bytes, &trailer], codec::seed([number, offset]));
        codec::put_u64(&mut trailer, checksum);
        trailer
    }
}

/// The compressed contents, if compression is enabled and saves at least 12 %.
fn compressed(contents: &[u8], compression: Compression) -> Option<(u8, Vec<u8>)> {
    let (tag, bytes) = match compression {
        Compression::None => return None,
        Compression::Lz4 => (LZ4, lz4_compress(contents)?),
        // If compression fails, the block is stored uncompressed.
        Compression::Zstd { level } => (ZSTD, codec::zstd_compress(contents, level).ok()?),
    };
    codec::is_worth_compressing(contents.len(), bytes.len()).then_some((tag, bytes))
}

/// Like lz4_flex's own function, but without its copy into memory of the exact size.
fn lz4_compress(contents: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = vec![0; lz4_flex::block::get_maximum_output_size(contents.len())];
    let len = lz4_flex::block::compress_into(contents, &mut bytes).ok()?;
    bytes.truncate(len);
    Some(bytes)
}

/// The position of a block, for reading it and for error messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockLocation<'a> {
    pub(crate) path: &'a Path,
    pub(crate) number: u64,
    pub(crate) handle: Handle,
}

impl BlockLocation<'_> {
    pub(crate) fn corrupt(&self, what: impl Into<String>) -> Error {
        Error::corruption(self.path, self.handle.offset, what)
    }

    /// Reads the block, checks it and decompresses it. The code that decoded the handle has checked that the block lies within the file.
    pub(crate) fn read(&self, file: &dyn File) -> Result<OwnBlock> {
        let len = usize::try_from(self.handle.len).map_err(|_| self.corrupt("block length: too long for memory"))?;
        if len < TRAILER_LEN {
            return Err(self.corrupt(format!("block length: expected at least {TRAILER_LEN}, found {len}")));
        }
        let mut bytes = zeroed(len);
        let read = file.read_exact_at(Arc::make_mut(&mut bytes), self.handle.offset);
        read.map_err(Error::io("read", self.path))?;
        Ok(self.decompressed(&bytes)?.unwrap_or_else(|| OwnBlock::new(bytes)))
    }

    /// Checks that `block` is a data block, and keeps its columns.
    pub(crate) fn data(&self, mut block: Block) -> Result<Block> {
        let contents = block.contents();
        let checked = Columns::of(contents).and_then(|columns| columns.check(contents).map(|()| columns));
        let found = checked.map_err(|malformed| malformed.in_file(self.path, self.handle.offset))?;
        if let Block::Own(block) = &mut block {
            block.columns = found;
        }
        Ok(block)
    }

    /// Verifies the block's bytes, including the trailer, and decompresses or copies them.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Result<Block> {
        Ok(Block::Own(self.decompressed(bytes)?.unwrap_or_else(|| OwnBlock::new(Arc::from(bytes)))))
    }

    /// Verifies the block in a mapped file, and decompresses it if it is compressed.
    pub(crate) fn read_mapped(&self, file: &Arc<MappedBytes>) -> Result<Block> {
        let place = self.handle.within(file.len());
        let place = place.ok_or_else(|| self.corrupt("block: expected one within the file"))?;
        let block = self.decompressed(file.get(place.clone()).unwrap_or_default())?;
        Ok(block.map_or_else(|| Block::Mapped { file: Arc::clone(file), place }, Block::Own))
    }

    /// Verifies the block's bytes, including the trailer, and decompresses them; `None` for an uncompressed block, whose bytes are used directly.
    fn decompressed(&self, bytes: &[u8]) -> Result<Option<OwnBlock>> {
        let Some((stored, [tag, a, b, c, d, stored_sum @ ..])) = bytes.split_last_chunk::<TRAILER_LEN>() else {
            return Err(self.corrupt("block trailer: cut off"));
        };
        let found = u64::from_le_bytes(*stored_sum);
        let summed = bytes.split_at(bytes.len() - CHECKSUM_LEN).0;
        let expected = codec::checksum(summed, codec::seed([self.number, self.handle.offset]));
        if found != expected {
            return Err(self.corrupt(format!("block checksum: expected {expected:016x}, found {found:016x}")));
        }
        let (tag, len) = (*tag, u32::from_le_bytes([*a, *b, *c, *d]) as usize);
        if tag == RAW {
            if len != stored.len() {
                return Err(self.corrupt(format!("raw block length: expected {}, found {len}", stored.len())));
            }
            return Ok(None);
        }
        self.decompress(tag, stored, len).map(Some)
    }

    fn decompress(&self, tag: u8, stored: &[u8], len: usize) -> Result<OwnBlock> {
        // The maximum output of the format for this number of bytes: one byte of lz4 stands for up to 255 bytes, four of zstd for up to 128 KiB.
        let expansion = match tag {
            LZ4 => 255,
            ZSTD if codec::HAS_ZSTD => 1 << 15,
            // The checksum is right, so a newer version wrote this intentionally.
            newer => {
                let what = if newer == ZSTD { codec::ZSTD } else { "block compression" };
                let supported = u32::from(if codec::HAS_ZSTD { ZSTD } else { LZ4 });
                return Err(Error::Unsupported { file: self.path.to_owned(), what, found: newer.into(), supported });
            }
        };
        let most = (stored.len() as u64 + 1).saturating_mul(expansion);
        if len as u64 > most {
            return Err(self.corrupt(format!("decompressed length: expected at most {most}, found {len}")));
        }
        let mut block = zeroed(len + TRAILER_LEN);
        let contents = Arc::make_mut(&mut block).split_at_mut(len).0;
        let decompressed = if tag == LZ4 {
            lz4_flex::block::decompress_into(stored, contents).map_err(|error| error.to_string())
        } else {
            codec::zstd_decompress(stored, contents).map_err(|error| error.to_string())
        };
        match decompressed {
            Ok(found) if found == len => Ok(OwnBlock::new(block)),
            Ok(found) => Err(self.corrupt(format!("decompressed length: expected {len}, found {found}"))),
            Err(error) => Err(self.corrupt(format!("block does not decompress: {error}"))),
        }
    }
}

fn zeroed(len: usize) -> Arc<[u8]> {
    std::iter::repeat_n(0, len).collect()
}
