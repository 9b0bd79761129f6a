//! The order of a table's keys.
//!
//! The table compares *sort keys*, as bytes, and lets the order break ties of equal ones. Followed by endless zeros, the sort keys of ascending keys
//! never descend. The rules of partial keys (`key.rs`) need nothing else, so links and hints hold partial keys of sort keys, and only ties call the
//! caller's code. The head has an empty sort key, which precedes or ties with every other.
//!
//! No memory access depends on an order, whatever it returns: searches take ids only from links and hints, and a node is linked only by the
//! compare-and-swap of a link that was read before. So the list stays one chain of written nodes, although it may be unsorted. Iterators follow the
//! chain in both directions (`iter/position.rs`), a step backward perhaps through all of it: so each walk ends, although it may take O(n) a step.

use core::cmp::Ordering;

/// An order of byte keys. [`Bytewise`] is the default of both tables; [`Builder::order`](crate::Builder::order) sets another one.
///
/// A key `a` is less than `b` if its sort key is less, byte by byte, or if the sort keys are equal and [`break_tie`](Self::break_tie) returns
/// [`Less`](Ordering::Less). A sort key need not distinguish all keys: it may be the first part, a truncated form, or empty. But nearly all steps
/// of a search compare only the bytes that the index stores of sort keys, whereas a tie costs a cache miss. So let it distinguish most keys that
/// are often neighbours. A sort key is computed for each comparison: it should be a part of the key or an array, not a `Vec`.
///
/// Keys that compare as [`Equal`](Ordering::Equal) are one key to the table, even if their bytes differ. An entry of a
/// [`ConcurrentSkipList`](crate::ConcurrentSkipList), or a version in a [`Memtable`](crate::Memtable), keeps the bytes of the key with which it was
/// first written.
///
/// # Promises
///
/// For keys of any bytes and any length, the two functions must return the same results in every call, and `break_tie` must be a total order of the
/// keys that have the same sort key. If the results break these promises, reads and writes may miss entries or return those of other keys, ranges may
/// be unsorted, steps may take O(n), and the index may take more memory than an honest order needs. But there is no undefined behaviour, and every call
/// returns and keeps the table usable.
///
/// The functions must return, must not panic, and must not use the table. A panic unwinds through the call without undefined behaviour, but a write
/// that it ends may stay in the figures, and an order that calls the table may wait for itself.
///
/// ```
/// use std::cmp::Ordering;
/// use fastskip::{Memtable, Order};
///
/// /// A name, and a timestamp of eight bytes: the latest first.
/// struct Latest;
///
/// impl Order for Latest {
///     type SortKey<'k> = &'k [u8];
///
///     fn sort_key(key: &[u8]) -> &[u8] {
///         &key[..key.len().saturating_sub(8)]
///     }
///
///     fn break_tie(a: &[u8], b: &[u8]) -> Ordering {
///         b.cmp(a)
///     }
/// }
///
/// let memtable = Memtable::builder().order::<Latest>().build();
/// for key in [b"a\0\0\0\0\0\0\0\x01", b"a\0\0\0\0\0\0\0\x02", b"b\0\0\0\0\0\0\0\x01"] {
///     memtable.put(key, 1, b"")?;
/// }
/// let keys: Vec<_> = memtable.iter(1).map(|version| (version.key[0], version.key[8])).collect();
/// assert_eq!(keys, [(b'a', 2), (b'a', 1), (b'b', 1)]);
/// # Ok::<(), fastskip::InsertError>(())
/// ```
pub trait Order: 'static {
    /// The type of sort keys.
    type SortKey<'k>: AsRef<[u8]>;

    /// The sort key of `key`.
    fn sort_key(key: &[u8]) -> Self::SortKey<'_>;

    /// The order of two keys that have the same sort key. Default: they are equal.
    #[inline(always)]
    fn break_tie(_a: &[u8], _b: &[u8]) -> Ordering {
        Ordering::Equal
    }

    /// The order of two keys, for callers. Tables do not call it.
    #[must_use]
    fn compare(a: &[u8], b: &[u8]) -> Ordering {
        Self::sort_key(a).as_ref().cmp(Self::sort_key(b).as_ref()).then_with(|| Self::break_tie(a, b))
    }
}

/// The order of the keys' bytes, as of slices: the sort key is the key itself.
#[derive(Debug, Clone, Copy)]
pub struct Bytewise;

impl Order for Bytewise {
    type SortKey<'k> = &'k [u8];

    #[inline(always)]
    fn sort_key(key: &[u8]) -> &[u8] {
        key
    }
}
