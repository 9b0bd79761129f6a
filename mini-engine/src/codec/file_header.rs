//! [`FileHeader`]: the header of a log and of a manifest.
//!
//! A header consists of a magic of 8 bytes, the format version u32, zero u32, numbers of 8 bytes each, and the checksum u64 of all bytes before it.

use std::path::Path;

use super::{Reader, checksum, put_u32, put_u64};
use crate::error::{Error, Result};

/// The constant parts of the headers of one kind of file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileHeader {
    /// The kind of file, for errors.
    pub(crate) kind: &'static str,
    pub(crate) magic: &'static [u8; 8],
    pub(crate) version: u32,
}

impl FileHeader {
    /// The length of a header with `numbers` numbers.
    pub(crate) const fn len(numbers: usize) -> usize {
        24 + 8 * numbers
    }

    pub(crate) fn encode<const N: usize>(&self, numbers: [u64; N]) -> Vec<u8> {
        let mut out = self.magic.to_vec();
        put_u32(&mut out, self.version);
        put_u32(&mut out, 0);
        numbers.into_iter().for_each(|number| put_u64(&mut out, number));
        let sum = checksum(&out, 0);
        put_u64(&mut out, sum);
        out
    }

    /// Decodes the numbers of the header at the start of `bytes`, which were read from the file at `path`.
    pub(crate) fn decode<const N: usize>(&self, bytes: &[u8], path: &Path) -> Result<[u64; N]> {
        let damaged = |what: String| Err(Error::corruption(path, 0, format!("{} header: expected {what}", self.kind)));
        let mut reader = Reader::new(bytes);
        let fields = (|| {
            let (magic, version, zero, mut numbers) = (reader.array()?, reader.u32()?, reader.u32()?, [0; N]);
            for number in &mut numbers {
                *number = reader.u64()?;
            }
            Some((magic, version, zero, numbers, bytes.split_at(reader.position()).0, reader.u64()?))
        })();
        let Some((magic, version, zero, numbers, summed, found)) = fields else {
            return damaged(format!("{} bytes, found {}", Self::len(N), bytes.len()));
        };
        if magic != *self.magic {
            return damaged(format!("magic {:02x?}, found {magic:02x?}", self.magic));
        }
        // Verified before the version: a flipped bit there is damage, not a newer format. All versions have the checksum here.
        let sum = checksum(summed, 0);
        if found != sum {
            return damaged(format!("checksum {sum:016x}, found {found:016x}"));
        }
        if version != self.version {
            let (file, supported) = (path.to_path_buf(), self.version);
            return Err(Error::UnsupportedVersion { file, found: version, supported });
        }
        if zero == 0 { Ok(numbers) } else { damaged(format!("0 after the version, found {zero}")) }
    }
}
