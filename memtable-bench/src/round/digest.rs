//! A count and a sum over what a table gave back, in any order. It costs little while the clock runs, and makes the table
//! show the bytes, as a reader would.

use std::iter::Sum;
use std::ops::{Add, Sub};

/// See the file's header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Digest {
    pub(super) count: u64,
    sum: u64,
}

impl Digest {
    /// Operations that give nothing back.
    pub(super) fn of_count(count: usize) -> Self {
        Self { count: count as u64, sum: 0 }
    }

    #[inline]
    pub(super) fn of_value(value: &[u8]) -> Self {
        Self { count: 1, sum: value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)) }
    }

    #[inline]
    pub(super) fn of_entry(key: &[u8], value: &[u8]) -> Self {
        let last = key.last().map_or(0, |byte| u64::from(*byte));
        Self { count: 1, sum: Self::of_value(value).sum.wrapping_add(last) }
    }

    /// Adds each entry that it is called with.
    #[inline]
    pub(super) fn adder(&mut self) -> impl FnMut(&[u8], &[u8]) {
        |key, value| *self = *self + Self::of_entry(key, value)
    }
}

impl Add for Digest {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self { count: self.count + other.count, sum: self.sum.wrapping_add(other.sum) }
    }
}

/// What remains of a sum without a part of it.
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
