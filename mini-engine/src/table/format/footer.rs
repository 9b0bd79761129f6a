//! File names, block handles and the footer of a table.
//!
//! ```text
//! file     data blocks, partitions, root, range tombstones if there are any, properties, footer
//! footer   partitions offset u64, their length u64, root offset u64, root length u64,
//!          properties offset u64, properties length u64, table number u64, version u32, zero u32,
//!          xxh3 of the 64 bytes before u64, magic [8]
//! ```
//!
//! Lengths are those of the blocks in the file, including trailers. The positions of the footer's size, version and checksum are the same in all
//! future versions. The range tombstones lie between the root and the properties, so they need no handle.

use std::ops::Range;
use std::path::Path;

use crate::codec;
use crate::error::{Error, Result};
use crate::fs::number_in;

const MAGIC: &[u8; 8] = b"mini-sst";
const VERSION: u32 = 2;
pub(crate) const FOOTER_LEN: usize = 80;
/// The number of bytes of the footer that its checksum covers.
const SUMMED_LEN: usize = 64;

/// The name of the file of table `number`.
pub(crate) fn file_name(number: u64) -> String {
    format!("{number:06}.sst")
}

/// The number of the table with this file name; `None` if it is not the name of a table.
pub(crate) fn parse_file_name(name: &str) -> Option<u64> {
    number_in(name, ".sst")
}

/// The position of a block in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Handle {
    pub(crate) offset: u64,
    /// The length in the file, in bytes, including the trailer.
    pub(crate) len: u64,
}

impl Handle {
    pub(crate) fn end(self) -> Option<u64> {
        self.offset.checked_add(self.len)
    }

    /// The range of the block within the `len` bytes of the file.
    #[inline]
    pub(crate) fn within(self, len: usize) -> Option<Range<usize>> {
        let (start, end) = (usize::try_from(self.offset).ok()?, usize::try_from(self.end()?).ok()?);
        (end <= len).then_some(start..end)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    /// The range of all partitions.
    pub(crate) partitions: Handle,
    /// The block with the fence pointers of the partitions.
    pub(crate) root: Handle,
    pub(crate) properties: Handle,
}

impl Footer {
    /// Appends the footer of table `number`, which is stored at `offset`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, number: u64, offset: u64) {
        let start = out.len();
        for handle in [self.partitions, self.root, self.properties] {
            codec::put_u64(out, handle.offset);
            codec::put_u64(out, handle.len);
        }
        codec::put_u64(out, number);
        codec::put_u32(out, VERSION);
        codec::put_u32(out, 0);
        let checksum = codec::checksum(&out[start..], codec::seed([number, offset]));
        codec::put_u64(out, checksum);
        out.extend_from_slice(MAGIC);
    }

    /// The position of the range tombstones, if there are any: between the root and the properties.
    pub(crate) fn range_tombstones(&self) -> Option<Handle> {
        let offset = self.root.end()?;
        let len = self.properties.offset.checked_sub(offset).filter(|&len| len > 0)?;
        Some(Handle { offset, len })
    }

    /// Whether the parts are adjacent, up to the footer at `offset`.
    fn meets(&self, offset: u64) -> bool {
        let root_ends_before = self.root.end().is_some_and(|end| end <= self.properties.offset);
        let ends = [self.partitions, self.properties].map(Handle::end);
        root_ends_before && ends == [Some(self.root.offset), Some(offset)]
    }

    /// Decodes the footer of table `number`, found at `offset` of `path`. Checks that the parts and the footer are adjacent.
    pub(crate) fn decode(bytes: &[u8; FOOTER_LEN], path: &Path, number: u64, offset: u64) -> Result<Self> {
        let corrupt = |what: String| Error::corruption(path, offset, what);
        let words = bytes.as_chunks::<8>().0;
        let word = |at: usize| u64::from_le_bytes(words[at]);
        let handle = |at: usize| Handle { offset: word(at), len: word(at + 1) };
        let footer = Self { partitions: handle(0), root: handle(2), properties: handle(4) };
        let (found, version, zero, stored, magic) = (word(6), word(7) as u32, word(7) >> 32, word(8), &words[9]);
        if magic != MAGIC {
            return Err(corrupt(format!("table magic: expected {MAGIC:02x?}, found {magic:02x?}")));
        }
        let actual = codec::checksum(bytes.split_at(SUMMED_LEN).0, codec::seed([number, offset]));
        if stored != actual {
            return Err(corrupt(format!(
                "footer checksum of table {number}: expected {actual:016x}, found {stored:016x}"
            )));
        }
        if version != VERSION {
            return Err(Error::UnsupportedVersion { file: path.into(), found: version, supported: VERSION });
        }
        if found != number || zero != 0 {
            return Err(corrupt(format!("table number: expected {number}, found {found}")));
        }
        if !footer.meets(offset) {
            let what = format!("block handles: expected them to meet each other and the footer, found {footer:?}");
            return Err(corrupt(what));
        }
        Ok(footer)
    }
}
