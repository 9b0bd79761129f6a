//! The types that can be passed as the bounds of a range of keys.

use core::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// Bounds of a range of keys: any of Rust's range types, or a pair of [`Bound`]s, over any type that is `AsRef<[u8]>`, such as `&str`, `String`,
/// `Vec<u8>`, `&[u8]`, arrays, or references to them. Both ends must have the same type.
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
    /// The start of the range.
    fn start_bound(&self) -> Bound<&[u8]>;

    /// The end of the range.
    fn end_bound(&self) -> Bound<&[u8]>;
}

macro_rules! impl_key_bounds {
    ($($range:ty),+) => {
        $(impl<K: AsRef<[u8]>> KeyBounds for $range {
            fn start_bound(&self) -> Bound<&[u8]> {
                RangeBounds::start_bound(self).map(K::as_ref)
            }

            fn end_bound(&self) -> Bound<&[u8]> {
                RangeBounds::end_bound(self).map(K::as_ref)
            }
        })+
    };
}

impl_key_bounds!(Range<K>, RangeInclusive<K>, RangeFrom<K>, RangeTo<K>, RangeToInclusive<K>, (Bound<K>, Bound<K>));

impl KeyBounds for RangeFull {
    fn start_bound(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }

    fn end_bound(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }
}
