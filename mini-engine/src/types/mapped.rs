//! [`MappedBytes`]: the bytes of a file that never changes, in memory.

use std::fmt;
use std::ops::Deref;

/// The bytes of a file that never changes: pages of the file itself, or a copy if the file system cannot map it.
pub struct MappedBytes(Repr);

enum Repr {
    #[cfg(unix)]
    Pages(memmap2::Mmap),
    Copied(Box<[u8]>),
}

impl MappedBytes {
    #[cfg(unix)]
    pub(crate) fn of_pages(pages: memmap2::Mmap) -> Self {
        Self(Repr::Pages(pages))
    }

    /// Uses these bytes as the bytes of a file.
    pub fn copied(bytes: impl Into<Box<[u8]>>) -> Self {
        Self(Repr::Copied(bytes.into()))
    }
}

impl Deref for MappedBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            #[cfg(unix)]
            Repr::Pages(pages) => pages,
            Repr::Copied(bytes) => bytes,
        }
    }
}

impl fmt::Debug for MappedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MappedBytes").field(&self.len()).finish()
    }
}
