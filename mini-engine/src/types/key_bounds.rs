//! [`KeyBounds`]: ranges of keys in the forms that callers write.

use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use super::Slice;

/// A range of keys: `a..b`, `a..=b`, `a..`, `..b`, `..=b`, `..` or a pair of [`Bound`]s. Its ends may have any type that lends bytes: `&str`,
/// `String`, `Vec<u8>`, `&[u8]`, arrays, [`Slice`], or references to them.
///
/// With the standard library's `RangeBounds<K>`, `..` would not determine `K`, so callers would have to specify it.
pub trait KeyBounds {
    /// The start of the range.
    fn start(&self) -> Bound<&[u8]>;
    /// The end of the range.
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

/// A range of keys that owns its ends.
pub(crate) type OwnedBounds = (Bound<Slice>, Bound<Slice>);

pub(crate) fn owned(bounds: &impl KeyBounds) -> OwnedBounds {
    (bounds.start().map(Slice::from), bounds.end().map(Slice::from))
}

/// Whether `key` is within this upper bound.
#[inline]
pub(crate) fn is_below(key: &[u8], upper: Bound<&[u8]>) -> bool {
    match upper {
        Bound::Unbounded => true,
        Bound::Included(upper) => key <= upper,
        Bound::Excluded(upper) => key < upper,
    }
}

/// Whether `key` is within this lower bound.
#[inline]
pub(crate) fn is_above(key: &[u8], lower: Bound<&[u8]>) -> bool {
    match lower {
        Bound::Unbounded => true,
        Bound::Included(lower) => key >= lower,
        Bound::Excluded(lower) => key > lower,
    }
}

/// Whether the bounds can include a key from `smallest` to `largest`.
pub(crate) fn overlaps(smallest: &[u8], largest: &[u8], bounds: &impl KeyBounds) -> bool {
    is_above(largest, bounds.start()) && is_below(smallest, bounds.end())
}

/// The first key after all keys that begin with `prefix`: the prefix with its last byte incremented, after trailing bytes of 0xff are removed. A
/// prefix that consists of 0xff bytes has no such key.
pub(super) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    *end.last_mut()? += 1;
    Some(end)
}

/// The keys that begin with `prefix`: from the prefix itself up to the first key after them, exclusive.
pub(crate) fn prefix_bounds(prefix: &[u8]) -> OwnedBounds {
    let end = after_prefix(prefix).map_or(Bound::Unbounded, |end| Bound::Excluded(Slice::from(end)));
    (Bound::Included(Slice::from(prefix)), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_the_next_one_starts() {
        // Catches a prefix of 0xff bytes, whose successor is shorter, or does not exist.
        let end = |prefix: &[u8]| prefix_bounds(prefix).1;
        assert_eq!(end(b"ab"), Bound::Excluded(Slice::from(&b"ac"[..])));
        assert_eq!(end(b"a\xff\xff"), Bound::Excluded(Slice::from(&b"b"[..])));
        assert_eq!(end(b"\xff\xff"), Bound::Unbounded);
        assert_eq!(end(b""), Bound::Unbounded);
    }
}
