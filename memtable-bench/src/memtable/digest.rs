//! A count and a sum over what a table gave back, in any order: cheap enough for the clock, and it makes the table show the
//! bytes, as a reader would want them.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

/// See the file's header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) count: u64,
    sum: u64,
}

impl Digest {
    #[inline]
    pub(crate) fn of_value(value: &[u8]) -> Self {
        Self { count: 1, sum: value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)) }
    }

    #[inline]
    pub(crate) fn of_entry(key: &[u8], value: &[u8]) -> Self {
        let last = key.last().map_or(0, |byte| u64::from(*byte));
        Self { count: 1, sum: Self::of_value(value).sum.wrapping_add(last) }
    }
}

impl Add for Digest {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self { count: self.count + other.count, sum: self.sum.wrapping_add(other.sum) }
    }
}

impl AddAssign for Digest {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// What is left of a sum without one that is part of it.
impl Sub for Digest {
    type Output = Self;

    fn sub(self, part: Self) -> Self {
        Self { count: self.count - part.count, sum: self.sum.wrapping_sub(part.sum) }
    }
}

impl Sum for Digest {
    #[inline]
    fn sum<I: Iterator<Item = Self>>(digests: I) -> Self {
        digests.fold(Self::default(), Add::add)
    }
}
