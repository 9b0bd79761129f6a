//! [`RangeTombstone`]: the removal of a range of keys.
//!
//! A range extends from its first key to its *end*, which is exclusive. An end is a position between keys: a key, or a key followed by a zero byte.
//! The latter is the position directly after that key, and may be one byte longer than any key. In batches and memtables a range may have no end;
//! this is represented by the empty string, since no key is less than that.

use std::ops::Bound;

use super::key_bounds::after_prefix;
use crate::types::{KeyBounds, MAX_STORED_KEY_LEN, SeqNo, Slice};

/// The maximum length of a range's end, in bytes: the position directly after the longest key.
pub(crate) const MAX_END_LEN: usize = MAX_STORED_KEY_LEN + 1;

/// The removal of the keys of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RangeTombstone {
    pub(crate) start: Slice,
    pub(crate) end: Slice,
    pub(crate) seqno: SeqNo,
}

impl RangeTombstone {
    /// The part of the range from `from` up to `end`, exclusive; an empty `end` means no end.
    pub(crate) fn within(self, from: &Slice, end: &Slice) -> Option<Self> {
        let start = if self.start < *from { from.clone() } else { self.start };
        let ends_first = !self.end.is_empty() && is_before_end(&self.end, end);
        let end = if ends_first { self.end } else { end.clone() };
        Self { start, end, ..self }.begin_at_key()
    }

    /// The same range with its first key as its start, if it contains a key: it may have been cut at a position that is not a key.
    pub(super) fn begin_at_key(self) -> Option<Self> {
        let start = first_key_at(self.start)?;
        is_before_end(&start, &self.end).then_some(Self { start, ..self })
    }
}

/// The first key and the end of the range of keys within `bounds`; `None` if there can be none.
pub(crate) fn start_and_end(bounds: &impl KeyBounds) -> Option<(Vec<u8>, Vec<u8>)> {
    let start = match bounds.start() {
        Bound::Unbounded => Vec::new(),
        Bound::Included(key) => key.to_vec(),
        Bound::Excluded(key) if key.len() < MAX_STORED_KEY_LEN => place_after(key),
        // No longer key has this key as a prefix.
        Bound::Excluded(key) => after_prefix(key)?,
    };
    let end = match bounds.end() {
        Bound::Unbounded => Vec::new(),
        Bound::Excluded([]) => return None,
        Bound::Excluded(key) => key.to_vec(),
        Bound::Included(key) => place_after(key),
    };
    is_before_end(&start, &end).then_some((start, end))
}

pub(crate) fn place_after(key: &[u8]) -> Vec<u8> {
    let mut place = Vec::with_capacity(key.len() + 1);
    place.extend_from_slice(key);
    place.push(0);
    place
}

/// The first key at or after a position. No longer key has a key of the maximum length as a prefix.
fn first_key_at(place: Slice) -> Option<Slice> {
    match place.split_at_checked(MAX_STORED_KEY_LEN) {
        Some((key, [_, ..])) => after_prefix(key).map(Slice::from),
        _ => Some(place),
    }
}

/// Whether `key` comes before `end`; an empty `end` means no end.
pub(crate) fn is_before_end(key: &[u8], end: &[u8]) -> bool {
    end.is_empty() || key < end
}

/// Whether bytes can be an end: if they are longer than any key, they must be the position directly after a key.
pub(crate) fn is_end(end: &[u8]) -> bool {
    end.len() <= MAX_STORED_KEY_LEN || end.len() == MAX_END_LEN && end.last() == Some(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_any_kind_become_a_first_key_and_an_end() {
        // Catches an included bound treated as an excluded one or the reverse, and ranges without a key that become ranges of all keys.
        use Bound::{Excluded, Included, Unbounded};
        let of = |lower: Bound<&'static [u8]>, upper: Bound<&'static [u8]>| start_and_end(&(lower, upper));
        let some = |start: &[u8], end: &[u8]| Some((start.to_vec(), end.to_vec()));
        assert_eq!(of(Unbounded, Unbounded), some(b"", b""));
        assert_eq!(of(Included(b"a"), Excluded(b"b")), some(b"a", b"b"));
        assert_eq!(of(Excluded(b"a"), Included(b"b")), some(b"a\0", b"b\0"));
        assert_eq!(of(Included(b"a"), Included(b"a")), some(b"a", b"a\0"));
        assert_eq!(of(Included(b""), Included(b"")), some(b"", b"\0"));
        for (lower, upper) in [
            (Included(&b"b"[..]), Excluded(&b"b"[..])),
            (Included(b"b"), Included(b"a")),
            (Excluded(b"a"), Included(b"a")),
            (Unbounded, Excluded(b"")),
            (Excluded(b"a"), Excluded(b"a\0")),
        ] {
            assert_eq!(of(lower, upper), None, "{lower:?}, {upper:?}");
        }
        let longest = vec![b'k'; MAX_STORED_KEY_LEN];
        let (start, _) = start_and_end(&(Excluded(&longest[..]), Unbounded)).expect("later keys");
        assert_eq!(start, [&longest[1..], b"l"].concat());
        let last = vec![u8::MAX; MAX_STORED_KEY_LEN];
        assert_eq!(start_and_end(&(Excluded(&last[..]), Unbounded)), None);
        let (_, end) = start_and_end(&(Unbounded, Included(&last[..]))).expect("all keys");
        assert_eq!(end.len(), MAX_END_LEN);
    }
}
