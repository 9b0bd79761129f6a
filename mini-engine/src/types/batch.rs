//! [`WriteBatch`]: operations that become visible and durable together, kept in the encoding of a log frame's payload.
//!
//! The payload has for each operation `kind u8, varint32 key length, key`. For `Kind::Value` the operation continues with `varint32 value length,
//! value`; for `Kind::Expiring` likewise, but the value begins with the instant. A range removal has a kind of its own, which no entry has; its key
//! is the first one of the range, and `varint32 length, end of the range` follow. Keys are stored keys ([`KeyPrefix`]). Lengths are checked before
//! anything is encoded, so every batch is valid. [`BatchOps`] decodes payloads, also from disk, so it never panics, and it borrows instead of
//! allocating.

use std::ops::Bound;
use std::sync::Arc;
use std::time::SystemTime;

use crate::codec::{self, Malformed, Reader};
use crate::error::{Error, Result};
use crate::types::{
    EXPIRY_LEN, KeyBounds, KeyPrefix, KeyspaceRef, Kind, MAX_END_LEN, MAX_KEY_LEN, MAX_STORED_KEY_LEN, MAX_VALUE_LEN,
    Millis, OpenKeyspace, is_before_end, is_end, millis, prefix_bounds, start_and_end,
};

/// The maximum length of an encoded batch, in bytes (2 GiB - 1): its keys, values and a few bytes for each.
pub const MAX_BATCH_LEN: usize = (1 << 31) - 1;

/// The maximum number of ranges that a batch can remove; they become visible in one step.
pub const MAX_BATCH_RANGES: u32 = 1024;

/// The maximum number of bytes of an operation besides key and value, for its kind and lengths.
const OP_OVERHEAD: usize = 1 + 2 * codec::MAX_VARINT32_LEN;
/// The kind of an operation that removes a range. All other operations have the kinds of their entries.
const REMOVE_RANGE: u8 = 2;

/// A list of inserts and removes, of keys and of ranges, that is applied as a whole or not at all, even if a crash comes in between.
///
/// Later operations on a key override earlier ones of the same batch.
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    payload: Vec<u8>,
    count: u32,
    /// The number of operations that remove a range.
    ranges: u32,
    /// The number of insertions with an expiry.
    expiring: u32,
    /// The bytes of all keys and values.
    user_bytes: u64,
    /// The keyspaces of the operations, except the default one.
    keyspaces: Vec<Arc<OpenKeyspace>>,
}

impl WriteBatch {
    /// An empty batch. It allocates nothing.
    pub const fn new() -> Self {
        Self { payload: Vec::new(), count: 0, ranges: 0, expiring: 0, user_bytes: 0, keyspaces: Vec::new() }
    }

    /// Adds the insertion of `value` under `key`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the key is longer than [`MAX_KEY_LEN`], the value longer than [`MAX_VALUE_LEN`], or the batch would exceed
    /// [`MAX_BATCH_LEN`]; the batch is then unchanged.
    pub fn insert(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.insert_in(KeyPrefix::DEFAULT, key.as_ref(), value.as_ref(), None)
    }

    /// Adds the insertion of `value` under `key`, which expires at the [`SystemTime`] `at`, as if it were removed then; with `None` it never expires.
    /// See [`Keyspace::insert_with_expiry`](crate::Keyspace::insert_with_expiry).
    ///
    /// # Errors
    /// The errors of [`WriteBatch::insert`]; a value that expires may have 8 bytes less.
    pub fn insert_with_expiry(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        at: impl Into<Option<SystemTime>>,
    ) -> Result<()> {
        self.insert_in(KeyPrefix::DEFAULT, key.as_ref(), value.as_ref(), at.into())
    }

    /// Adds the removal of `key`, whether or not it exists.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the key is longer than [`MAX_KEY_LEN`] or the batch would exceed [`MAX_BATCH_LEN`]; the batch is then unchanged.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.remove_in(KeyPrefix::DEFAULT, key.as_ref())
    }

    /// Adds the removal of all keys within `bounds`, whether or not there are any. It is one operation with one sequence number,
    /// however many keys there are. Inverted bounds add nothing.
    ///
    /// # Errors
    /// The errors of [`WriteBatch::remove`], for either bound; [`Error::InvalidArgument`] if the batch already removes [`MAX_BATCH_RANGES`] ranges.
    pub fn remove_range(&mut self, bounds: impl KeyBounds) -> Result<()> {
        self.remove_range_in(KeyPrefix::DEFAULT, &bounds)
    }

    /// Adds the removal of all keys that begin with `prefix`, like [`WriteBatch::remove_range`].
    pub fn remove_prefix(&mut self, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.remove_range(prefix_bounds(prefix.as_ref()))
    }

    /// Records that operations in this keyspace follow.
    pub(crate) fn note_keyspace(&mut self, keyspace: &KeyspaceRef) {
        let is_noted = |keyspace| self.keyspaces.iter().any(|noted| Arc::ptr_eq(noted, keyspace));
        if let Some(keyspace) = keyspace.open().filter(|keyspace| !is_noted(keyspace)) {
            self.keyspaces.push(Arc::clone(keyspace));
        }
    }

    /// Adds the insertion of a value in the keyspace of `prefix`, which expires at `at` if that is given.
    #[inline]
    pub(crate) fn insert_in(
        &mut self,
        prefix: KeyPrefix,
        key: &[u8],
        value: &[u8],
        at: Option<SystemTime>,
    ) -> Result<()> {
        check_key(key)?;
        self.push_value((prefix.before(key), key), value, at.map(millis))
    }

    /// Adds the insertion of a value under the stored key `stored`, whose length was checked.
    #[inline]
    pub(crate) fn insert_stored(&mut self, stored: &[u8], value: &[u8], at: Option<Millis>) -> Result<()> {
        self.push_value((&[], stored), value, at)
    }

    /// Like [`remove`](Self::remove), in the keyspace of `prefix`.
    #[inline]
    pub(crate) fn remove_in(&mut self, prefix: KeyPrefix, key: &[u8]) -> Result<()> {
        check_key(key)?;
        self.push(Kind::Tombstone as u8, (prefix.before(key), key), None)
    }

    /// Adds the removal of the stored key `stored`, whose length was checked.
    #[inline]
    pub(crate) fn remove_stored(&mut self, stored: &[u8]) -> Result<()> {
        self.push(Kind::Tombstone as u8, (&[], stored), None)
    }

    /// Like [`remove_range`](Self::remove_range), in the keyspace of `prefix`.
    pub(crate) fn remove_range_in(&mut self, prefix: KeyPrefix, bounds: &impl KeyBounds) -> Result<()> {
        check_bounds(bounds)?;
        let Some((start, end)) = start_and_end(&prefix.bounds(bounds)) else { return Ok(()) };
        self.remove_between(&start, &end)
    }

    /// Adds the removal of all stored keys from `start` up to `end`, exclusive, as [`start_and_end`] returns them.
    pub(crate) fn remove_between(&mut self, start: &[u8], end: &[u8]) -> Result<()> {
        check_ranges(self.ranges as usize + 1)?;
        self.push(REMOVE_RANGE, (&[], start), Some(end))?;
        self.ranges += 1;
        Ok(())
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether the batch has no operation.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The length of the encoded operations in bytes, at most [`MAX_BATCH_LEN`]: keys, values and a few bytes for each operation.
    pub fn encoded_len(&self) -> usize {
        self.payload.len()
    }

    /// Removes all operations but keeps the memory, so that a batch can be reused.
    pub fn clear(&mut self) {
        self.payload.clear();
        self.keyspaces.clear();
        (self.count, self.ranges, self.expiring, self.user_bytes) = (0, 0, 0, 0);
    }

    /// The operations in the order in which they were added.
    pub(crate) fn iter(&self) -> impl Iterator<Item = BatchOp<'_>> {
        // This hides no error: the functions above are the only writers of the payload.
        BatchOps::new(&self.payload).map_while(std::result::Result::ok)
    }

    /// The number of operations, as stored in a log frame.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The number of operations that remove a range.
    pub(crate) fn ranges(&self) -> u32 {
        self.ranges
    }

    /// The number of insertions with an expiry.
    pub(crate) fn expiring(&self) -> u32 {
        self.expiring
    }

    /// The encoded operations: the payload of a log frame.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.payload
    }

    pub(crate) fn user_bytes(&self) -> u64 {
        self.user_bytes
    }

    /// The keyspaces of the operations, except the default one.
    pub(crate) fn keyspaces(&self) -> &[Arc<OpenKeyspace>] {
        &self.keyspaces
    }

    /// Adds the insertion of a value, which expires at the instant `at` if that is given, under a key in two parts.
    #[inline(always)]
    fn push_value(&mut self, key: (&[u8], &[u8]), value: &[u8], at: Option<Millis>) -> Result<()> {
        match at {
            None => {
                check_value(value)?;
                self.push(Kind::Value as u8, key, Some(value))
            }
            Some(at) => self.push_expiring(key, value, at),
        }
    }

    fn push_expiring(&mut self, key: (&[u8], &[u8]), value: &[u8], at: Millis) -> Result<()> {
        check_expiring_value(value)?;
        let stored_len = EXPIRY_LEN + value.len();
        self.begin(Kind::Expiring as u8, key, stored_len)?;
        codec::put_varint(&mut self.payload, stored_len as u64);
        codec::put_u64(&mut self.payload, at);
        self.payload.extend_from_slice(value);
        self.expiring += 1;
        Ok(())
    }

    /// Adds an operation of `kind` on the key that consists of the two parts of `key`; `second` is its value or the end of its range.
    #[inline]
    fn push(&mut self, kind: u8, key: (&[u8], &[u8]), second: Option<&[u8]>) -> Result<()> {
        self.begin(kind, key, second.map_or(0, <[u8]>::len))?;
        if let Some(second) = second {
            codec::put_prefixed(&mut self.payload, second);
        }
        Ok(())
    }

    /// Begins an operation of `kind` on the key that consists of `before` and `first`; `second_len` further bytes will follow.
    #[inline(always)]
    fn begin(&mut self, kind: u8, (before, first): (&[u8], &[u8]), second_len: usize) -> Result<()> {
        let bytes = before.len() + first.len() + second_len;
        // The payload reaches its limit before the count can overflow: an operation has at least two bytes.
        check_len("batch", self.payload.len() + bytes + OP_OVERHEAD, MAX_BATCH_LEN)?;
        if self.payload.capacity() == 0 {
            // Many batches consist of one operation.
            self.payload.reserve_exact(bytes + OP_OVERHEAD);
        }
        self.payload.push(kind);
        codec::put_varint(&mut self.payload, (before.len() + first.len()) as u64);
        if !before.is_empty() {
            self.payload.extend_from_slice(before);
        }
        self.payload.extend_from_slice(first);
        self.count += 1;
        self.user_bytes += bytes as u64;
        Ok(())
    }
}

/// Fails if the key is too long.
#[inline]
pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    check_len("key", key.len(), MAX_KEY_LEN)
}

/// Fails if the value is too long.
#[inline]
pub(crate) fn check_value(value: &[u8]) -> Result<()> {
    check_len("value", value.len(), MAX_VALUE_LEN)
}

/// Fails for a value that is too long to be stored with an instant.
pub(crate) fn check_expiring_value(value: &[u8]) -> Result<()> {
    check_len("value", value.len(), MAX_VALUE_LEN - EXPIRY_LEN)
}

/// Fails if a bound is a key that is too long.
pub(crate) fn check_bounds(bounds: &impl KeyBounds) -> Result<()> {
    [bounds.start(), bounds.end()].into_iter().try_for_each(|bound| match bound {
        Bound::Included(key) | Bound::Excluded(key) => check_key(key),
        Bound::Unbounded => Ok(()),
    })
}

/// Fails if the number of ranges exceeds that of a batch.
pub(crate) fn check_ranges(ranges: usize) -> Result<()> {
    match ranges <= MAX_BATCH_RANGES as usize {
        true => Ok(()),
        false => {
            let what = format!("too many ranges: a batch can remove at most {MAX_BATCH_RANGES}");
            Err(Error::InvalidArgument(what))
        }
    }
}

#[inline]
fn check_len(what: &str, len: usize, max: usize) -> Result<()> {
    if len <= max { Ok(()) } else { Err(too_long(what, len, max)) }
}

#[cold]
fn too_long(what: &str, len: usize, max: usize) -> Error {
    Error::InvalidArgument(format!("{what} of {len} bytes is too long: at most {max} bytes are allowed"))
}

/// One operation of a batch, borrowed from its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchOp<'a> {
    Insert {
        key: &'a [u8],
        value: &'a [u8],
    },
    InsertExpiring {
        key: &'a [u8],
        /// The instant, followed by the value.
        stored: &'a [u8],
    },
    Remove {
        key: &'a [u8],
    },
    /// Removes all keys from `start` up to `end`, exclusive; an empty `end` means no end.
    RemoveRange {
        start: &'a [u8],
        end: &'a [u8],
    },
}

impl<'a> BatchOp<'a> {
    /// The stored value of an insertion with an expiry.
    pub(crate) fn expiring(self) -> Option<&'a [u8]> {
        if let Self::InsertExpiring { stored, .. } = self { Some(stored) } else { None }
    }
}

/// Decodes a payload operation by operation; after an error it yields nothing more.
#[derive(Clone, Debug)]
pub(crate) struct BatchOps<'a> {
    reader: Reader<'a>,
    failed: bool,
}

impl<'a> BatchOps<'a> {
    pub(crate) fn new(payload: &'a [u8]) -> Self {
        Self { reader: Reader::new(payload), failed: false }
    }

    fn decode(&mut self) -> std::result::Result<BatchOp<'a>, Malformed> {
        let reader = &mut self.reader;
        let kind = reader.u8().ok_or(reader.malformed("the kind of an operation"))?;
        if kind == REMOVE_RANGE {
            return Self::decode_range(reader);
        }
        let kind = Kind::try_from(kind).map_err(|_| reader.malformed("a known kind of operation"))?;
        let key = reader.prefixed(MAX_STORED_KEY_LEN).ok_or(reader.malformed("a key within its limit"))?;
        match kind {
            Kind::Tombstone => Ok(BatchOp::Remove { key }),
            Kind::Value => {
                let value = reader.prefixed(MAX_VALUE_LEN).ok_or(reader.malformed("a value within its limit"))?;
                Ok(BatchOp::Insert { key, value })
            }
            Kind::Expiring => {
                let stored = reader.prefixed(MAX_VALUE_LEN).filter(|stored| stored.len() >= EXPIRY_LEN);
                Ok(BatchOp::InsertExpiring { key, stored: stored.ok_or(reader.malformed("an instant and a value"))? })
            }
        }
    }

    fn decode_range(reader: &mut Reader<'a>) -> std::result::Result<BatchOp<'a>, Malformed> {
        let start = reader.prefixed(MAX_STORED_KEY_LEN).ok_or(reader.malformed("a key within its limit"))?;
        let end = reader.prefixed(MAX_END_LEN).filter(|end| is_before_end(start, end) && is_end(end));
        Ok(BatchOp::RemoveRange { start, end: end.ok_or(reader.malformed("an end behind the start of its range"))? })
    }
}

impl<'a> Iterator for BatchOps<'a> {
    type Item = std::result::Result<BatchOp<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.reader.is_empty() {
            return None;
        }
        let op = self.decode();
        self.failed = op.is_err();
        Some(op)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::{split_expiry, system_time};

    #[test]
    fn a_key_or_value_past_its_limit_leaves_the_batch_as_it_was() {
        // Catches a check that is made after the first bytes were encoded, so that half an operation remains.
        let mut batch = WriteBatch::new();
        batch.insert(vec![1; MAX_KEY_LEN], b"v").expect("a key at its limit");
        let before = batch.payload().to_vec();
        let long_key = vec![0; MAX_KEY_LEN + 1];
        for result in [batch.insert(&long_key, b""), batch.remove(&long_key)] {
            let Err(Error::InvalidArgument(text)) = result else { panic!("{result:?}") };
            assert!(text.contains("key") && text.contains("65536") && text.contains("65535"), "{text}");
        }
        let Err(Error::InvalidArgument(text)) = batch.insert(b"k", vec![0; MAX_VALUE_LEN + 1]) else {
            panic!("a value past its limit was taken")
        };
        assert!(text.contains("value") && text.contains(&MAX_VALUE_LEN.to_string()), "{text}");
        let Err(Error::InvalidArgument(text)) =
            batch.insert_with_expiry(b"k", vec![0; MAX_VALUE_LEN - 7], SystemTime::now())
        else {
            panic!("a value past its limit with its instant was taken")
        };
        assert!(text.contains(&(MAX_VALUE_LEN - 8).to_string()), "{text}");
        assert_eq!((batch.len(), batch.payload()), (1, &before[..]));
    }

    #[test]
    fn a_truncated_payload_gives_whole_operations_and_then_an_error() {
        // Catches a decoder that takes the end of the bytes for the end of a value.
        let mut batch = WriteBatch::new();
        batch.insert(b"key", b"value").expect("small");
        let whole = batch.payload();
        for cut in 1..whole.len() {
            let mut ops = BatchOps::new(&whole[..cut]);
            assert!(matches!(ops.next(), Some(Err(_))), "cut at {cut}");
            assert!(ops.next().is_none(), "cut at {cut}");
        }
    }

    #[test]
    fn a_batch_removes_so_many_ranges_and_no_more() {
        // Catches a batch that accepts more ranges than its limit.
        let mut batch = WriteBatch::new();
        for n in 0..MAX_BATCH_RANGES {
            batch.remove_range(n.to_be_bytes()..[u8::MAX; 4]).expect("so many");
        }
        assert!(matches!(batch.remove_range("a".."b"), Err(Error::InvalidArgument(_))));
        batch.remove("a").expect("no range");
        assert_eq!((batch.len(), batch.ranges()), (MAX_BATCH_RANGES as usize + 1, MAX_BATCH_RANGES));
        batch.clear();
        batch.remove_range("a".."b").expect("an empty batch");
    }

    #[test]
    fn a_range_is_one_operation_and_an_empty_one_is_none() {
        // Catches inverted bounds that remove all keys, and a forged range that begins after its end.
        let mut batch = WriteBatch::new();
        batch.insert("a", "").expect("small");
        batch.remove_range("b".."d").expect("small");
        batch.remove_range("x"..).expect("small");
        batch.remove_range("d".."b").expect("small");
        batch.remove_range("b".."b").expect("small");
        let expected = [
            BatchOp::Insert { key: b"a", value: b"" },
            BatchOp::RemoveRange { start: b"b", end: b"d" },
            BatchOp::RemoveRange { start: b"x", end: b"\xff\x01" },
        ];
        assert_eq!(batch.iter().collect::<Vec<_>>(), expected);
        assert_eq!((batch.len(), batch.ranges()), (3, 2));
        let before = batch.payload().len();
        let long_key = vec![0; MAX_KEY_LEN + 1];
        for result in [batch.remove_range(long_key.clone()..), batch.remove_range(..long_key)] {
            assert!(matches!(result, Err(Error::InvalidArgument(_))), "{result:?}");
        }
        assert_eq!(batch.payload().len(), before);
        batch.clear();
        assert_eq!(batch.ranges(), 0);
        for len in [0, 7] {
            let forged = [&[Kind::Expiring as u8, 1, b'k', len][..], &[0; 8]].concat();
            assert!(matches!(BatchOps::new(&forged).next(), Some(Err(_))), "an instant of {len} bytes");
        }
        for forged in [&[REMOVE_RANGE, 1, b'b', 1, b'b'][..], &[REMOVE_RANGE, 1, b'b', 1, b'a'], &[REMOVE_RANGE, 0]] {
            assert!(matches!(BatchOps::new(forged).next(), Some(Err(_))), "{forged:?}");
        }
    }

    proptest! {
        #[test]
        fn operations_come_back_as_they_were_added(
            ops in prop::collection::vec((
                0..3u32,
                prop::collection::vec(any::<u8>(), 0..40),
                prop::option::of((prop::option::of(0u64..1 << 50), prop::collection::vec(any::<u8>(), 0..300))),
            ), 0..30),
        ) {
            // Catches an encoding that loses an operation, its order, its keyspace, or an empty key or value.
            let mut batch = WriteBatch::new();
            for (keyspace, key, value) in &ops {
                match value {
                    Some((at, value)) => batch.insert_in(KeyPrefix::of(*keyspace), key, value, at.map(system_time)),
                    None => batch.remove_in(KeyPrefix::of(*keyspace), key),
                }
                .expect("small");
            }
            let found = batch.iter().map(|op| match op {
                BatchOp::InsertExpiring { key, stored } => {
                    let (at, value) = split_expiry(stored);
                    (key.to_vec(), Some((Some(at), value.to_vec())))
                }
                BatchOp::Insert { key, value } => (key.to_vec(), Some((None, value.to_vec()))),
                BatchOp::Remove { key } => (key.to_vec(), None),
                BatchOp::RemoveRange { .. } => panic!("none was added"),
            });
            let expected = ops.iter().map(|(keyspace, key, value)| {
                (KeyPrefix::of(*keyspace).with_stored(key, <[u8]>::to_vec), value.clone())
            });
            prop_assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            let expiring = ops.iter().filter(|op| matches!(op.2, Some((Some(_), _)))).count();
            prop_assert_eq!((batch.len(), batch.expiring() as usize), (ops.len(), expiring));
            batch.clear();
            prop_assert_eq!(batch.expiring(), 0);
        }

        #[test]
        fn random_bytes_never_panic_the_payload_decoder(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            // Catches unchecked lengths: every decoded slice must lie within the payload, or the decoder must return one error.
            let mut used = 0;
            for op in BatchOps::new(&bytes) {
                used += match op {
                    Ok(BatchOp::Insert { key, value }) => 3 + key.len() + value.len(),
                    Ok(BatchOp::InsertExpiring { key, stored }) => 3 + key.len() + stored.len(),
                    Ok(BatchOp::Remove { key }) => 2 + key.len(),
                    Ok(BatchOp::RemoveRange { start, end }) => 3 + start.len() + end.len(),
                    Err(malformed) => { prop_assert!(malformed.offset <= bytes.len()); 0 }
                };
            }
            prop_assert!(used <= bytes.len());
        }
    }
}
