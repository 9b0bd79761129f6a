//! [`KeyPrefix`]: the encoding of a key and its keyspace as a stored key.
//!
//! All keyspaces share the log, the memtables and the tables. A *stored key* is the prefix of a keyspace, followed by the user's key. The prefix is
//! `ff` and the keyspace's number. A number up to `f7` takes one byte; for a greater one, `f7` plus its length in bytes is followed by the number,
//! highest byte first. The default keyspace has the number 0 and stores its keys unchanged, except those that begin with `ff`: these get the prefix
//! of the number 0, `ff 00`. So a program that uses no other keyspace only pays for the comparison of one byte.
//!
//! K1 order: within a keyspace, stored keys are ordered like the user's keys; keyspaces are ordered by their numbers.
//! K2 contiguity: no prefix is a prefix of another, so no key of another keyspace lies between two of one. The default keyspace ends at `ff 01`.
//! K3 suffix: the user's key is the end of the stored key.

use std::ops::Bound;

use super::key_bounds::{KeyBounds, OwnedBounds, after_prefix};
use super::slice::Slice;

/// The number of a keyspace. No number is assigned twice in a database.
pub(crate) type KeyspaceId = u32;

/// The number of the keyspace to which calls of a [`Db`](crate::Db) itself apply.
pub(crate) const DEFAULT_KEYSPACE: KeyspaceId = 0;

/// The first byte of every prefix.
const ESCAPE: u8 = 0xff;
/// The maximum length of a prefix, in bytes.
pub(super) const MAX_PREFIX_LEN: usize = 6;
/// The greatest number that takes one byte in a prefix.
const MAX_SHORT_ID: u8 = 0xf7;
/// The end of the default keyspace.
const DEFAULT_END: &[u8] = &[ESCAPE, 1];
/// Stored keys up to this length are composed without an allocation.
const SHORT: usize = 128;

/// The prefix of the stored keys of one keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyPrefix {
    /// Keys whose first byte is below this one are stored without the prefix.
    plain_below: u8,
    len: u8,
    bytes: [u8; MAX_PREFIX_LEN],
}

impl KeyPrefix {
    pub(crate) const DEFAULT: Self = Self { plain_below: ESCAPE, len: 2, bytes: [ESCAPE, 0, 0, 0, 0, 0] };

    /// A prefix that belongs to no keyspace: stored keys are used unchanged.
    pub(crate) const NONE: Self = Self { plain_below: 0, len: 0, bytes: [0; MAX_PREFIX_LEN] };

    pub(crate) fn of(id: KeyspaceId) -> Self {
        if id == DEFAULT_KEYSPACE {
            return Self::DEFAULT;
        }
        let [a, b, c, d] = id.to_be_bytes();
        let (len, bytes) = match id {
            0..=0xf7 => (2, [ESCAPE, d, 0, 0, 0, 0]),
            0xf8..=0xff => (3, [ESCAPE, MAX_SHORT_ID + 1, d, 0, 0, 0]),
            0x100..=0xffff => (4, [ESCAPE, MAX_SHORT_ID + 2, c, d, 0, 0]),
            0x1_0000..=0xff_ffff => (5, [ESCAPE, MAX_SHORT_ID + 3, b, c, d, 0]),
            0x100_0000.. => (6, [ESCAPE, MAX_SHORT_ID + 4, a, b, c, d]),
        };
        Self { plain_below: 0, len, bytes }
    }

    fn is_default(&self) -> bool {
        self.plain_below > 0
    }

    pub(crate) fn id(&self) -> KeyspaceId {
        split_stored(self.bytes()).map_or(DEFAULT_KEYSPACE, |(id, _)| id)
    }

    /// The bytes that precede `key` in its stored key.
    #[inline(always)]
    pub(crate) fn before(&self, key: &[u8]) -> &[u8] {
        if self.is_plain(key) { &[] } else { self.bytes() }
    }

    /// Calls `then` with the stored key of `key`. Allocates only for a long key.
    #[inline(always)]
    pub(crate) fn with_stored<T>(&self, key: &[u8], then: impl FnOnce(&[u8]) -> T) -> T {
        let (mut short, long);
        let stored = match self.before(key) {
            [] => key,
            before if before.len() + key.len() <= SHORT => {
                short = [0; SHORT];
                let (stored, _) = short.split_at_mut(before.len() + key.len());
                stored[..before.len()].copy_from_slice(before);
                stored[before.len()..].copy_from_slice(key);
                stored
            }
            before => {
                long = [before, key].concat();
                &long
            }
        };
        then(stored)
    }

    /// Calls `then` with the stored keys of `keys`. The caller's iterator is read to its end first.
    pub(crate) fn with_all_stored<K: AsRef<[u8]>, T>(
        &self,
        keys: impl IntoIterator<Item = K>,
        then: impl FnOnce(&[&[u8]]) -> T,
    ) -> T {
        let keys: Vec<K> = keys.into_iter().collect();
        let mut prefixed = Vec::new();
        for key in keys.iter().map(K::as_ref).filter(|key| !self.is_plain(key)) {
            prefixed.extend_from_slice(self.bytes());
            prefixed.extend_from_slice(key);
        }
        let mut rest = &prefixed[..];
        let stored = keys.iter().map(K::as_ref).map(|key| match self.before(key) {
            [] => key,
            before => rest.split_off(..before.len() + key.len()).unwrap_or_default(),
        });
        then(&stored.collect::<Vec<_>>())
    }

    /// The user's key in a stored key of this keyspace.
    #[inline(always)]
    pub(crate) fn strip<'a>(&self, stored: &'a [u8]) -> &'a [u8] {
        if self.is_plain(stored) { stored } else { stored.get(self.len.into()..).unwrap_or_default() }
    }

    /// The length of the prefix in a stored key of this keyspace, of which at least the first byte must be given.
    #[inline(always)]
    pub(crate) fn len_in(&self, stored: &[u8]) -> usize {
        if self.is_plain(stored) { 0 } else { self.len.into() }
    }

    /// Turns `bounds` of the user's keys into bounds of the keys that this keyspace stores.
    pub(crate) fn bounds(&self, bounds: &impl KeyBounds) -> OwnedBounds {
        let stored = |key: &[u8]| self.with_stored(key, |stored| Slice::from(stored));
        let start = match bounds.start() {
            Bound::Unbounded => self.start(),
            bound => bound.map(stored),
        };
        let end = match bounds.end() {
            Bound::Unbounded => Bound::Excluded(self.end()),
            bound => bound.map(stored),
        };
        (start, end)
    }

    /// The position after all stored keys of this keyspace.
    pub(crate) fn end(&self) -> Slice {
        match self.is_default() {
            true => Slice::from(DEFAULT_END),
            // The second byte is never `ff`, so an end exists.
            false => after_prefix(self.bytes()).map(Slice::from).unwrap_or_default(),
        }
    }

    /// Whether this upper bound is the end of the default keyspace: there are no keys beyond it unless there are other keyspaces.
    pub(crate) fn is_default_end(upper: &Bound<Slice>) -> bool {
        matches!(upper, Bound::Excluded(end) if **end == *DEFAULT_END)
    }

    fn start(&self) -> Bound<Slice> {
        if self.is_default() { Bound::Unbounded } else { Bound::Included(Slice::from(self.bytes())) }
    }

    /// Whether the stored key of `key` is `key` itself. This is never the case outside of the default keyspace.
    #[inline(always)]
    pub(crate) fn is_plain(&self, key: &[u8]) -> bool {
        key.first().copied().unwrap_or(0) < self.plain_below
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// The keyspace and the user's key of a stored key; `None` if it is not a valid stored key.
#[inline]
pub(crate) fn split_stored(stored: &[u8]) -> Option<(KeyspaceId, &[u8])> {
    if is_stored_plain(stored) {
        return Some((DEFAULT_KEYSPACE, stored));
    }
    let (&first, rest) = stored.get(1..)?.split_first()?;
    let len = first.saturating_sub(MAX_SHORT_ID);
    if len == 0 {
        return Some((first.into(), rest));
    }
    let (number, key) = rest.split_at_checked(len.into())?;
    let id = number.iter().fold(0u64, |id, byte| id << 8 | u64::from(*byte));
    let id = KeyspaceId::try_from(id).ok()?;
    // A longer encoding of the same number is not a valid prefix.
    (KeyPrefix::of(id).len == len + 2).then_some((id, key))
}

/// Whether two stored keys are of one keyspace.
pub(crate) fn is_same_keyspace(one: &[u8], other: &[u8]) -> bool {
    let keyspace = |stored| split_stored(stored).map(|(keyspace, _)| keyspace);
    keyspace(one) == keyspace(other)
}

/// The keyspace of a range of stored keys, the user's first key and the end, which is empty at the end of the keyspace.
pub(crate) fn split_range<'a>(start: &'a [u8], end: &'a [u8]) -> Option<(KeyspaceId, &'a [u8], &'a [u8])> {
    let (id, start) = split_stored(start)?;
    let own_end = split_stored(end).filter(|(of_end, _)| *of_end == id);
    Some((id, start, own_end.map_or(&[], |(_, end)| end)))
}

/// Whether a stored key belongs to the default keyspace and has no prefix.
#[inline(always)]
pub(crate) fn is_stored_plain(stored: &[u8]) -> bool {
    stored.first() != Some(&ESCAPE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::{MAX_KEY_LEN, is_above, is_below};

    fn stored(id: KeyspaceId, key: &[u8]) -> Vec<u8> {
        KeyPrefix::of(id).with_stored(key, <[u8]>::to_vec)
    }

    fn any_key() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![4 => Just(0xff), 2 => Just(0), 1 => Just(1), 1 => Just(0x80), 3 => any::<u8>()];
        prop::collection::vec(byte, 0..6)
    }

    fn any_id() -> impl Strategy<Value = KeyspaceId> {
        prop_oneof![3 => 0..4u32, 1 => 0xf6..0x102u32, 1 => 0xfffe..0x1_0002u32, 1 => 0xff_fffe..0x100_0002u32, 1 => any::<u32>(), 1 => Just(u32::MAX)]
    }

    fn any_bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
        prop_oneof![any_key().prop_map(Bound::Included), any_key().prop_map(Bound::Excluded), Just(Bound::Unbounded)]
    }

    #[test]
    fn prefixes_are_those_of_the_format() {
        // Catches a change of the encoding: existing databases would show other keys.
        assert_eq!(stored(0, b"a"), b"a");
        assert_eq!(stored(0, b""), b"");
        assert_eq!(stored(0, b"\xff"), b"\xff\0\xff");
        assert_eq!(stored(0, b"\xfe\xff"), b"\xfe\xff");
        assert_eq!(stored(1, b"a"), b"\xff\x01a");
        assert_eq!(stored(1, b""), b"\xff\x01");
        assert_eq!(stored(0xf7, b"a"), b"\xff\xf7a");
        assert_eq!(stored(0xf8, b"a"), b"\xff\xf8\xf8a");
        assert_eq!(stored(300, b"\xff"), b"\xff\xf9\x01\x2c\xff");
        assert_eq!(stored(0x01_0203, b"a"), b"\xff\xfa\x01\x02\x03a");
        assert_eq!(stored(u32::MAX, b"a"), b"\xff\xfb\xff\xff\xff\xffa");
    }

    #[test]
    fn bytes_that_are_no_stored_key_are_none() {
        // Catches a stored key without a number, or with a number in a longer encoding, that is decoded as the key of some keyspace.
        let bad: [&[u8]; 6] =
            [b"\xff", b"\xff\xf8", b"\xff\xf8\xf7", b"\xff\xf9\0\xf8", b"\xff\xfb\0\x01\0\0", b"\xff\xfc\x01\0\0\0\0"];
        for bytes in bad {
            assert_eq!(split_stored(bytes), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn each_key_comes_back_in_its_keyspace_and_in_its_place(
            (a, b) in ((any_id(), any_key()), (any_id(), any_key())),
        ) {
            // Catches two keys with the same stored key, a keyspace between the keys of another, and a different order of the keys.
            let (prefix_a, prefix_b) = (KeyPrefix::of(a.0), KeyPrefix::of(b.0));
            let (stored_a, stored_b) = (stored(a.0, &a.1), stored(b.0, &b.1));
            prop_assert_eq!(split_stored(&stored_a), Some((a.0, &a.1[..])));
            prop_assert_eq!(prefix_a.strip(&stored_a), &a.1[..]);
            prop_assert_eq!(prefix_a.id(), a.0);
            prop_assert_eq!(is_stored_plain(&stored_a), stored_a.len() == a.1.len());
            prop_assert_eq!(&*[prefix_a.before(&a.1), &a.1].concat(), &*stored_a);
            if a.0 == b.0 {
                prop_assert_eq!(stored_a.cmp(&stored_b), a.1.cmp(&b.1));
            } else {
                prop_assert_eq!(stored_a.cmp(&stored_b), a.0.cmp(&b.0));
                let (low, high) = (prefix_a.bounds(&..), prefix_b.bounds(&..));
                let is_in = |bounds: &OwnedBounds, key: &[u8]| {
                    is_above(key, bounds.0.as_ref().map(|key| &**key)) && is_below(key, bounds.1.as_ref().map(|key| &**key))
                };
                prop_assert!(is_in(&low, &stored_a) && !is_in(&low, &stored_b));
                prop_assert!(is_in(&high, &stored_b) && !is_in(&high, &stored_a));
            }
        }

        #[test]
        fn bounds_hold_the_stored_keys_of_the_keys_within_them(
            (id, bounds) in (any_id(), (any_bound(), any_bound())),
            keys in prop::collection::vec((any_id(), any_key()), 1..20),
        ) {
            // Catches a range that includes keys of another keyspace, and one that misses a key at its end.
            let stored_bounds = KeyPrefix::of(id).bounds(&bounds);
            let within = |bounds: &dyn Fn() -> (Bound<Vec<u8>>, Bound<Vec<u8>>), key: &[u8]| {
                let (lower, upper) = bounds();
                is_above(key, lower.as_ref().map(|key| &**key)) && is_below(key, upper.as_ref().map(|key| &**key))
            };
            let of_stored = || (stored_bounds.0.as_ref().map(|key| key.to_vec()), stored_bounds.1.as_ref().map(|key| key.to_vec()));
            for (of, key) in keys.iter().chain([&(id, vec![]), &(id, vec![0xff]), &(id, vec![0xff; 9])]) {
                let stored = stored(*of, key);
                let expected = *of == id && within(&|| bounds.clone(), key);
                prop_assert_eq!(within(&of_stored, &stored), expected, "{:?} of {} in {:?}", key, of, stored_bounds);
            }
        }

        #[test]
        fn many_keys_are_stored_as_each(id in any_id(), keys in prop::collection::vec(any_key(), 0..20)) {
            // Catches a list in which a key replaces its neighbour.
            let each: Vec<_> = keys.iter().map(|key| stored(id, key)).collect();
            KeyPrefix::of(id).with_all_stored(&keys, |all| assert_eq!(all, each));
        }

        #[test]
        fn random_bytes_are_split_into_what_makes_them_again(bytes in any_key()) {
            // Catches bytes from disk that cause a panic, or are decoded as another key.
            if let Some((id, key)) = split_stored(&bytes) {
                prop_assert!(id == DEFAULT_KEYSPACE && bytes.starts_with(b"\xff\0") || stored(id, key) == bytes);
            }
        }
    }

    #[test]
    fn long_keys_are_stored_whole() {
        // Catches a key that is truncated if it does not fit into the inline buffer.
        for len in [SHORT - 3, SHORT - 2, SHORT - 1, SHORT, MAX_KEY_LEN] {
            let key = vec![b'k'; len];
            KeyPrefix::of(9).with_stored(&key, |stored| assert_eq!(stored, [b"\xff\x09", &key[..]].concat()));
        }
    }
}
