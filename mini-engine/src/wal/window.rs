//! [`Window`]: a file read in order through a buffer, without ever holding more than one frame and one chunk.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::File;

/// The number of bytes that are read at once.
const CHUNK: usize = 1 << 20;
/// The number of bytes that the first read of a growing window reads.
const SMALL_CHUNK: usize = 4 << 10;

/// A sliding view of a file whose length was read once.
pub(super) struct Window<'a> {
    file: Arc<dyn File>,
    path: &'a Path,
    pub(super) len: u64,
    buffer: Vec<u8>,
    /// The offset of the buffer in the file.
    start: u64,
    /// The minimum number of bytes of a read.
    chunk: usize,
    /// Whether unreadable bytes make only those calls fail that request them, and not calls that would just read ahead over them.
    pub(super) spares_ahead: bool,
}

impl<'a> Window<'a> {
    pub(super) fn new(file: Arc<dyn File>, path: &'a Path) -> Result<Self> {
        let len = file.len().map_err(Error::io("read the length of", path))?;
        Ok(Self { file, path, len, buffer: Vec::new(), start: 0, chunk: CHUNK, spares_ahead: false })
    }

    /// A window whose reads begin small and grow: for a part of a file that may be short.
    pub(super) fn growing(file: Arc<dyn File>, path: &'a Path) -> Result<Self> {
        Ok(Self { chunk: SMALL_CHUNK, ..Self::new(file, path)? })
    }

    /// Returns `want` bytes from `offset` on, or fewer if the file ends before.
    pub(super) fn get(&mut self, offset: u64, want: usize) -> Result<&[u8]> {
        let want = self.len.saturating_sub(offset).min(want as u64) as usize;
        let buffered = offset >= self.start && offset + want as u64 <= self.start + self.buffer.len() as u64;
        if !buffered && let Err(error) = self.fill(offset, want) {
            if !std::mem::take(&mut self.spares_ahead) {
                return Err(error);
            }
            self.chunk = 0;
            self.fill(offset, want)?;
        }
        let at = (offset - self.start) as usize;
        Ok(&self.buffer[at..at + want])
    }

    /// Reads at least `want` bytes from `offset`; they must be within the file.
    fn fill(&mut self, offset: u64, want: usize) -> Result<()> {
        let len = self.len.saturating_sub(offset).min(want.max(self.chunk) as u64) as usize;
        self.buffer.truncate(len);
        self.buffer.resize(len, 0);
        // If the read fails, nothing is buffered.
        self.start = offset;
        if self.chunk > 0 {
            self.chunk = CHUNK.min(2 * self.chunk);
        }
        let read = self.file.read_exact_at(&mut self.buffer, offset);
        if read.is_err() {
            self.buffer.clear();
        }
        read.map_err(Error::io("read", self.path))
    }
}
