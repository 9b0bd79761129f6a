//! [`KeyBuffer`]: the key of one entry, put together from the prefix of its bundle and the rest.

use super::Columns;

/// The number of bytes that are copied at once. The bytes beyond a key's end are unspecified.
pub(crate) const CHUNK: usize = 16;

/// A key, with room behind it for a chunk.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyBuffer {
    bytes: Vec<u8>,
    len: usize,
    /// The length of the prefix of the bundle that was entered, and one more than the bundle's index; 0 if there is none.
    prefix_len: usize,
    bundle: usize,
}

impl KeyBuffer {
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// The first chunk of the key from `start` on, and the key's length from there; `None` if that is longer.
    #[inline(always)]
    pub(crate) fn chunk(&self, start: usize) -> Option<(&[u8; CHUNK], usize)> {
        let len = self.len.checked_sub(start).filter(|len| *len <= CHUNK)?;
        Some((self.bytes.get(start..)?.first_chunk()?, len))
    }

    /// Must be called before the buffer is used with another block. The key stays.
    #[inline]
    pub(crate) fn leave_block(&mut self) {
        self.bundle = 0;
    }

    /// Moves to entry `at` of a block.
    #[inline(always)]
    pub(crate) fn move_to(&mut self, columns: &Columns, contents: &[u8], at: usize) {
        let bundle = columns.bundle(at);
        if bundle + 1 != self.bundle {
            self.enter_bundle(columns, contents, bundle);
        }
        let suffix = columns.suffix(contents, at);
        let len = suffix.len();
        self.len = self.prefix_len + len;
        let room = self.bytes.get_mut(self.prefix_len..).and_then(<[u8]>::first_chunk_mut::<CHUNK>);
        match (room, contents.get(suffix.start..).and_then(<[u8]>::first_chunk::<CHUNK>)) {
            (Some(room), Some(chunk)) if len <= CHUNK => *room = *chunk,
            _ => self.copy(contents.get(suffix).unwrap_or_default()),
        }
    }

    #[inline(never)]
    fn copy(&mut self, suffix: &[u8]) {
        self.bytes.truncate(self.prefix_len);
        self.bytes.extend_from_slice(suffix);
        self.len = self.bytes.len();
        self.bytes.resize(self.len + CHUNK, 0);
    }

    #[inline(never)]
    fn enter_bundle(&mut self, columns: &Columns, contents: &[u8], bundle: usize) {
        let prefix = contents.get(columns.prefix(contents, bundle)).unwrap_or_default();
        self.bytes.clear();
        self.bytes.extend_from_slice(prefix);
        self.bytes.resize(prefix.len() + 2 * CHUNK, 0);
        (self.prefix_len, self.bundle) = (prefix.len(), bundle + 1);
    }
}
