//! Bytes and iterators that own their table: a counted reference to the table takes the place of the borrow.

use core::fmt;
use core::ops::{Deref, RangeBounds};
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr::NonNull;

use super::range::Ends;
use crate::sync::Arc;

/// Byte strings of a table, and the count that keeps them.
#[derive(Clone)]
pub(crate) struct Kept<const N: usize> {
    /// Pointers and no references: these must be valid for as long as a function runs that they are handed to, and `drop` is one.
    bytes: [NonNull<[u8]>; N],
    table: Arc<dyn Send + Sync>,
}

// SAFETY: the bytes are only ever read, which any thread may do; the table is `Send` and `Sync`.
unsafe impl<const N: usize> Send for Kept<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for Kept<N> {}

// The bytes do not change, whatever a panic interrupts.
impl<const N: usize> UnwindSafe for Kept<N> {}
impl<const N: usize> RefUnwindSafe for Kept<N> {}

impl<const N: usize> Kept<N> {
    /// Keeps the byte strings that `read` borrows from the table, if any. Returns what else it says of them, too.
    #[inline]
    pub(crate) fn attach<T: Send + Sync + 'static, R>(
        table: &Arc<T>,
        read: impl for<'a> FnOnce(&'a T) -> Option<([&'a [u8]; N], R)>,
    ) -> Option<(Self, R)> {
        let (bytes, rest) = read(table)?;
        let table: Arc<T> = Arc::clone(table);
        Some((Self { bytes: bytes.map(NonNull::from), table }, rest))
    }

    #[inline]
    pub(crate) fn bytes(&self, index: usize) -> &[u8] {
        // SAFETY: `read` borrowed the bytes from the table, for a lifetime that it did not know: so for any through which the table is
        // shared. It is shared for as long as `self` counts it: whoever resets it, moves it or drops it must hold the only count
        // (`Arc::get_mut`). Until then nothing is unmapped or handed out again (I8), and bytes that were lent are not written (I4).
        unsafe { self.bytes[index].as_ref() }
    }

    /// One of the byte strings.
    #[inline]
    pub(crate) fn into_bytes(self, index: usize) -> OwnedBytes {
        OwnedBytes(Kept { bytes: [self.bytes[index]], table: self.table })
    }
}

/// Bytes of a table, which they keep alive: a key, a value or a part of one. A clone counts one more reference; nothing is copied.
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
    /// A part of the bytes, which keeps the table alive too. O(1).
    ///
    /// # Panics
    /// Panics if the range does not lie within the bytes, as slices do.
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

impl fmt::Debug for OwnedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Implements what an owned entry has to be, for a type with a field `kept` of its key and value and a method `$borrow` that returns
/// its borrowed form.
macro_rules! impl_owned_entry {
    ($name:ident, $borrowed:ident, $borrow:ident) => {
        impl $name {
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
            pub fn key_bytes(&self) -> OwnedBytes {
                self.kept.clone().into_bytes(0)
            }

            /// The value, which keeps the table alive by itself. O(1): nothing is copied.
            #[must_use]
            pub fn value_bytes(&self) -> OwnedBytes {
                self.kept.clone().into_bytes(1)
            }

            /// As [`value_bytes`](Self::value_bytes), with the reference that this counts.
            #[must_use]
            pub fn into_value(self) -> OwnedBytes {
                self.kept.into_bytes(1)
            }
        }

        /// The value.
        impl AsRef<[u8]> for $name {
            fn as_ref(&self) -> &[u8] {
                self.value()
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.$borrow() == other.$borrow()
            }
        }

        impl Eq for $name {}

        impl PartialEq<$borrowed<'_>> for $name {
            fn eq(&self, other: &$borrowed<'_>) -> bool {
                self.$borrow() == *other
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.$borrow()).finish()
            }
        }
    };
}

/// Takes a step of an end. After `None` there is none left.
#[inline]
pub(crate) fn step<I>(ends: &mut Option<Ends>, step: impl FnOnce(&mut Ends) -> Option<I>) -> Option<I> {
    let item = ends.as_mut().and_then(step);
    if item.is_none() {
        *ends = None;
    }
    item
}

/// Implements an iterator that owns its table, for a type with the fields `table`, `at` and `ends`. `$shown` leads from the first two to
/// the list, if it was made, and a view of it. The iterator yields `$owned`, or lends `$item`.
macro_rules! impl_owned_iterator {
    ($name:ident, $owned:ident, $item:ident, $shown:ident) => {
        impl $name {
            /// The same as `next`, but lends what it takes until the next step, and so counts no reference: two atomic operations
            /// less.
            #[inline]
            pub fn next_ref(&mut self) -> Option<$item<'_>> {
                let (list, view) = $shown(&self.table, self.at);
                step(&mut self.ends, |ends| ends.next(list?, view))
            }

            /// The same as `next_back`, but lends what it takes, as [`next_ref`](Self::next_ref) does.
            #[inline]
            pub fn next_back_ref(&mut self) -> Option<$item<'_>> {
                let (list, view) = $shown(&self.table, self.at);
                step(&mut self.ends, |ends| ends.next_back(list?, view))
            }
        }

        impl Iterator for $name {
            type Item = $owned;

            #[inline]
            fn next(&mut self) -> Option<$owned> {
                let Self { table, at, ends } = self;
                step(ends, |ends| {
                    $owned::attach(table, |table| {
                        let (list, view) = $shown(table, *at);
                        ends.next(list?, view)
                    })
                })
            }
        }

        impl DoubleEndedIterator for $name {
            #[inline]
            fn next_back(&mut self) -> Option<$owned> {
                let Self { table, at, ends } = self;
                step(ends, |ends| {
                    $owned::attach(table, |table| {
                        let (list, view) = $shown(table, *at);
                        ends.next_back(list?, view)
                    })
                })
            }
        }

        impl core::iter::FusedIterator for $name {}

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use {impl_owned_entry, impl_owned_iterator};
