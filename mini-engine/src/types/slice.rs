//! [`Slice`]: bytes shared by reference count, so that a long value read from a cached block or a mapped table is not copied. Short bytes are stored
//! inline. A point read copies up to 128 bytes: other threads may write to the reference count of a block, and a copy keeps no block in memory.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::Arc;

use super::mapped::MappedBytes;

/// The maximum length of bytes that are stored inline.
const INLINE: usize = 23;
/// The maximum length of bytes that a point read copies instead of sharing them.
const COPIED: usize = 128;

/// Immutable bytes: up to 23 are stored inline, and more behind a reference count, unless they are a copy of up to 128 bytes that a point read has made.
/// A clone costs at most one atomic increment, or that copy.
///
/// Compares, orders and hashes like the bytes to which it derefs. A longer value that was read from a table shares its cached block, or its mapped
/// file, and keeps that in memory as long as the slice exists: copy values that are kept for long.
#[derive(Clone)]
pub struct Slice(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; INLINE] },
    Copied(Box<[u8]>),
    Shared { bytes: Arc<[u8]>, part: SharedPart },
    Mapped { file: Arc<MappedBytes>, start: usize, len: u32 },
}

/// The range within the shared bytes. If the shared bytes exceed 4 GiB, only the whole range is possible.
#[derive(Clone, Copy)]
struct SharedPart {
    start: u32,
    end: u32,
}

impl SharedPart {
    /// Means the end of all bytes, however many there are.
    const END: u32 = u32::MAX;

    fn of(range: Range<usize>, len: usize) -> Option<Self> {
        let is_all = range.end == len;
        let end = if is_all { Self::END } else { u32::try_from(range.end).ok().filter(|end| *end != Self::END)? };
        Some(Self { start: u32::try_from(range.start).ok()?, end })
    }

    #[inline]
    fn within(self, len: usize) -> Range<usize> {
        self.start as usize..if self.end == Self::END { len } else { self.end as usize }
    }
}

impl Slice {
    /// Whether bytes of this length are stored inline.
    pub(crate) fn is_inline(len: usize) -> bool {
        len <= INLINE
    }

    /// The `range` within `bytes`, which are shared; `None` if the range does not lie within them.
    #[inline]
    pub(crate) fn view(bytes: &Arc<[u8]>, range: Range<usize>) -> Option<Self> {
        let viewed = bytes.get(range.clone())?;
        let shared = || {
            let part = SharedPart::of(range, bytes.len());
            part.map_or_else(|| Self::from(viewed), |part| Self(Repr::Shared { bytes: Arc::clone(bytes), part }))
        };
        Some(Self::inline(viewed).unwrap_or_else(shared))
    }

    /// The `range` within a mapped file, which is shared; `None` if the range does not lie within it.
    #[inline]
    pub(crate) fn mapped(file: &Arc<MappedBytes>, range: Range<usize>) -> Option<Self> {
        let viewed = file.get(range.clone())?;
        let mapped = || match u32::try_from(viewed.len()) {
            Ok(len) => Self(Repr::Mapped { file: Arc::clone(file), start: range.start, len }),
            Err(_) => Self::from(viewed),
        };
        Some(Self::inline(viewed).unwrap_or_else(mapped))
    }

    /// The shared bytes in which this slice is a range from the start, if it is.
    pub(crate) fn shared_from_start(&self) -> Option<&Arc<[u8]>> {
        match &self.0 {
            Repr::Shared { bytes, part } if part.start == 0 => Some(bytes),
            _ => None,
        }
    }

    /// `bytes`, copied if they are short enough for that; `None` if they are longer.
    #[inline]
    pub(crate) fn copied(bytes: &[u8]) -> Option<Self> {
        let copied = || (bytes.len() <= COPIED).then(|| Self(Repr::Copied(Box::from(bytes))));
        Self::inline(bytes).or_else(copied)
    }

    /// A copy of `bytes`.
    pub(crate) fn copy_of(bytes: &[u8]) -> Self {
        Self::copied(bytes).unwrap_or_else(|| Self::from(bytes))
    }

    /// The first `len` bytes, or all if there are fewer, and the rest.
    pub(crate) fn split_at(self, len: usize) -> (Self, Self) {
        if len >= self.len() {
            return (self, Self::default());
        }
        let (head, tail) = (self.part(0..len), self.part(len..self.len()));
        (head.unwrap_or_default(), tail.unwrap_or_default())
    }

    /// A part of this slice, shared; `None` if the range does not lie within it.
    pub(crate) fn part(&self, range: Range<usize>) -> Option<Self> {
        let at = |start: usize| Some(start.checked_add(range.start)?..start.checked_add(range.end)?);
        if range.end > self.len() {
            return None;
        }
        match &self.0 {
            Repr::Inline { .. } | Repr::Copied(_) => self.get(range).map(Self::copy_of),
            Repr::Shared { bytes, part } => Self::view(bytes, at(part.start as usize)?),
            Repr::Mapped { file, start, .. } => Self::mapped(file, at(*start)?),
        }
    }

    /// The first `len` bytes of a chunk, or all if it has fewer, stored inline.
    #[inline(always)]
    pub(crate) fn of_chunk(chunk: &[u8; 16], len: usize) -> Self {
        let mut bytes = [0; INLINE];
        bytes[..16].copy_from_slice(chunk);
        Self(Repr::Inline { len: len.min(16) as u8, bytes })
    }

    /// The bytes from `start` to `end` of `bytes`, which are shared; `None` if they are short enough to be stored inline, or do not lie within.
    #[inline(always)]
    pub(crate) fn long_view(bytes: &Arc<[u8]>, start: u32, end: u32) -> Option<Self> {
        let is_long = end.checked_sub(start).is_some_and(|len| len > INLINE as u32);
        let is_within = end as usize <= bytes.len() && end != SharedPart::END;
        if !is_long || !is_within {
            return None;
        }
        Some(Self(Repr::Shared { bytes: Arc::clone(bytes), part: SharedPart { start, end } }))
    }

    #[inline]
    fn inline(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > INLINE {
            return None;
        }
        let mut inline = [0; INLINE];
        inline.split_at_mut_checked(bytes.len())?.0.copy_from_slice(bytes);
        Some(Self(Repr::Inline { len: bytes.len() as u8, bytes: inline }))
    }
}

impl Default for Slice {
    fn default() -> Self {
        Self::from(&[][..])
    }
}

impl Deref for Slice {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // In range: only the constructors above and below create slices, and the bytes never change.
        match &self.0 {
            Repr::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Repr::Copied(bytes) => bytes,
            Repr::Shared { bytes, part } => &bytes[part.within(bytes.len())],
            Repr::Mapped { file, start, len } => &file[*start..*start + *len as usize],
        }
    }
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Borrow<[u8]> for Slice {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl From<&[u8]> for Slice {
    fn from(bytes: &[u8]) -> Self {
        let part = SharedPart { start: 0, end: SharedPart::END };
        let shared = || Self(Repr::Shared { part, bytes: Arc::from(bytes) });
        Self::inline(bytes).unwrap_or_else(shared)
    }
}

impl From<Vec<u8>> for Slice {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(&*bytes)
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

impl PartialEq for Slice {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Slice {}

impl PartialEq<[u8]> for Slice {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl PartialEq<&[u8]> for Slice {
    fn eq(&self, other: &&[u8]) -> bool {
        **self == **other
    }
}

impl PartialOrd for Slice {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Slice {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Slice {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn a_view_outside_its_bytes_is_refused() {
        // Catches an unchecked range from a damaged block, which would panic at the first deref.
        let bytes: Arc<[u8]> = Arc::from(&b"block"[..]);
        assert_eq!(Slice::view(&bytes, 1..3).as_deref(), Some(&b"lo"[..]));
        assert_eq!(Slice::view(&bytes, 5..5).as_deref(), Some(&b""[..]));
        let long: Arc<[u8]> = Arc::from(vec![7; 100]);
        assert_eq!(Slice::view(&long, 10..90).as_deref(), Some(&[7; 80][..]));
        assert!(Slice::view(&long, 10..101).is_none());
        for range in [0..6, 6..6, Range { start: 3, end: 2 }, usize::MAX..usize::MAX] {
            assert!(Slice::view(&bytes, range.clone()).is_none(), "{range:?}");
        }
    }

    #[test]
    fn both_forms_split_anywhere_and_take_no_more_room_than_one() {
        // Catches a part that begins or ends at a wrong position, and a tag that makes every slice larger.
        assert_eq!(size_of::<Slice>(), size_of::<(Arc<[u8]>, usize, usize)>());
        for len in [0, 1, INLINE, INLINE + 1, 100] {
            let bytes: Vec<u8> = (0..len as u8).collect();
            let slice = Slice::from(&*bytes);
            assert_eq!((&*slice, matches!(slice.0, Repr::Inline { .. })), (&*bytes, Slice::is_inline(len)));
            for at in 0..len + 2 {
                let (head, tail) = slice.clone().split_at(at);
                assert_eq!([&*head, &*tail].concat(), bytes);
                assert_eq!(head.len(), at.min(len));
            }
        }
    }

    #[test]
    fn a_copy_is_like_what_it_was_copied_from() {
        // Catches a copy whose parts lie elsewhere, and long bytes that a clone copies.
        for len in [0, INLINE, INLINE + 1, COPIED, COPIED + 1] {
            let bytes: Vec<u8> = (0..len as u8).collect();
            let copy = Slice::copy_of(&bytes);
            assert_eq!((copy.clone(), Slice::copied(&bytes).is_some()), (Slice::from(&*bytes), len <= COPIED));
            assert_eq!(copy.part(len / 3..len / 2).as_deref(), bytes.get(len / 3..len / 2));
            assert!(copy.part(0..len + 1).is_none());
        }
    }

    #[test]
    fn a_part_that_shares_its_bytes_lies_within_them() {
        // Catches a part counted from the start of all shared bytes, and one that extends beyond the slice.
        let bytes: Vec<u8> = (0..=250).cycle().take(500).collect();
        let file = Arc::new(MappedBytes::copied(bytes.clone()));
        let all = [Slice::view(&Arc::from(&*bytes), 0..500), Slice::mapped(&file, 0..500)].map(|all| all.expect("all"));
        for all in all {
            let middle = all.part(50..150).expect("in range");
            assert_eq!(middle.part(1..60).as_deref(), Some(&bytes[51..110]));
            assert!(middle.part(50..101).is_none());
        }
        let shared: Arc<[u8]> = Arc::from(&*bytes);
        for (start, end) in [(0, 24), (1, 60), (40, 100), (0, 200)] {
            let part = Slice::long_view(&shared, start, end);
            assert_eq!(part.as_deref(), Some(&bytes[start as usize..end as usize]), "{start}..{end}");
        }
        for (start, end) in [(0, 23), (30, 10), (50, 501), (u32::MAX - 50, u32::MAX), (50, u32::MAX)] {
            assert!(Slice::long_view(&shared, start, end).is_none(), "{start}..{end}");
        }
        let from_start = Slice::view(&shared, 0..190).expect("in range");
        assert!(from_start.shared_from_start().is_some_and(|bytes| Arc::ptr_eq(bytes, &shared)));
        assert!(Slice::view(&shared, 1..190).expect("in range").shared_from_start().is_none());
        let chunk: [u8; 16] = std::array::from_fn(|at| at as u8);
        assert_eq!(*Slice::of_chunk(&chunk, 5), chunk[..5]);
        assert_eq!([16, 17].map(|len| Slice::of_chunk(&chunk, len)), [&chunk[..]; 2]);
    }

    #[test]
    fn slices_compare_and_hash_as_their_bytes() {
        // Catches a derived impl, which would also compare the shared bytes outside the range.
        let view = Slice::view(&Arc::from(&b"xaby"[..]), 1..3).expect("in range");
        let owned = Slice::from(b"ab".to_vec());
        assert_eq!(view, owned);
        assert_eq!(view.cmp(&Slice::from(&b"b"[..])), Ordering::Less);
        let map = HashMap::from([(view, 1)]);
        assert_eq!(map.get(&b"ab"[..]), Some(&1));
        assert_eq!(format!("{owned:?}"), "b\"ab\"");
    }
}
