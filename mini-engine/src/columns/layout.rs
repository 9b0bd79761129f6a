//! [`Columns`]: where the parts of a block's entries are, and the search for one of them.

use std::cmp::Ordering;
use std::ops::Range;

use crate::codec::{Malformed, head, strip_prefix};
use crate::types::{EXPIRY_LEN, Kind, MAX_SEQNO, MAX_STORED_KEY_LEN, MAX_VALUE_LEN, SeqNo};

pub(crate) type Decoded<T = ()> = Result<T, Malformed>;

/// The length of the footer in bytes.
pub(super) const FOOTER_LEN: usize = 14;
/// Parts of the form.
pub(super) const TAG_WIDTH: u8 = 0x0f;
pub(super) const WIDE: u8 = 0x10;
pub(super) const PLAIN: u8 = 0x20;
/// The shifts of an index to that of its bundle: bundles of 16 entries, or one of all.
pub(super) const SHORT_BUNDLES: u8 = 4;
pub(super) const ONE_BUNDLE: u8 = 31;

/// The positions of a block's columns, as offsets in its contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    entries: usize,
    keys: usize,
    tags: usize,
    value_offsets: usize,
    key_offsets: usize,
    bundle_shift: u8,
    form: u8,
    smallest_tag: u64,
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
        let [a, b, c, d, bundle_shift, form, tag @ ..] = *footer;
        let entries = u32::from_le_bytes([a, b, c, d]) as usize;
        if entries == 0
            || entries > body.len()
            || bundle_shift > ONE_BUNDLE
            || form & TAG_WIDTH > 8
            || form >= 2 * PLAIN
        {
            return None;
        }
        let bundles = ((entries - 1) >> bundle_shift) + 1;
        let width = if form & WIDE != 0 { 4 } else { 2 };
        let key_offsets = body.len().checked_sub(width * (entries + bundles + 1))?;
        let value_offsets = key_offsets.checked_sub(width * (entries + 1))?;
        let tags = value_offsets.checked_sub(usize::from(form & TAG_WIDTH) * entries)?;
        let smallest_tag = u64::from_le_bytes(tag);
        let mut columns = Self { entries, keys: 0, tags, value_offsets, key_offsets, bundle_shift, form, smallest_tag };
        columns.keys = columns.offset(contents, value_offsets, entries);
        let keys_len = columns.offset(contents, key_offsets, entries + bundles);
        (columns.keys.checked_add(keys_len) == Some(tags)).then_some(columns)
    }

    /// Checks all offsets and tags, so that each entry lies within its columns and limits. Neither the order of keys nor whether the block is as plain
    /// as it says is checked. O(entries).
    pub(crate) fn check(&self, contents: &[u8]) -> Decoded {
        let ascend = |column: usize, count: usize, most: usize| {
            let (mut last, mut is_sound) = (0, self.offset(contents, column, 0) == 0);
            for at in 1..=count {
                let next = self.offset(contents, column, at);
                is_sound &= last <= next && next - last <= most;
                last = next;
            }
            match is_sound {
                true => Ok(()),
                false => Err(Malformed { offset: column, expected: "offsets that ascend" }),
            }
        };
        ascend(self.value_offsets, self.entries, MAX_VALUE_LEN)?;
        ascend(self.key_offsets, self.entries + self.bundle(self.entries - 1) + 1, MAX_STORED_KEY_LEN)?;
        for at in 0..self.entries {
            let (tag, value) = (self.tag(contents, at), self.value(contents, at));
            let is_value = tag & 1 == Kind::Value as u64;
            let fits = is_value || !self.is_plain() && (value.is_empty() || value.len() >= EXPIRY_LEN);
            let is_within = tag >= self.smallest_tag && tag >> 1 <= MAX_SEQNO;
            if !is_within || !fits || self.key_len(contents, at) > MAX_STORED_KEY_LEN {
                return Err(Malformed { offset: self.tags, expected: "an entry within its limits" });
            }
        }
        Ok(())
    }

    /// The number of entries, at least 1.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries
    }

    /// Whether the block has one version of each key, and each is a value that does not expire.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.form & PLAIN != 0
    }

    /// The last bytes of the contents that a search may read.
    #[inline]
    pub(crate) fn searched<'a>(&self, contents: &'a [u8]) -> &'a [u8] {
        contents.get(self.keys..).unwrap_or_default()
    }

    /// The `at`-th offset of a column; 0 outside the block.
    #[inline(always)]
    fn offset(&self, contents: &[u8], column: usize, at: usize) -> usize {
        if self.form & WIDE != 0 {
            let bytes = contents.get(column + 4 * at..).and_then(<[u8]>::first_chunk);
            bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
        } else {
            let bytes = contents.get(column + 2 * at..).and_then(<[u8]>::first_chunk);
            bytes.map_or(0, |bytes| usize::from(u16::from_le_bytes(*bytes)))
        }
    }

    /// The range in the contents of the value of entry `at`.
    #[inline]
    pub(crate) fn value(&self, contents: &[u8], at: usize) -> Range<usize> {
        self.offset(contents, self.value_offsets, at)..self.offset(contents, self.value_offsets, at + 1)
    }

    #[inline(always)]
    fn tag(&self, contents: &[u8], at: usize) -> u64 {
        let width = usize::from(self.form & TAG_WIDTH);
        // The offsets and the footer follow, so that eight bytes can be read.
        let bytes = contents.get(self.tags + width * at..).and_then(<[u8]>::first_chunk);
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

    /// The index of the bundle with entry `at`.
    #[inline]
    pub(super) fn bundle(&self, at: usize) -> usize {
        at >> self.bundle_shift
    }

    /// The range in the contents of the prefix of a bundle.
    #[inline]
    pub(super) fn prefix(&self, contents: &[u8], bundle: usize) -> Range<usize> {
        self.part(contents, (bundle << self.bundle_shift) + bundle)
    }

    /// The range in the contents of the key of entry `at` behind its bundle's prefix.
    #[inline]
    pub(super) fn suffix(&self, contents: &[u8], at: usize) -> Range<usize> {
        self.part(contents, at + self.bundle(at) + 1)
    }

    #[inline(always)]
    fn part(&self, contents: &[u8], slot: usize) -> Range<usize> {
        self.keys + self.offset(contents, self.key_offsets, slot)
            ..self.keys + self.offset(contents, self.key_offsets, slot + 1)
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

    /// How the key of entry `at` compares with `key`.
    pub(crate) fn compare(&self, contents: &[u8], at: usize, key: &[u8]) -> Ordering {
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

    /// The end of the entries from `start` on that are values with numbers below this one and the only versions of their keys. O(1) in a plain block
    /// whose numbers are all below, otherwise O(entries).
    #[inline]
    pub(crate) fn shown_after(&self, contents: &[u8], start: usize, below: SeqNo) -> usize {
        match self.is_plain() && below > MAX_SEQNO {
            true => self.entries,
            false => (start..self.entries).find(|at| !self.is_shown(contents, *at, below)).unwrap_or(self.entries),
        }
    }

    /// The same in backward direction: the start of such entries up to entry `last`, which is the last version of its key.
    #[inline]
    pub(crate) fn shown_before(&self, contents: &[u8], last: usize, below: SeqNo) -> usize {
        match self.is_plain() && below > MAX_SEQNO {
            true => 0,
            false => (0..=last).rev().find(|at| !self.is_shown(contents, *at, below)).map_or(0, |at| at + 1),
        }
    }

    /// The number of leading entries of `within` for whose comparison with `key` `holds` is true; no entry may follow for which it is false. Cheap if
    /// they are all or few.
    #[inline]
    pub(crate) fn partition(
        &self,
        contents: &[u8],
        within: Range<usize>,
        key: &[u8],
        holds: impl Fn(Ordering) -> bool,
    ) -> usize {
        let holds_at = |at: usize| holds(self.compare(contents, at, key));
        let Range { start: mut low, end: mut high } = within;
        if low >= high || holds_at(high - 1) {
            return high;
        }
        let mut step = 1;
        while low < high {
            let next = if step < high - low { low + step - 1 } else { low + (high - low) / 2 };
            if holds_at(next) {
                (low, step) = (next + 1, step.saturating_mul(2));
            } else {
                // From here on by halves.
                (high, step) = (next, usize::MAX);
            }
        }
        low
    }

    /// The first entry at or after `(key, seqno)`. O(log entries).
    #[inline]
    pub(crate) fn find(&self, contents: &[u8], key: &[u8], seqno: SeqNo) -> Place {
        let bundle = if self.bundle(self.entries - 1) == 0 { 0 } else { self.find_bundle(contents, key, seqno) };
        let (low, high) = (bundle << self.bundle_shift, self.entries.min((bundle + 1) << self.bundle_shift));
        let prefix = contents.get(self.prefix(contents, bundle)).unwrap_or_default();
        let place = match strip_prefix(key, prefix) {
            Some(rest) => self.find_within(contents, low..high, rest, seqno),
            None => Place { at: if key < prefix { low } else { high }, is_key: false },
        };
        // The next bundle may begin with the key.
        match place.at == high && high < self.entries {
            true => Place { is_key: self.compare(contents, high, key).is_eq(), ..place },
            false => place,
        }
    }

    /// The last bundle whose first entry is before the target; the first bundle if there is none.
    #[inline(never)]
    fn find_bundle(&self, contents: &[u8], key: &[u8], seqno: SeqNo) -> usize {
        let (mut low, mut high) = (0, self.bundle(self.entries - 1) + 1);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let first = middle << self.bundle_shift;
            let order = self.compare(contents, first, key);
            let is_before = order.then_with(|| seqno.cmp(&self.seqno(contents, first))).is_lt();
            if is_before { low = middle } else { high = middle }
        }
        low
    }

    /// The first entry at or after the target in a range of entries of one bundle; `rest` is the target's key behind the bundle's prefix.
    #[inline(always)]
    fn find_within(&self, contents: &[u8], within: Range<usize>, rest: &[u8], seqno: SeqNo) -> Place {
        let (mut low, mut high, target) = (within.start, within.end, head(rest));
        let mut is_key = false;
        while low < high {
            let middle = low + (high - low) / 2;
            let suffix = contents.get(self.suffix(contents, middle)).unwrap_or_default();
            let order = head(suffix).cmp(&target).then_with(|| suffix.cmp(rest));
            if order.then_with(|| seqno.cmp(&self.seqno(contents, middle))).is_lt() {
                low = middle + 1;
            } else {
                (high, is_key) = (middle, order.is_eq());
            }
        }
        Place { at: low, is_key }
    }
}
