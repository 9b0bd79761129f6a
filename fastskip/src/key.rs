//! The order of keys, and the partial keys that links carry: with them, most comparisons need not read the node.
//!
//! A link from node P to its successor S holds a *partial key* (Bohannon, McIlroy and Rastogi, "Main-memory index structures with fixed-size partial
//! keys", 2001): the length `q` of the prefix that P and S share, and the next three bytes of S. A search for a target T that has reached a node P <
//! T has the length `r` of the prefix that P and T share. Comparing the two lengths gives:
//!
//! * q > r: S still agrees with P at a byte where T is already greater than P, so S < T;
//! * q < r: S is already greater than P at a byte where T still agrees with P, so S > T;
//! * q = r: the next bytes of S and T decide; only if they are equal must S itself be read.
//!
//! A partial key is stored as `(255 - q) << 24 | bytes`, and T gets a partial key in the same way, from `r`. So comparing these two integers covers
//! all three rules. So a node after the target, as in half of all comparisons, is never read.
//!
//! For this purpose, keys are compared as if they were followed by endless zeros. That order never contradicts the byte order; it only has more ties
//! (`a` and `a\0`), which are settled by comparing the whole keys. Lengths stop at 255: two keys that share more bytes are distinguished by their
//! bytes 255..258, or else by the whole keys. The head stands for the empty key, which precedes every key in both orders.
//!
//! All this holds for the sort keys of a table's [`Order`], which are the keys themselves if the order is bytewise. Whole keys are then compared by
//! their sort keys first, and by the order's tie-break last.
//!
//! I9 partial key: every link holds the partial key that [`PartialKey::between`] computes from the sort keys of its two nodes. Checked by `validate`.

use core::cmp::Ordering;

use crate::order::Order;

/// The maximum counted length of a shared prefix.
pub(crate) const MAX_SHARED: u32 = 255;

/// The partial key of a link's successor, relative to the node that holds the link. A smaller one belongs to a smaller key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PartialKey(pub(crate) u32);

impl PartialKey {
    /// The partial key of the link at the end of a level: greater than or equal to that of any key.
    pub(crate) const END: Self = Self(u32::MAX);

    /// The partial key of `key`, relative to a node that shares `shared` bytes with it.
    #[inline(always)]
    pub(crate) fn new(key: &[u8], shared: u32) -> Self {
        Self((MAX_SHARED - shared) << 24 | four_bytes(key, shared as usize) >> 8)
    }

    /// [`new`](Self::new) for the sort key of `key` in an order.
    #[inline(always)]
    pub(crate) fn of<O: Order>(key: &[u8], shared: u32) -> Self {
        Self::new(O::sort_key(key).as_ref(), shared)
    }

    /// The partial key of a link from a node with sort key `from` to one with sort key `to`.
    pub(crate) fn between(from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Self {
        let (from, to) = (from.as_ref(), to.as_ref());
        Self::new(to, compare(from, to, 0).1)
    }

    /// The length of the shared prefix for which the partial key was made.
    #[inline(always)]
    pub(crate) fn shared(self) -> u32 {
        MAX_SHARED - (self.0 >> 24)
    }

    /// Whether the two keys of the link may be equal. Equal keys share every byte, and then endless zeros, so their shared length is [`MAX_SHARED`];
    /// any two keys that share fewer bytes differ.
    #[inline(always)]
    pub(crate) fn may_be_same_key(self) -> bool {
        self.shared() == MAX_SHARED
    }

    /// The number of further bytes that two keys certainly share if their partial keys have the same `shared`: 0, 1 or 2, or more than 2 if the
    /// partial keys are equal.
    #[inline(always)]
    pub(crate) fn more_shared(self, other: Self) -> u32 {
        ((self.0 ^ other.0) << 8).leading_zeros() / 8
    }
}

/// The order of two keys; most sort keys differ in their first eight bytes, which are compared without a function call.
#[inline(always)]
pub(crate) fn order<O: Order>(a: &[u8], b: &[u8]) -> Ordering {
    let (sort_a, sort_b) = (O::sort_key(a), O::sort_key(b));
    let (sort_a, sort_b) = (sort_a.as_ref(), sort_b.as_ref());
    match (word_at(sort_a, 0), word_at(sort_b, 0)) {
        (Some(x), Some(y)) if x != y => x.cmp(&y),
        _ => sort_a.cmp(sort_b).then_with(|| O::break_tie(a, b)),
    }
}

/// Whether two keys are the same in their order.
#[inline(always)]
pub(crate) fn is_same<O: Order>(a: &[u8], b: &[u8]) -> bool {
    O::sort_key(a).as_ref() == O::sort_key(b).as_ref() && O::break_tie(a, b) == Ordering::Equal
}

/// The order of two keys, and what [`compare`] returns for the length that their sort keys share.
#[inline(always)]
pub(crate) fn compare_keys<O: Order>(a: &[u8], b: &[u8], known: u32) -> (Ordering, u32) {
    let (order, shared) = compare(O::sort_key(a).as_ref(), O::sort_key(b).as_ref(), known);
    (order.then_with(|| O::break_tie(a, b)), shared)
}

/// The four bytes of `key` from `at` on, as a big-endian number; bytes past the end of the key are zeros.
#[inline(always)]
pub(crate) fn four_bytes(key: &[u8], at: usize) -> u32 {
    match key.get(at..at.wrapping_add(4)).and_then(|bytes| bytes.first_chunk()) {
        Some(bytes) => u32::from_be_bytes(*bytes),
        None => last_bytes(key, at),
    }
}

/// [`four_bytes`] if fewer than four bytes are left.
#[inline]
fn last_bytes(key: &[u8], at: usize) -> u32 {
    match key.last_chunk() {
        // The bytes before `at` are shifted out.
        Some(bytes) => u32::from_be_bytes(*bytes).checked_shl(8 * (at + 4 - key.len()) as u32).unwrap_or(0),
        None => (at..at + 4).fold(0, |bytes, at| bytes << 8 | u32::from(key.get(at).copied().unwrap_or(0))),
    }
}

/// The order of `a` and `b`, and the length of the zero-padded prefix they share, at most [`MAX_SHARED`]. The first `known` bytes are known to be
/// equal and are not compared again.
#[inline]
pub(crate) fn compare(a: &[u8], b: &[u8], known: u32) -> (Ordering, u32) {
    let both = a.len().min(b.len());
    let (x, y) = (&a[..both], &b[..both]);
    let mut at = (known as usize).min(both);
    while let (Some(x), Some(y)) = (word_at(x, at), word_at(y, at)) {
        if x != y {
            return by_words(x, y, at);
        }
        at += 8;
    }
    if at < both {
        // Compares the last eight bytes, some of which are known to be equal.
        if let (Some(x), Some(y)) = (x.last_chunk().copied(), y.last_chunk().copied()) {
            if x != y {
                return by_words(x, y, both - 8);
            }
        } else if let Some(same) = (at..both).find(|&at| x[at] != y[at]) {
            return (x[same].cmp(&y[same]), same as u32);
        }
    }
    if a.len() == b.len() {
        return (Ordering::Equal, MAX_SHARED);
    }
    (a.len().cmp(&b.len()), padded_end(if a.len() > both { a } else { b }, both))
}

/// The order of two different groups of eight bytes that begin at `at` in their keys, and the position of the first difference.
#[inline(always)]
fn by_words(x: [u8; 8], y: [u8; 8], at: usize) -> (Ordering, u32) {
    let (x, y) = (u64::from_be_bytes(x), u64::from_be_bytes(y));
    (x.cmp(&y), (at + (x ^ y).leading_zeros() as usize / 8).min(MAX_SHARED as usize) as u32)
}

#[inline(always)]
fn word_at(key: &[u8], at: usize) -> Option<[u8; 8]> {
    key.get(at..at.wrapping_add(8)).and_then(|bytes| bytes.first_chunk()).copied()
}

/// The first place where `longer` differs from its own first `both` bytes followed by zeros.
#[inline]
fn padded_end(longer: &[u8], both: usize) -> u32 {
    let window = longer.len().min(MAX_SHARED as usize);
    match longer.get(both..window).and_then(|rest| rest.iter().position(|&byte| byte != 0)) {
        Some(zeros) => (both + zeros) as u32,
        None => MAX_SHARED,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::order::Bytewise;

    fn padded(key: &[u8]) -> Vec<u8> {
        let mut long = key.to_vec();
        long.resize(600, 0);
        long
    }

    /// Short keys over few byte values, so that shared prefixes, zeros and equal partial keys are common, and a few keys
    /// past the 255 bytes that a partial key can count.
    fn keys() -> impl Strategy<Value = Vec<u8>> {
        let bytes = prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(255)], 0..6);
        (prop_oneof![4 => Just(0_usize), 1 => 250..260_usize], bytes).prop_map(|(fill, tail)| {
            let mut key = vec![7; fill];
            key.extend(tail);
            key
        })
    }

    /// Catches a partial key that distinguishes too few keys: searches would still be right, but would read every node that they pass.
    #[test]
    fn partial_keys_tell_keys_apart_by_their_next_three_bytes() {
        for (shared, less, greater) in
            [(0, "abcx", "abda"), (0, "", "a"), (0, "ab", "abb"), (2, "xxb", "xxc"), (3, "abcdefgh", "abcdegaa")]
        {
            let (less, greater) =
                (PartialKey::new(less.as_bytes(), shared), PartialKey::new(greater.as_bytes(), shared));
            assert!(less < greater);
            assert_eq!((less.shared(), greater.shared()), (shared, shared));
        }
    }

    /// Catches a comparison that goes byte by byte where eight bytes could be compared at once: it would be right, but slow.
    #[test]
    fn words_are_read_wherever_eight_bytes_are_left() {
        let key: Vec<_> = (1..=10).collect();
        let words: Vec<_> = (0..12).map_while(|at| word_at(&key, at).map(u64::from_be_bytes)).collect();
        assert_eq!(words, [0x0102_0304_0506_0708, 0x0203_0405_0607_0809, 0x0304_0506_0708_090a]);
    }

    proptest! {
        /// Catches a comparison that is wrong at a word boundary, at an end or with `known` bytes skipped.
        #[test]
        fn comparison_is_that_of_slices(a in keys(), b in keys()) {
            let shared = padded(&a).iter().zip(&padded(&b)).take_while(|(x, y)| x == y).count().min(255) as u32;
            for known in 0..=shared {
                prop_assert_eq!(compare(&a, &b, known), (a.cmp(&b), shared));
            }
            prop_assert_eq!(order::<Bytewise>(&a, &b), a.cmp(&b));
        }

        /// Catches a link that distinguishes equal keys, so that a walk would show two versions of a key; and a link that distinguishes no keys.
        #[test]
        fn links_tell_keys_apart_but_not_equal_ones(key in keys(), other in keys()) {
            let differ_early = padded(&key)[..255] != padded(&other)[..255];
            prop_assert!(PartialKey::between(&key, &key).may_be_same_key());
            prop_assert_eq!(PartialKey::between(&key, &other).may_be_same_key(), !differ_early);
        }

        /// Catches a partial key that sends a search past its target: whenever two partial keys differ, their order is that of the keys.
        #[test]
        fn partial_keys_never_contradict_keys(mut three in prop::collection::vec(keys(), 3..=3)) {
            three.sort();
            let (from, rest) = three.split_first().unwrap();
            for (s, t) in [(&rest[0], &rest[1]), (&rest[1], &rest[0])] {
                let link = PartialKey::between(from, s);
                let target = PartialKey::between(from, t);
                prop_assert!(link <= PartialKey::END);
                if link != target {
                    prop_assert_eq!(link < target, s < t);
                }
                if link < target {
                    let r = compare(from, t, 0).1;
                    let now = if link.shared() == r { r + link.more_shared(target) } else { r };
                    prop_assert_eq!(now.min(MAX_SHARED), compare(s, t, 0).1);
                }
            }
        }
    }
}
