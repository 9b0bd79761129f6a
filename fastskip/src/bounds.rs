//! The types that can be passed as the bounds of a range of keys.

use core::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A lower and an upper bound that own their keys.
pub type OwnedBounds = (Bound<Box<[u8]>>, Bound<Box<[u8]>>);

/// Bounds of a range of keys: any of Rust's range types, or a pair of [`Bound`]s, over any type that is `AsRef<[u8]>`. Both
/// ends must have the same type.
///
/// ```
/// # let list = fastskip::ConcurrentSkipList::new();
/// list.insert(b"b", b"");
/// assert_eq!(list.range(b"a"..b"c").count(), 1);
/// assert_eq!(list.range("c"..).count(), 0);
/// assert_eq!(list.range(..).count(), 1);
/// ```
///
/// `std::ops::RangeBounds` cannot be used instead: for a range of `&[u8; 1]` the compiler cannot tell whether the keys are
/// the arrays or the references, and for `..` it cannot infer the type of the keys.
pub trait KeyBounds {
    /// Copies the lower and the upper bound.
    fn into_bounds(self) -> OwnedBounds;
}

fn copy<K: AsRef<[u8]>>(key: &K) -> Box<[u8]> {
    Box::from(key.as_ref())
}

impl<K: AsRef<[u8]>> KeyBounds for Range<K> {
    fn into_bounds(self) -> OwnedBounds {
        (Bound::Included(copy(&self.start)), Bound::Excluded(copy(&self.end)))
    }
}

impl<K: AsRef<[u8]>> KeyBounds for RangeInclusive<K> {
    fn into_bounds(self) -> OwnedBounds {
        (Bound::Included(copy(self.start())), Bound::Included(copy(self.end())))
    }
}

impl<K: AsRef<[u8]>> KeyBounds for RangeFrom<K> {
    fn into_bounds(self) -> OwnedBounds {
        (Bound::Included(copy(&self.start)), Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyBounds for RangeTo<K> {
    fn into_bounds(self) -> OwnedBounds {
        (Bound::Unbounded, Bound::Excluded(copy(&self.end)))
    }
}

impl<K: AsRef<[u8]>> KeyBounds for RangeToInclusive<K> {
    fn into_bounds(self) -> OwnedBounds {
        (Bound::Unbounded, Bound::Included(copy(&self.end)))
    }
}

impl KeyBounds for RangeFull {
    fn into_bounds(self) -> OwnedBounds {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyBounds for (Bound<K>, Bound<K>) {
    fn into_bounds(self) -> OwnedBounds {
        (self.0.map(|key| copy(&key)), self.1.map(|key| copy(&key)))
    }
}
