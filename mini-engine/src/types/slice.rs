//! [`Slice`]: bytes shared by reference count, so that a value read from a cached block is not copied.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Immutable bytes behind a reference count; a clone costs one atomic increment.
///
/// Compares, orders and hashes as the bytes it derefs to. A value read from a table is a view of its cached block
/// and keeps that block in memory as long as the slice lives: copy small values that are kept for long.
#[derive(Clone)]
pub struct Slice {
    bytes: Arc<[u8]>,
    start: usize,
    end: usize,
}

impl Slice {
    /// A view of `range` within `bytes`, or `None` if the range does not lie within them.
    pub(crate) fn view(bytes: Arc<[u8]>, range: Range<usize>) -> Option<Self> {
        let Range { start, end } = range;
        bytes.get(start..end)?;
        Some(Self { bytes, start, end })
    }

    /// The first `len` bytes, or all if there are fewer, and the others.
    pub(crate) fn split_at(self, len: usize) -> (Self, Self) {
        let middle = self.end.min(self.start.saturating_add(len));
        let head = Self { bytes: self.bytes.clone(), start: self.start, end: middle };
        (head, Self { start: middle, ..self })
    }
}

impl Default for Slice {
    fn default() -> Self {
        Self::from(&[][..])
    }
}

impl Deref for Slice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // In range: `view` and `From` are the only constructors, and the bytes never change.
        &self.bytes[self.start..self.end]
    }
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Borrow<[u8]> for Slice {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl From<&[u8]> for Slice {
    fn from(bytes: &[u8]) -> Self {
        Self { start: 0, end: bytes.len(), bytes: Arc::from(bytes) }
    }
}

impl From<Vec<u8>> for Slice {
    fn from(bytes: Vec<u8>) -> Self {
        Self { start: 0, end: bytes.len(), bytes: Arc::from(bytes) }
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

impl PartialEq for Slice {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Slice {}

impl PartialEq<[u8]> for Slice {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl PartialEq<&[u8]> for Slice {
    fn eq(&self, other: &&[u8]) -> bool {
        **self == **other
    }
}

impl PartialOrd for Slice {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Slice {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Slice {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn a_view_outside_its_bytes_is_refused() {
        // Catches an unchecked range from a damaged block, which would panic at the first deref.
        let bytes: Arc<[u8]> = Arc::from(&b"block"[..]);
        assert_eq!(Slice::view(bytes.clone(), 1..3).as_deref(), Some(&b"lo"[..]));
        assert_eq!(Slice::view(bytes.clone(), 5..5).as_deref(), Some(&b""[..]));
        for range in [0..6, 6..6, Range { start: 3, end: 2 }, usize::MAX..usize::MAX] {
            assert!(Slice::view(bytes.clone(), range.clone()).is_none(), "{range:?}");
        }
    }

    #[test]
    fn slices_compare_and_hash_as_their_bytes() {
        // Catches a derived impl, which would compare the hidden part of the shared bytes too.
        let view = Slice::view(Arc::from(&b"xaby"[..]), 1..3).expect("in range");
        let owned = Slice::from(b"ab".to_vec());
        assert_eq!(view, owned);
        assert_eq!(view.cmp(&Slice::from(&b"b"[..])), Ordering::Less);
        let map = HashMap::from([(view, 1)]);
        assert_eq!(map.get(&b"ab"[..]), Some(&1));
        assert_eq!(format!("{owned:?}"), "b\"ab\"");
    }
}
