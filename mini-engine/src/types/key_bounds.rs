//! [`KeyBounds`]: ranges as callers write them.

use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of keys: `a..b`, `a..=b`, `a..`, `..b`, `..=b`, `..` or a pair of [`Bound`]s, whose ends are anything that lends bytes:
/// `&str`, `String`, `Vec<u8>`, `&[u8]`, arrays, [`Slice`](crate::Slice), or references to them.
///
/// The standard library's `RangeBounds<K>` leaves open what `K` is in `..`, so that callers would have to name it.
pub trait KeyBounds {
    /// Where the range begins.
    fn start(&self) -> Bound<&[u8]>;
    /// Where the range ends.
    fn end(&self) -> Bound<&[u8]>;
}

impl KeyBounds for RangeFull {
    fn start(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }

    fn end(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }
}

macro_rules! impl_key_bounds {
    ($($range:ty),*) => {$(
        impl<K: AsRef<[u8]>> KeyBounds for $range {
            fn start(&self) -> Bound<&[u8]> {
                RangeBounds::start_bound(self).map(K::as_ref)
            }

            fn end(&self) -> Bound<&[u8]> {
                RangeBounds::end_bound(self).map(K::as_ref)
            }
        }
    )*};
}

impl_key_bounds!(Range<K>, RangeInclusive<K>, RangeFrom<K>, RangeTo<K>, RangeToInclusive<K>, (Bound<K>, Bound<K>));
