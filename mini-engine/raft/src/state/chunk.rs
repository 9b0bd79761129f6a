//! [`Chunk`]: a part of a file of a snapshot, for sending.

use std::fmt;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mini_engine::fs::{File, FileSystem};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

/// The file that makes a directory a database. This file comes last, so an incomplete transfer is no database.
const POINTER: &str = "CURRENT";
/// The lock file, which is not sent: each directory has its own.
const LOCK: &str = "LOCK";

/// A part of a file of a snapshot, for any transport that keeps the order. Serializable; the bytes are encoded as bytes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// The name of the file.
    pub(super) file: String,
    /// The length of the whole file.
    pub(super) file_len: u64,
    /// The offset of the bytes in the file.
    pub(super) offset: u64,
    #[serde(with = "serde_bytes")]
    pub(super) bytes: Vec<u8>,
    /// The checksum of all fields above.
    checksum: u64,
}

impl Chunk {
    fn new(file: &str, file_len: u64, offset: u64, bytes: Vec<u8>) -> Self {
        let mut chunk = Self { file: file.to_owned(), file_len, offset, bytes, checksum: 0 };
        chunk.checksum = chunk.expected_checksum();
        chunk
    }

    fn expected_checksum(&self) -> u64 {
        let mut hasher = Xxh3::new();
        for number in [self.file.len() as u64, self.file_len, self.offset] {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(self.file.as_bytes());
        hasher.update(&self.bytes);
        hasher.digest()
    }

    /// Fails if the chunk was changed after it was made.
    pub(super) fn check(&self) -> Result<()> {
        let expected = self.expected_checksum();
        if self.checksum == expected {
            return Ok(());
        }
        let found = self.checksum;
        let what = format!("checksum mismatch in {self:?} of a snapshot: expected {expected:016x}, found {found:016x}");
        Err(Error::new(ErrorKind::InvalidData, what))
    }
}

/// Omits the bytes.
impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, file_len, offset, bytes, .. } = self;
        write!(f, "{} bytes at offset {offset} of {}, which has {file_len}", bytes.len(), file.escape_debug())
    }
}

/// The chunks of a snapshot, in the order in which they are sent: [`Checkpoint::chunks`](crate::Checkpoint::chunks). Each step reads a file, so call
/// `next` where a task may block. An error ends the iterator.
#[derive(Debug)]
pub struct Chunks {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    /// Names of the files that were not begun; the next one is last.
    left: Vec<String>,
    open: Option<Open>,
    chunk_bytes: usize,
}

/// The file that is being sent.
#[derive(Debug)]
struct Open {
    name: String,
    file: Arc<dyn File>,
    len: u64,
    /// Bytes of the file that were sent.
    sent: u64,
}

impl Chunks {
    pub(super) fn new(fs: Arc<dyn FileSystem>, dir: &Path, chunk_bytes: usize) -> Result<Self> {
        let mut left = Vec::new();
        for name in fs.read_dir(dir)? {
            let not_ours = |name| Error::new(ErrorKind::InvalidData, format!("a snapshot has the file {name:?}"));
            let name = name.into_string().map_err(not_ours)?;
            if name != LOCK {
                left.push(name);
            }
        }
        // The order of the other files does not matter, but it should be stable.
        left.sort_unstable_by(|a, b| (a != POINTER, b).cmp(&(b != POINTER, a)));
        Ok(Self { fs, dir: dir.to_path_buf(), left, open: None, chunk_bytes: chunk_bytes.max(1) })
    }

    fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => {
                let Some(name) = self.left.pop() else { return Ok(None) };
                let file = self.fs.open(&self.dir.join(&name))?;
                let len = file.len()?;
                Open { name, file, len, sent: 0 }
            }
        };
        let (offset, left) = (open.sent, open.len - open.sent);
        let mut bytes = vec![0; usize::try_from(left).unwrap_or(usize::MAX).min(self.chunk_bytes)];
        open.file.read_exact_at(&mut bytes, offset)?;
        let chunk = Chunk::new(&open.name, open.len, offset, bytes);
        open.sent += chunk.bytes.len() as u64;
        self.open = Some(open).filter(|open| open.sent < open.len);
        Ok(Some(chunk))
    }
}

impl Iterator for Chunks {
    type Item = Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_chunk();
        if next.is_err() {
            self.left.clear();
        }
        next.transpose()
    }
}

#[cfg(test)]
mod tests {
    use proof::disk::MemFs;

    use super::*;

    fn sent(chunk_bytes: usize) -> Vec<Chunk> {
        let fs = MemFs::default();
        let dir = Path::new("/snapshot");
        fs.create_dir_all(dir).unwrap();
        for (name, bytes) in [("LOCK", ""), ("CURRENT", "pointer"), ("b.sst", "0123456789"), ("a.log", "")] {
            fs.create_new(&dir.join(name)).unwrap().write_all_at(bytes.as_bytes(), 0).unwrap();
        }
        Chunks::new(Arc::new(fs), dir, chunk_bytes).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn every_file_is_sent_once_the_pointer_last_and_no_lock() {
        // Catches a lost end of a file, a lost empty file, and a directory that becomes a database before its tables arrive.
        let names =
            |chunks: &[Chunk]| chunks.iter().map(|chunk| (chunk.file.clone(), chunk.offset)).collect::<Vec<_>>();
        let expected = [("a.log", 0), ("b.sst", 0), ("b.sst", 4), ("b.sst", 8), ("CURRENT", 0), ("CURRENT", 4)];
        assert_eq!(names(&sent(4)), expected.map(|(name, offset)| (name.to_owned(), offset)));
        assert_eq!(names(&sent(100)).len(), 3);
        let table: Vec<u8> =
            sent(4).into_iter().filter(|chunk| chunk.file == "b.sst").flat_map(|chunk| chunk.bytes).collect();
        assert_eq!(table, b"0123456789");
    }

    #[test]
    fn every_field_is_under_the_checksum() {
        // Catches a chunk that is stored at another offset, or in another file, than it was read from.
        let chunk = sent(4).remove(2);
        assert!(chunk.check().is_ok());
        let changes: [fn(&mut Chunk); 5] = [
            |chunk| chunk.file.push('x'),
            |chunk| chunk.file_len += 1,
            |chunk| chunk.offset += 4,
            |chunk| chunk.bytes[0] ^= 1,
            |chunk| chunk.checksum ^= 1,
        ];
        for change in changes {
            let mut changed = chunk.clone();
            change(&mut changed);
            assert_eq!(changed.check().unwrap_err().kind(), ErrorKind::InvalidData, "{changed:?}");
        }
    }
}
