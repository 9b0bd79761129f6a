//! [`Columns`]: where the parts of a block's entries are, and the search for one of them.

use std::cmp::Ordering;
use std::ops::Range;

use crate::codec::{Malformed, head, strip_prefix};
use crate::types::{EXPIRY_LEN, Kind, MAX_SEQNO, MAX_STORED_KEY_LEN, MAX_VALUE_LEN, SeqNo};

pub(crate) type Decoded<T = ()> = Result<T, Malformed>;

/// The length of the footer in bytes.
pub(super) const FOOTER_LEN: usize = 16;
/// The flag of a plain block, beside the length of tags.
pub(super) const PLAIN: u8 = 0x80;
/// The shifts of an index to that of its bundle: bundles of 16 entries, or one of all.
pub(super) const SHORT_BUNDLES: u8 = 4;
pub(super) const ONE_BUNDLE: u8 = 31;
/// In place of a shift: there are no bundles and no prefixes.
pub(super) const WHOLE: u8 = u8::MAX;

/// The positions of a block's columns, as offsets in its contents. Scans copy this, so it is small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    entries: u32,
    keys: u32,
    tags: u32,
    value_offsets: Offsets,
    key_offsets: Offsets,
    bundle_shift: u8,
    tag_len: u8,
    is_plain: bool,
    smallest_tag: u64,
}

/// A column of offsets, from 0 to the end of another column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Offsets {
    /// The position of the column.
    at: u32,
    /// The length of an offset: 2 or 4. With 0 all parts of the other column have one length, which is stored instead.
    len: u8,
    /// That length; otherwise the mask of an offset in the four bytes at its place.
    stride_or_mask: u32,
}

impl Offsets {
    /// The column that ends at `end` and has offsets for `parts` parts.
    #[inline]
    fn before(contents: &[u8], end: usize, len: u8, parts: usize) -> Option<Self> {
        let bytes = match len {
            0 => 4,
            2 | 4 => usize::from(len) * (parts + 1),
            _ => return None,
        };
        let at = end.checked_sub(bytes)?;
        let stride_or_mask = match len {
            0 => u32::from_le_bytes(*contents.get(at..)?.first_chunk()?),
            2 => u32::from(u16::MAX),
            _ => u32::MAX,
        };
        Some(Self { at: u32::try_from(at).ok()?, len, stride_or_mask })
    }

    /// The start of part `at`; 0 outside the block.
    #[inline(always)]
    fn get(&self, contents: &[u8], at: usize) -> usize {
        if self.len == 0 {
            return at.wrapping_mul(self.stride_or_mask as usize);
        }
        // The footer follows, so that four bytes can be read.
        let bytes = contents.get(self.at as usize + usize::from(self.len) * at..).and_then(<[u8]>::first_chunk);
        bytes.map_or(0, |bytes| (u32::from_le_bytes(*bytes) & self.stride_or_mask) as usize)
    }

    /// Checks that the offsets of `parts` parts ascend, and that no part is longer than `most`.
    fn check(&self, contents: &[u8], parts: usize, most: usize) -> Decoded {
        let (mut last, mut is_sound) = (0, self.get(contents, 0) == 0);
        for at in 1..=parts {
            let next = self.get(contents, at);
            is_sound &= last <= next && next - last <= most;
            last = next;
        }
        if is_sound { Ok(()) } else { Err(Malformed { offset: self.at as usize, expected: "offsets that ascend" }) }
    }
}

/// The result of a search: the index of the first entry at or after the target, which is the number of entries if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) at: usize,
    /// Whether the entry has the key of the target.
    pub(crate) is_key: bool,
}

impl Columns {
    /// The columns of a block with these contents (C1). O(1).
    #[inline]
    pub(crate) fn of(contents: &[u8]) -> Decoded<Self> {
        Self::placed(contents).ok_or(Malformed { offset: contents.len(), expected: "the columns of a data block" })
    }

    #[inline]
    fn placed(contents: &[u8]) -> Option<Self> {
        let (body, footer) = contents.split_last_chunk::<FOOTER_LEN>()?;
        let [a, b, c, d, bundle_shift, key_offset_len, value_offset_len, tags, smallest @ ..] = *footer;
        let entries = u32::from_le_bytes([a, b, c, d]) as usize;
        let (tag_len, is_plain) = (tags & !PLAIN, tags & PLAIN != 0);
        let has_bundles = bundle_shift != WHOLE;
        if entries == 0
            || entries > contents.len()
            || tag_len > 8
            || has_bundles && !(1..=ONE_BUNDLE).contains(&bundle_shift)
        {
            return None;
        }
        let bundles = if has_bundles { ((entries - 1) >> bundle_shift) + 1 } else { 0 };
        let key_offsets = Offsets::before(contents, body.len(), key_offset_len, entries + bundles)?;
        let value_offsets = Offsets::before(contents, key_offsets.at as usize, value_offset_len, entries)?;
        let tags = (value_offsets.at as usize).checked_sub(usize::from(tag_len) * entries)?;
        let (keys, keys_len) = (value_offsets.get(contents, entries), key_offsets.get(contents, entries + bundles));
        let smallest_tag = u64::from_le_bytes(smallest);
        if keys.checked_add(keys_len) != Some(tags) {
            return None;
        }
        let [entries, keys, tags] = [entries, keys, tags].map(u32::try_from);
        let (entries, keys, tags) = (entries.ok()?, keys.ok()?, tags.ok()?);
        Some(Self { entries, keys, tags, value_offsets, key_offsets, bundle_shift, tag_len, is_plain, smallest_tag })
    }

    /// Checks all offsets and tags, so that each entry lies within its columns and limits. Neither the order of keys nor whether the block is as plain
    /// as it says is checked. O(entries).
    pub(crate) fn check(&self, contents: &[u8]) -> Decoded {
        let bundles = if self.is_whole() { 0 } else { self.bundle(self.len() - 1) + 1 };
        self.value_offsets.check(contents, self.len(), MAX_VALUE_LEN)?;
        self.key_offsets.check(contents, self.len() + bundles, MAX_STORED_KEY_LEN)?;
        for at in 0..self.len() {
            let (tag, value) = (self.tag(contents, at), self.value(contents, at));
            let is_value = tag & 1 == Kind::Value as u64;
            let fits = is_value || !self.is_plain() && (value.is_empty() || value.len() >= EXPIRY_LEN);
            let is_within = tag >= self.smallest_tag && tag >> 1 <= MAX_SEQNO;
            if !is_within || !fits || self.key_len(contents, at) > MAX_STORED_KEY_LEN {
                return Err(Malformed { offset: self.tags(), expected: "an entry within its limits" });
            }
        }
        Ok(())
    }

    /// The number of entries, at least 1.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries as usize
    }

    /// The position of the keys.
    #[inline(always)]
    fn keys(&self) -> usize {
        self.keys as usize
    }

    /// The position of the tags, which is the end of the keys.
    #[inline(always)]
    fn tags(&self) -> usize {
        self.tags as usize
    }

    /// Whether the block has one version of each key, and each is a value that does not expire.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The keys and what follows them: all that a search reads before the value.
    #[inline]
    pub(crate) fn searched<'a>(&self, contents: &'a [u8]) -> &'a [u8] {
        contents.get(self.keys()..).unwrap_or_default()
    }

    /// Whether no key shares a prefix.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        self.bundle_shift == WHOLE
    }

    /// The range in the contents of the value of entry `at`.
    #[inline(always)]
    pub(crate) fn value(&self, contents: &[u8], at: usize) -> Range<usize> {
        self.value_offsets.get(contents, at)..self.value_offsets.get(contents, at + 1)
    }

    #[inline(always)]
    fn tag(&self, contents: &[u8], at: usize) -> u64 {
        let width = usize::from(self.tag_len);
        // The offsets and the footer follow, so that eight bytes can be read.
        let bytes = contents.get(self.tags() + width * at..).and_then(<[u8]>::first_chunk);
        let above = bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
            & 1u64.checked_shl(8 * width as u32).unwrap_or(0).wrapping_sub(1);
        self.smallest_tag.wrapping_add(above)
    }

    #[inline]
    pub(crate) fn seqno(&self, contents: &[u8], at: usize) -> SeqNo {
        self.tag(contents, at) >> 1
    }

    #[inline]
    pub(crate) fn kind(&self, contents: &[u8], at: usize) -> Kind {
        match self.tag(contents, at) & 1 == Kind::Value as u64 {
            true => Kind::Value,
            false if self.value(contents, at).is_empty() => Kind::Tombstone,
            false => Kind::Expiring,
        }
    }

    /// The index of the bundle with entry `at`. If the keys are whole, there is one, without a prefix.
    #[inline]
    pub(super) fn bundle(&self, at: usize) -> usize {
        if self.is_whole() { 0 } else { at >> self.bundle_shift }
    }

    /// The entries of a bundle.
    #[inline]
    fn entries_of(&self, bundle: usize) -> Range<usize> {
        match self.is_whole() {
            true => 0..self.len(),
            false => bundle << self.bundle_shift..self.len().min((bundle + 1) << self.bundle_shift),
        }
    }

    /// The range in the contents of the prefix of a bundle.
    #[inline]
    pub(super) fn prefix(&self, contents: &[u8], bundle: usize) -> Range<usize> {
        if self.is_whole() { 0..0 } else { self.part(contents, (bundle << self.bundle_shift) + bundle) }
    }

    /// The range in the contents of the key of entry `at` behind its bundle's prefix.
    #[inline(always)]
    pub(crate) fn suffix(&self, contents: &[u8], at: usize) -> Range<usize> {
        self.part(contents, if self.is_whole() { at } else { at + (at >> self.bundle_shift) + 1 })
    }

    #[inline(always)]
    fn part(&self, contents: &[u8], part: usize) -> Range<usize> {
        let offset = |part| self.keys().wrapping_add(self.key_offsets.get(contents, part));
        offset(part)..offset(part + 1)
    }

    fn key_len(&self, contents: &[u8], at: usize) -> usize {
        self.prefix(contents, self.bundle(at)).len() + self.suffix(contents, at).len()
    }

    /// Whether entry `at` has the key of the entry before it.
    #[inline]
    pub(crate) fn repeats(&self, contents: &[u8], at: usize) -> bool {
        let Some(before) = at.checked_sub(1).filter(|_| !self.is_plain()) else { return false };
        let suffix = |at| contents.get(self.suffix(contents, at)).unwrap_or_default();
        let prefix = |at| contents.get(self.prefix(contents, self.bundle(at))).unwrap_or_default();
        match self.bundle(at) == self.bundle(before) {
            true => suffix(at) == suffix(before),
            false => prefix(at).iter().chain(suffix(at)).eq(prefix(before).iter().chain(suffix(before))),
        }
    }

    /// Whether `key` is that of entry `at`.
    #[inline]
    pub(crate) fn has_key(&self, contents: &[u8], at: usize, key: &[u8]) -> bool {
        let (prefix, suffix) = (self.prefix(contents, self.bundle(at)), self.suffix(contents, at));
        let Some((start, rest)) = key.split_at_checked(prefix.len()) else { return false };
        rest.len() == suffix.len() && contents.get(suffix) == Some(rest) && contents.get(prefix) == Some(start)
    }

    /// How the key of entry `at` compares with `key`.
    fn compare(&self, contents: &[u8], at: usize, key: &[u8]) -> Ordering {
        let prefix = contents.get(self.prefix(contents, self.bundle(at))).unwrap_or_default();
        let (start, rest) = key.split_at(key.len().min(prefix.len()));
        prefix.cmp(start).then_with(|| contents.get(self.suffix(contents, at)).unwrap_or_default().cmp(rest))
    }

    /// Whether entry `at` is a value with a number below this one, and the first version of its key in the block.
    #[inline]
    fn is_shown(&self, contents: &[u8], at: usize, below: SeqNo) -> bool {
        let tag = self.tag(contents, at);
        tag & 1 == Kind::Value as u64 && tag >> 1 < below && !self.repeats(contents, at)
    }

    /// The leading entries of `within` that are values with numbers below this one and the only versions of their keys. O(1) in a plain block whose
    /// numbers are all below, otherwise O(entries).
    #[inline]
    pub(crate) fn shown_from_start(&self, contents: &[u8], within: Range<usize>, below: SeqNo) -> Range<usize> {
        match self.is_plain() && below > MAX_SEQNO {
            true => within,
            false => {
                let end = within.clone().find(|at| !self.is_shown(contents, *at, below));
                within.start..end.unwrap_or(within.end)
            }
        }
    }

    /// The last entries of `within` that are such; the last of all is the last version of its key.
    #[inline]
    pub(crate) fn shown_to_end(&self, contents: &[u8], within: Range<usize>, below: SeqNo) -> Range<usize> {
        match self.is_plain() && below > MAX_SEQNO {
            true => within,
            false => {
                let before = within.clone().rev().find(|at| !self.is_shown(contents, *at, below));
                before.map_or(within.start, |before| before + 1)..within.end
            }
        }
    }

    /// The first entry of `within` whose key is not below `key`, or the end. O(log entries); the search in a bundle begins at the entry `near`.
    #[inline(never)]
    pub(crate) fn start_of(&self, contents: &[u8], within: Range<usize>, key: &[u8], near: usize) -> usize {
        self.find_in(contents, within, (key, MAX_SEQNO), near).at
    }

    /// The first entry of `within` whose key is above `key`, or the end. Costs the same.
    #[inline(never)]
    pub(crate) fn end_of(&self, contents: &[u8], within: Range<usize>, key: &[u8], near: usize) -> usize {
        let end = within.end;
        // The last version that a key can have may be there.
        let place = self.find_in(contents, within, (key, 0), near);
        end.min(place.at + usize::from(place.is_key))
    }

    /// The first entry at or after `(key, seqno)`. O(log entries).
    #[inline]
    pub(crate) fn find(&self, contents: &[u8], key: &[u8], seqno: SeqNo) -> Place {
        self.find_near(contents, key, seqno, usize::MAX)
    }

    /// Like `find`, for a place that may be near this entry: the search begins there, and reads the fewer keys the nearer it is.
    #[inline]
    pub(crate) fn find_near(&self, contents: &[u8], key: &[u8], seqno: SeqNo, near: usize) -> Place {
        self.find_in(contents, 0..self.len(), (key, seqno), near)
    }

    /// The same among the entries of `within`, whose end is the place if it is not there. `is_key` may then concern the entry at that end.
    #[inline(always)]
    fn find_in(&self, contents: &[u8], within: Range<usize>, (key, seqno): (&[u8], SeqNo), near: usize) -> Place {
        let bundle = if self.bundle(self.len() - 1) == 0 { 0 } else { self.find_bundle(contents, key, seqno) };
        let entries = self.entries_of(bundle);
        let [start, end] = [entries.start, entries.end].map(|at| at.max(within.start).min(within.end));
        let prefix = contents.get(self.prefix(contents, bundle)).unwrap_or_default();
        let Some(rest) = strip_prefix(key, prefix) else {
            return self.at_end_of_bundle(
                contents,
                key,
                Place { at: if key < prefix { start } else { end }, is_key: false },
            );
        };
        let keys = contents.get(self.keys()..self.tags()).unwrap_or_default();
        let offsets = contents.get(self.key_offsets.at as usize..).unwrap_or_default();
        // The first part of a bundle is its prefix.
        let before = if self.is_whole() { 0 } else { bundle + 1 };
        let place = match self.key_offsets.len {
            0 => {
                let stride = self.key_offsets.stride_or_mask as usize;
                self.find_within(contents, start..end, (rest, seqno, near), |at| {
                    let from = stride.wrapping_mul(at + before);
                    keys.get(from..from.wrapping_add(stride))
                })
            }
            2 => {
                let offsets = offsets.as_chunks::<2>().0;
                let offset = |part: usize| offsets.get(part).map(|bytes| usize::from(u16::from_le_bytes(*bytes)));
                self.find_within(contents, start..end, (rest, seqno, near), |at| {
                    keys.get(offset(at + before)?..offset(at + before + 1)?)
                })
            }
            _ => self
                .find_within(contents, start..end, (rest, seqno, near), |at| contents.get(self.suffix(contents, at))),
        };
        self.at_end_of_bundle(contents, key, place)
    }

    /// The end of a bundle is the start of the next one, which may have the key.
    #[inline]
    fn at_end_of_bundle(&self, contents: &[u8], key: &[u8], place: Place) -> Place {
        match !place.is_key && place.at < self.len() && self.bundle(place.at) > 0 {
            true => Place { is_key: self.has_key(contents, place.at, key), ..place },
            false => place,
        }
    }

    /// The last bundle whose first entry is before the target; the first bundle if there is none.
    #[inline(never)]
    fn find_bundle(&self, contents: &[u8], key: &[u8], seqno: SeqNo) -> usize {
        let (mut low, mut high) = (0, self.bundle(self.len() - 1) + 1);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let first = self.entries_of(middle).start;
            let (is_before, _) = self.is_before(contents, first, self.compare(contents, first, key), seqno);
            if is_before { low = middle } else { high = middle }
        }
        low
    }

    /// The first entry at or after the target in a range of entries of one bundle. The target's key and the keys of the entries, which `suffix`
    /// returns, are without the bundle's prefix.
    #[inline(always)]
    fn find_within<'a>(
        &self,
        contents: &[u8],
        within: Range<usize>,
        (rest, seqno, near): (&[u8], SeqNo, usize),
        suffix: impl Fn(usize) -> Option<&'a [u8]>,
    ) -> Place {
        let (mut low, mut high, target, mut is_key) = (within.start, within.end, head(rest), false);
        let compare = |at: usize| {
            let suffix = suffix(at).unwrap_or_default();
            match head(suffix).cmp(&target) {
                Ordering::Equal => self.is_before(contents, at, suffix.cmp(rest), seqno),
                order => (order == Ordering::Less, false),
            }
        };
        // From there by growing steps, then by halves.
        let (mut next, mut step) = (near, if near < high { 1 } else { usize::MAX });
        while low < high {
            if !(low..high).contains(&next) {
                next = low + (high - low) / 2;
            }
            let (is_before, is_same) = compare(next);
            if is_before {
                low = next + 1;
                next = low.saturating_add(step);
            } else {
                (high, is_key) = (next, is_same);
                next = high.wrapping_sub(step.saturating_add(1));
            }
            step = step.saturating_mul(4);
        }
        Place { at: low, is_key }
    }

    /// Whether entry `at` is before the target, with whose key its own compares as `order`; and whether the keys are equal.
    #[inline(always)]
    fn is_before(&self, contents: &[u8], at: usize, order: Ordering, seqno: SeqNo) -> (bool, bool) {
        (order.then_with(|| seqno.cmp(&self.seqno(contents, at))).is_lt(), order.is_eq())
    }
}
