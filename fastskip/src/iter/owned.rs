//! Bytes and entries that own their table: a counted reference to the table replaces the borrow.

use core::borrow::Borrow;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::{Deref, RangeBounds};
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr::NonNull;

use super::source::TableSource;
use crate::sync::Arc;

/// Byte strings of a table, and the counted reference that keeps them alive.
#[derive(Clone)]
struct Kept<const N: usize> {
    /// Pointers instead of references: a reference that is passed to a function must stay valid until it returns, and `drop` is such a function.
    bytes: [NonNull<[u8]>; N],
    table: Arc<dyn Send + Sync>,
}

// SAFETY: the bytes are only read, which any thread may do; the table is `Send` and `Sync`.
unsafe impl<const N: usize> Send for Kept<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for Kept<N> {}

// The bytes never change, so a panic cannot leave them inconsistent.
impl<const N: usize> UnwindSafe for Kept<N> {}
impl<const N: usize> RefUnwindSafe for Kept<N> {}

impl<const N: usize> Kept<N> {
    #[inline]
    fn bytes(&self, index: usize) -> &[u8] {
        // SAFETY: `OwnedItem::attach` borrowed the bytes from the table with a generic lifetime, so they are valid for as long as the table is
        // shared. The table stays shared while `self` holds its reference: resetting, moving or dropping the table needs the only reference
        // (`Arc::get_mut`). `split` returns the bytes for the lifetime of the item, whatever that lifetime is. While the table is shared, no memory
        // is unmapped or handed out again (I8), and bytes that were lent are not written (I4).
        unsafe { self.bytes[index].as_ref() }
    }

    /// One of the byte strings.
    #[inline]
    fn into_bytes(self, index: usize) -> OwnedBytes {
        OwnedBytes(Kept { bytes: [self.bytes[index]], table: self.table })
    }
}

/// Bytes of a table: a key, a value or a part of one. They keep the table alive. A clone only increments the reference count; nothing is copied. They
/// are compared and hashed like the slice, so a map with such keys can be searched by a slice.
///
/// ```
/// use bytes::Bytes;
/// use fastskip::Memtable;
///
/// let memtable = Memtable::new();
/// memtable.put(b"key", 1, b"a value")?;
/// let value = memtable.get_owned(b"key", 1).map(|version| version.into_value()).unwrap();
/// drop(memtable);
/// assert_eq!((&*value, &*value.slice(2..)), (&b"a value"[..], &b"value"[..]));
/// // The crate `bytes` takes it as it is, and a whole version too.
/// let bytes = Bytes::from_owner(value.clone());
/// assert_eq!(bytes.as_ptr(), value.as_ptr());
/// # Ok::<(), fastskip::InsertError>(())
/// ```
#[derive(Clone)]
pub struct OwnedBytes(Kept<1>);

impl OwnedBytes {
    /// A part of the bytes, which also keeps the table alive. O(1).
    ///
    /// # Panics
    /// Panics if the range is not within the bytes, like slicing.
    #[must_use]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Self {
        let part = &self[(range.start_bound().cloned(), range.end_bound().cloned())];
        Self(Kept { bytes: [NonNull::from(part)], table: Arc::clone(&self.0.table) })
    }
}

impl Deref for OwnedBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.0.bytes(0)
    }
}

impl AsRef<[u8]> for OwnedBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for OwnedBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for OwnedBytes {}

impl Ord for OwnedBytes {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl PartialOrd for OwnedBytes {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for OwnedBytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl Borrow<[u8]> for OwnedBytes {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for OwnedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// An entry that keeps its table alive, by one counted reference: [`OwnedVersion`](crate::OwnedVersion) of a memtable,
/// [`OwnedEntry`](crate::OwnedEntry) of a list. Nothing is copied. Its contents never change.
///
/// While such an entry exists, the table cannot be reset, and none of its memory is freed; so do not keep one for long.
pub struct OwnedItem<T: TableSource> {
    /// The key and the value.
    kept: Kept<2>,
    pub(crate) rest: T::Rest,
}

impl<T: TableSource> OwnedItem<T> {
    /// The entry that `find` borrows from the table, if any, with a counted reference to the table.
    #[inline(always)]
    pub(crate) fn attach(table: &Arc<T>, find: impl for<'a> FnOnce(&'a T) -> Option<T::Item<'a>>) -> Option<Self> {
        let (bytes, rest) = T::split(find(table)?);
        let table: Arc<T> = Arc::clone(table);
        Some(Self { kept: Kept { bytes: bytes.map(NonNull::from), table }, rest })
    }

    /// The entry, borrowed.
    pub(crate) fn item(&self) -> T::Item<'_> {
        T::join([self.key(), self.value()], self.rest)
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.kept.bytes(0)
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        self.kept.bytes(1)
    }

    /// The key, which keeps the table alive by itself. O(1): nothing is copied.
    #[must_use]
    pub fn to_key(&self) -> OwnedBytes {
        self.kept.clone().into_bytes(0)
    }

    /// The value, which keeps the table alive by itself. O(1): nothing is copied.
    #[must_use]
    pub fn to_value(&self) -> OwnedBytes {
        self.kept.clone().into_bytes(1)
    }

    /// Like [`to_value`](Self::to_value), but reuses the counted reference of this entry.
    #[must_use]
    pub fn into_value(self) -> OwnedBytes {
        self.kept.into_bytes(1)
    }
}

// Not derived, because a derived impl would require `T: Clone`.
impl<T: TableSource> Clone for OwnedItem<T> {
    fn clone(&self) -> Self {
        Self { kept: self.kept.clone(), rest: self.rest }
    }
}

/// The value.
impl<T: TableSource> AsRef<[u8]> for OwnedItem<T> {
    fn as_ref(&self) -> &[u8] {
        self.value()
    }
}

impl<T: TableSource> PartialEq for OwnedItem<T> {
    fn eq(&self, other: &Self) -> bool {
        self.item() == other.item()
    }
}

impl<T: TableSource> Eq for OwnedItem<T> {}

impl<T: TableSource> fmt::Debug for OwnedItem<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedItem").field(&self.item()).finish()
    }
}
