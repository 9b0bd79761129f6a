//! [`KeyBuffer`]: the key of one entry, put together from the prefix of its bundle and the rest.

use std::ops::Range;

use super::Columns;
use crate::types::KeyPrefix;

/// The number of bytes that are copied at once. The bytes beyond a key's end are unspecified.
const CHUNK: usize = 16;
/// The initial length of a buffer.
const LEAST_LEN: usize = 4 * CHUNK;

/// The key of an entry. A key without a prefix stays in its block; any other is put together here, with room behind it for a chunk. If no key of the
/// block has a prefix, this is not used: the columns show where each key is.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyBuffer {
    /// The range in the contents of the key behind the prefix.
    rest: Range<usize>,
    /// The length of the prefix of the bundle that was entered, and one more than the bundle's index; 0 if there is none.
    prefix_len: usize,
    bundle: usize,
    bytes: Vec<u8>,
}

impl KeyBuffer {
    /// The key of entry `at` of the block with these columns and contents, to which the buffer was moved.
    #[inline(always)]
    pub(crate) fn key<'a>(&'a self, columns: &Columns, contents: &'a [u8], at: usize) -> &'a [u8] {
        match columns.is_whole() {
            true => contents.get(columns.suffix(contents, at)).unwrap_or_default(),
            false => self.joined(contents),
        }
    }

    #[inline(never)]
    fn joined<'a>(&'a self, contents: &'a [u8]) -> &'a [u8] {
        match self.prefix_len {
            0 => contents.get(self.rest.clone()),
            len => self.bytes.get(..len + self.rest.len()),
        }
        .unwrap_or_default()
    }

    /// The first chunk of that key without the keyspace's prefix, and the length of that; `None` if the length is greater. If the key is empty, the
    /// bytes that follow it may look like a prefix: then the result is `None`.
    #[inline(always)]
    pub(crate) fn chunk<'a>(
        &'a self,
        (columns, contents, at): (&Columns, &'a [u8], usize),
        prefix: &KeyPrefix,
    ) -> Option<(&'a [u8; CHUNK], usize)> {
        let (bytes, Range { start, end }) = match columns.is_whole() {
            true => (contents, columns.suffix(contents, at)),
            false if self.prefix_len == 0 => (contents, self.rest.clone()),
            false => (&*self.bytes, 0..self.prefix_len + self.rest.len()),
        };
        let mut chunk = bytes.get(start..)?.first_chunk()?;
        let skipped = prefix.len_in(chunk);
        if skipped > 0 {
            chunk = bytes.get(start + skipped..)?.first_chunk()?;
        }
        let len = end.checked_sub(start + skipped).filter(|len| *len <= CHUNK)?;
        Some((chunk, len))
    }

    /// Must be called before the buffer is used with another block.
    #[inline]
    pub(crate) fn leave_block(&mut self) {
        self.bundle = 0;
    }

    /// Moves to entry `at` of a block.
    #[inline(always)]
    pub(crate) fn move_to<'a>(&mut self, columns: &Columns, contents: impl FnOnce() -> &'a [u8], at: usize) {
        if !columns.is_whole() {
            self.put_together(columns, contents(), at);
        }
    }

    #[inline(never)]
    fn put_together(&mut self, columns: &Columns, contents: &[u8], at: usize) {
        self.rest = columns.suffix(contents, at);
        let bundle = columns.bundle(at);
        if bundle + 1 != self.bundle {
            self.enter_bundle(columns, contents, bundle);
        }
        if self.prefix_len == 0 {
            return;
        }
        let (len, room) = (self.rest.len(), self.bytes.get_mut(self.prefix_len..));
        match (
            room.and_then(<[u8]>::first_chunk_mut::<CHUNK>),
            contents.get(self.rest.start..).and_then(<[u8]>::first_chunk),
        ) {
            (Some(room), Some(chunk)) if len <= CHUNK => *room = *chunk,
            _ => {
                self.bytes.truncate(self.prefix_len);
                self.bytes.extend_from_slice(contents.get(self.rest.clone()).unwrap_or_default());
                self.bytes.resize(self.bytes.len() + 2 * CHUNK, 0);
            }
        }
    }

    #[inline(never)]
    fn enter_bundle(&mut self, columns: &Columns, contents: &[u8], bundle: usize) {
        let prefix = contents.get(columns.prefix(contents, bundle)).unwrap_or_default();
        (self.prefix_len, self.bundle) = (prefix.len(), bundle + 1);
        if self.bytes.len() < prefix.len() + 2 * CHUNK {
            self.bytes.resize((prefix.len() + 2 * CHUNK).max(LEAST_LEN), 0);
        }
        if let Some(room) = self.bytes.get_mut(..prefix.len()) {
            room.copy_from_slice(prefix);
        }
    }
}
