//! A count and a sum over the entries that a subject returned, in any order. It costs little while the clock runs, and it makes the subject read
//! the bytes, as a caller would.

use crate::spec::Workload;
use crate::text::name;

/// The count is in the upper bits, the sum of values in the lower: the sum of four billion values does not reach the count.
pub(super) type Digest = u128;

const ONE: Digest = 1 << 96;

pub(super) fn count(digest: Digest) -> u128 {
    digest / ONE
}

/// The digest of operations that return no data.
pub(super) fn of_count(count: usize) -> Digest {
    count as u128 * ONE
}

#[inline]
pub(super) fn of_value(value: &[u8]) -> Digest {
    ONE + value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes).into())
}

#[inline]
pub(super) fn of_entry(key: &[u8], value: &[u8]) -> Digest {
    of_value(value) + key.last().map_or(0, |byte| Digest::from(*byte))
}

/// A function that adds each entry to `sum`.
#[inline]
pub(super) fn adder(sum: &mut Digest) -> impl FnMut(&[u8], &[u8]) {
    |key, value| *sum += of_entry(key, value)
}

/// Compares the results of the operations of `workload` with the expected ones.
pub(super) fn compare(workload: Workload, found: Digest, expected: Digest) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let (workload, expected, found) = (name(workload), count(expected), count(found));
    Err(format!("{workload}: expected {expected} right values, found {found}, not all of them right"))
}
