//! The types that can be passed as the bounds of a range of keys.

use core::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

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

fn copied<K: AsRef<[u8]>>(bounds: &impl RangeBounds<K>) -> OwnedBounds {
    let copy = |key: &K| Box::from(key.as_ref());
    (bounds.start_bound().map(copy), bounds.end_bound().map(copy))
}

macro_rules! impl_key_bounds {
    ($($range:ty),+) => {
        $(impl<K: AsRef<[u8]>> KeyBounds for $range {
            fn into_bounds(self) -> OwnedBounds {
                copied(&self)
            }
        })+
    };
}

impl_key_bounds!(Range<K>, RangeInclusive<K>, RangeFrom<K>, RangeTo<K>, RangeToInclusive<K>, (Bound<K>, Bound<K>));

impl KeyBounds for RangeFull {
    fn into_bounds(self) -> OwnedBounds {
        (Bound::Unbounded, Bound::Unbounded)
    }
}
