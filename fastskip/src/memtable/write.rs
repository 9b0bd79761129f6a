//! Writes to a memtable: single writes, and batches, which first reserve memory and then cannot fail.

use core::{fmt, slice};
use std::collections::BTreeSet;

use super::table::Memtable;
use super::version::Versioned;
use crate::builder::Duplicates;
use crate::error::InsertError;
use crate::list::{Announced, ArenaAlloc, List, NodeAlloc, Outcome, Writer, index_words};
use crate::mem::storage::WORD;
use crate::node::{Kind, MAX_KEY_LEN, NewNode, Schema};
use crate::sync::thread_index;
use crate::tuning::GROUP;

/// A write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op<'a> {
    /// Stores a value for `key`.
    Put {
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// Stores a tombstone for `key`, whether or not the key is in this table.
    Delete {
        /// The key.
        key: &'a [u8],
    },
    /// Stores a value or tombstone for `key`, with a tag.
    Tagged {
        /// The key.
        key: &'a [u8],
        /// The value, in parts, which are joined. A tombstone may have one too.
        value: &'a [&'a [u8]],
        /// Whether this is a value or a tombstone.
        kind: Kind,
        /// Six bits that belong to the engine, at most [`MAX_TAG`](crate::MAX_TAG): they may tell that a value is a pointer to
        /// a blob or an operand of a merge, or that a tombstone is weak. The table stores them and never looks at them. A tag
        /// other than 0 takes a byte.
        tag: u8,
    },
}

impl<'a> Op<'a> {
    /// The key that it writes.
    #[must_use]
    pub fn key(&self) -> &'a [u8] {
        match *self {
            Self::Put { key, .. } | Self::Delete { key } | Self::Tagged { key, .. } => key,
        }
    }

    /// The value that it writes, in parts.
    #[must_use]
    pub fn value(&self) -> &[&'a [u8]] {
        match self {
            Self::Put { value, .. } => slice::from_ref(value),
            Self::Delete { .. } => &[],
            Self::Tagged { value, .. } => value,
        }
    }

    /// Whether it writes a value or a tombstone.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match *self {
            Self::Put { .. } => Kind::Value,
            Self::Delete { .. } => Kind::Tombstone,
            Self::Tagged { kind, .. } => kind,
        }
    }

    #[inline]
    fn new_node(&self, version: u64) -> NewNode<'_> {
        let tag = if let Self::Tagged { tag, .. } = *self { tag } else { 0 };
        NewNode::new(self.key(), self.value(), self.kind(), tag, version)
    }
}

/// The result of a write or a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Written {
    /// Writes that were stored.
    pub stored: usize,
    /// How many of those replaced an earlier write with their key and sequence number; the others are new in `len`. Always 0 unless the
    /// table has [`Duplicates::Replace`](crate::Duplicates::Replace).
    pub replaced: usize,
    /// Bytes of the table's memory that they took. [`memory_usage`](Memtable::memory_usage) grows by at least as much: blocks of the index and
    /// ends of chunks are added.
    pub bytes: usize,
}

/// Writing.
impl Memtable {
    /// Stores `value` as the version `seqno` of `key`, and returns what that took. Expected O(log n).
    ///
    /// # Errors
    /// * [`DuplicateKey`](InsertError::DuplicateKey) if the key already has a version `seqno`, which is unchanged; not if the table
    ///   [replaces](crate::Duplicates::Replace) it.
    /// * [`Frozen`](InsertError::Frozen), [`Full`](InsertError::Full) or [`TooLarge`](InsertError::TooLarge).
    pub fn put(&self, key: &[u8], seqno: u64, value: &[u8]) -> Result<Written, InsertError> {
        self.write(&Op::Put { key, value }, seqno)
    }

    /// Stores a tombstone as the version `seqno` of `key`, whether or not the key is in this table. Expected O(log n).
    ///
    /// # Errors
    /// The same as for [`put`](Self::put).
    pub fn delete(&self, key: &[u8], seqno: u64) -> Result<Written, InsertError> {
        self.write(&Op::Delete { key }, seqno)
    }

    /// As [`put`](Self::put), with a key and a value that are the parts joined. The parts of the value are copied once, into the
    /// table. A key in one part is not copied before; one in several parts is, because it is searched for.
    ///
    /// ```
    /// # use fastskip::{Lookup, Memtable};
    /// let memtable = Memtable::new();
    /// memtable.put_parts(&[b"table/", b"row"], 1, &[&[7], b"value"])?;
    /// assert_eq!(memtable.get(b"table/row", 1), Lookup::Value(b"\x07value"));
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    ///
    /// # Errors
    /// The same as for [`put`](Self::put).
    pub fn put_parts(&self, key: &[&[u8]], seqno: u64, value: &[&[u8]]) -> Result<Written, InsertError> {
        let put = |key: &[u8]| self.write(&Op::Tagged { key, value, kind: Kind::Value, tag: 0 }, seqno);
        if let [key] = key {
            return put(key);
        }
        let mut joined = [0; JOINED_KEY];
        let mut rest = &mut joined[..];
        for part in key {
            let Some((space, left)) = rest.split_at_mut_checked(part.len()) else { return put(&join(key)?) };
            space.copy_from_slice(part);
            rest = left;
        }
        let len = JOINED_KEY - rest.len();
        put(&joined[..len])
    }

    /// Stores `op` as the version `seqno` of its key. Expected O(log n).
    ///
    /// ```
    /// # use fastskip::{Kind, Memtable, Op};
    /// const BLOB: u8 = 1;
    /// let memtable = Memtable::new();
    /// memtable.write(&Op::Tagged { key: b"k", value: &[b"file 3", b"@17"], kind: Kind::Value, tag: BLOB }, 5)?;
    /// let found = memtable.get_version(b"k", 5).map(|version| (version.tag, version.value));
    /// assert_eq!(found, Some((BLOB, &b"file 3@17"[..])));
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    ///
    /// # Errors
    /// The same as for [`put`](Self::put).
    pub fn write(&self, op: &Op<'_>, seqno: u64) -> Result<Written, InsertError> {
        let list = self.list.for_writes(1)?;
        if list.replaces() { write_replacing(list, op, seqno) } else { write::<false>(list, op, seqno) }
    }

    /// Stores all of `ops`, or nothing, under consecutive sequence numbers from `first_seqno` on. The same as
    /// [`reserve`](Self::reserve) and [`Reservation::apply`]; but here the numbers are known, so that a write which
    /// [replaces](crate::Duplicates::Replace) another one needs no room within the limit on entries.
    ///
    /// # Errors
    /// The same as for [`reserve`](Self::reserve).
    pub fn apply(&self, ops: &[Op<'_>], first_seqno: u64) -> Result<Written, InsertError> {
        Ok(self.reserve_for(ops, Some(&|index| first_seqno.saturating_add(index as u64)))?.apply(first_seqno))
    }

    /// Stores all of `ops` under the sequence number `seqno`, or nothing. Of several writes of a key, the last one is stored. The
    /// same as [`reserve`](Self::reserve) and [`Reservation::apply_at`], with what [`apply`](Self::apply) says of replacements.
    ///
    /// ```
    /// # use fastskip::{Lookup, Memtable, Op};
    /// let memtable = Memtable::new();
    /// let written = memtable.apply_at(&[Op::Put { key: b"a", value: b"1" }, Op::Delete { key: b"a" }], 7)?;
    /// assert_eq!((written.stored, memtable.get(b"a", 7)), (1, Lookup::Tombstone));
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    ///
    /// # Errors
    /// The same as for [`reserve`](Self::reserve).
    pub fn apply_at(&self, ops: &[Op<'_>], seqno: u64) -> Result<Written, InsertError> {
        Ok(self.reserve_for(ops, Some(&|_| seqno))?.apply_at(seqno))
    }

    /// The bytes below the limit on memory that [`reserve`](Self::reserve) needs for `ops`: their entries, and 32 bytes for each but the last,
    /// within which the index finds room while they are applied. A table with this limit, or with so much of its limit left, has room for them. What
    /// the index did not need is free again afterwards. O(1) for each operation.
    ///
    /// ```
    /// # use fastskip::{InsertError, Memtable, Op};
    /// let keys: Vec<_> = (0..1000_u32).map(u32::to_be_bytes).collect();
    /// let ops: Vec<_> = keys.iter().map(|key| Op::Put { key, value: b"value" }).collect();
    /// let small = Memtable::builder().max_memory_bytes(20_000).build();
    /// assert_eq!(small.reserve(&ops).err(), Some(InsertError::TooLarge));
    /// let next = Memtable::builder().max_memory_bytes(small.memory_for(&ops)?).build();
    /// assert_eq!(next.reserve(&ops)?.apply(1).stored, 1000);
    /// # Ok::<(), InsertError>(())
    /// ```
    ///
    /// # Errors
    /// [`TooLarge`](InsertError::TooLarge) if a key, value or tag is too large for any table.
    pub fn memory_for(&self, ops: &[Op<'_>]) -> Result<usize, InsertError> {
        let (words, _) = self.words_for(ops)?;
        Ok((words + index_words(ops.len() as u64)) as usize * WORD)
    }

    /// The words of the nodes for `ops`, and those of the last one.
    fn words_for(&self, ops: &[Op<'_>]) -> Result<(u64, u64), InsertError> {
        let replaces = self.list.config.duplicates == Duplicates::Replace;
        let (mut words, mut last) = (0, 0);
        for op in ops {
            let new = op.new_node(0);
            if !new.is_encodable() {
                return Err(InsertError::TooLarge);
            }
            let replaceable = || 1 + new.replaceable().words(Versioned::META_WORDS);
            last = u64::from(if replaces { replaceable() } else { new.words(Versioned::META_WORDS) });
            words += last;
        }
        Ok((words, last))
    }

    /// Reserves everything that `ops` need, so that applying them cannot fail. Pebble's `arenaskl` has the same protocol. That includes room for the
    /// index, so that each operation is applied in O(log n) even if the batch fills the table: see [`memory_for`](Self::memory_for). O(1) for each
    /// operation.
    ///
    /// [`freeze`](Self::freeze) waits until the reservation is applied or dropped. Therefore, do not block while you hold a
    /// reservation.
    ///
    /// ```
    /// # use fastskip::{Memtable, Op};
    /// let memtable = Memtable::new();
    /// let ops = [Op::Put { key: b"a", value: b"1" }, Op::Put { key: b"b", value: b"2" }];
    /// let reservation = memtable.reserve(&ops)?;
    /// // ... now write the log; if that fails, drop the reservation, and nothing is stored ...
    /// assert_eq!(reservation.apply(10).stored, 2);
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    ///
    /// # Errors
    /// * [`Frozen`](InsertError::Frozen) after `freeze`.
    /// * [`Full`](InsertError::Full) if the batch does not fit within the remaining limits. Its last entry may exceed the
    ///   limit on memory. A reservation does not know the numbers yet, so each write counts as a new entry here, though it may
    ///   [replace](crate::Duplicates::Replace) one.
    /// * [`TooLarge`](InsertError::TooLarge) if a key or value is too long, or if the batch would not fit even in an empty
    ///   table with the same limits.
    ///
    /// In each case nothing is stored.
    pub fn reserve<'a>(&'a self, ops: &'a [Op<'a>]) -> Result<Reservation<'a>, InsertError> {
        self.reserve_for(ops, None)
    }

    /// Reserves for `ops`. If their numbers are known, those that replace take no entries where these are short.
    fn reserve_for<'a>(
        &'a self,
        ops: &'a [Op<'a>],
        number: Option<&dyn Fn(usize) -> u64>,
    ) -> Result<Reservation<'a>, InsertError> {
        if ops.is_empty() && self.list.made().is_none() && !self.list.is_frozen() {
            return Ok(Reservation { inside: None, ops, alloc: ReservedAlloc::default(), replaces: false });
        }
        let list = self.list.for_writes(ops.len() as u64)?;
        let writer = list.enter(thread_index(), ops.len() as u64)?;
        let replaces = list.replaces();
        let (words, last) = self.words_for(ops)?;
        let mut entries = ops.len() as u64;
        // Before it is announced: other writers need not leave room for a batch that never fits.
        if !list.could_hold(entries, words, last) {
            return Err(InsertError::TooLarge);
        }
        let announced = writer.announce(ops.len());
        let mut start = writer.reserve(entries, words, last);
        let has_limit = self.list.config.max_entries != 0;
        if let (Err(_), true, Some(number)) = (start, replaces && has_limit, number) {
            entries = self.new_entries(ops, number);
            start = writer.reserve(entries, words, last);
        }
        let alloc = ReservedAlloc { start: start?, words: words as u32, entries };
        Ok(Reservation { inside: Some((announced, writer)), ops, alloc, replaces })
    }

    /// How many of `ops` are new, at most: no entry goes away meanwhile. O(log n) for each.
    #[cold]
    fn new_entries(&self, ops: &[Op<'_>], number: &dyn Fn(usize) -> u64) -> u64 {
        let places: BTreeSet<_> = ops.iter().enumerate().map(|(index, op)| (op.key(), number(index))).collect();
        let is_new = |(key, seqno)| self.get_version(key, seqno).is_none_or(|version| version.seqno != seqno);
        places.into_iter().filter(|place| is_new(*place)).count() as u64
    }
}

/// Stores `op`; with `REPLACE`, also where its key has a version `seqno`.
#[inline(always)]
fn write<const REPLACE: bool>(list: &List<Versioned>, op: &Op<'_>, seqno: u64) -> Result<Written, InsertError> {
    let writer = list.enter(thread_index(), 1)?;
    let new = op.new_node(seqno);
    if !new.is_encodable() {
        return Err(InsertError::TooLarge);
    }
    let new = if REPLACE { new.replaceable() } else { new };
    let mut alloc = ArenaAlloc::new(&writer);
    let outcome = writer.insert::<REPLACE>(&new, &mut alloc)?;
    if let Outcome::Present(_) = outcome {
        return Err(InsertError::DuplicateKey);
    }
    let replaced = usize::from(REPLACE && matches!(outcome, Outcome::Replaced(_)));
    Ok(Written { stored: 1, replaced, bytes: alloc.taken as usize * WORD })
}

/// Apart, so that tables that reject duplicates pay nothing for it.
#[inline(never)]
fn write_replacing(list: &List<Versioned>, op: &Op<'_>, seqno: u64) -> Result<Written, InsertError> {
    write::<true>(list, op, seqno)
}

/// Keys in parts are joined on the stack up to this length.
const JOINED_KEY: usize = 256;

/// The parts of a long key, joined.
#[cold]
fn join(key: &[&[u8]]) -> Result<Vec<u8>, InsertError> {
    let len = key.iter().fold(0, |len: usize, part| len.saturating_add(part.len()));
    if len > MAX_KEY_LEN { Err(InsertError::TooLarge) } else { Ok(key.concat()) }
}

/// Allocates nodes from the memory of a reservation.
#[derive(Debug, Default)]
struct ReservedAlloc {
    start: u32,
    words: u32,
    entries: u64,
}

impl NodeAlloc for ReservedAlloc {
    fn take(&mut self, words: u32, entries: u64) -> Result<u32, InsertError> {
        let start = self.start;
        self.start += words;
        self.words -= words;
        self.entries -= entries;
        Ok(start)
    }
}

/// Memory in a memtable, reserved for a batch. Dropping the reservation returns the memory to the table, whatever else has been
/// allocated since.
#[must_use = "a reservation that is dropped stores nothing"]
pub struct Reservation<'a> {
    /// `None` for no operations on an untouched table, which takes no memory for them.
    inside: Option<(Announced<'a>, Writer<'a, Versioned>)>,
    ops: &'a [Op<'a>],
    alloc: ReservedAlloc,
    replaces: bool,
}

impl Reservation<'_> {
    /// Stores the batch. The first write gets the sequence number `first_seqno`, and each further write the next number;
    /// numbers do not exceed `u64::MAX`. A write is not stored if its key already has a version with its number, unless the table
    /// [replaces](crate::Duplicates::Replace) it.
    ///
    /// Each write commits separately. The batch is atomic for readers that learn its sequence numbers only after `apply` has
    /// returned. Expected O(log n) for each write.
    pub fn apply(self, first_seqno: u64) -> Written {
        let ops = self.ops;
        self.store(move |index| ops[index].new_node(first_seqno.saturating_add(index as u64)))
    }

    /// Stores the batch, all of it under the sequence number `seqno`. Of several writes of a key, the last one is stored. A write is not
    /// stored either if its key had a version `seqno` before. A table that [replaces](crate::Duplicates::Replace) stores every write, one
    /// after the other; what is seen in the end is the same.
    ///
    /// The batch is atomic for readers as with [`apply`](Self::apply). Expected O(log n) for each write.
    pub fn apply_at(self, seqno: u64) -> Written {
        let ops = self.ops;
        if self.replaces || ops.is_sorted_by(|before, after| before.key() < after.key()) {
            return self.store(|index| ops[index].new_node(seqno));
        }
        // The first write of a key and number is stored. Backwards, that is the last one.
        self.store(|index| ops[ops.len() - 1 - index].new_node(seqno))
    }

    fn store<'n>(self, new_node: impl Fn(usize) -> NewNode<'n>) -> Written {
        match self.replaces {
            true => self.store_as::<true>(|index| new_node(index).replaceable()),
            false => self.store_as::<false>(new_node),
        }
    }

    #[inline(never)]
    fn store_as<'n, const REPLACE: bool>(mut self, new_node: impl Fn(usize) -> NewNode<'n>) -> Written {
        let Self { inside: Some((announced, writer)), ops, alloc, .. } = &mut self else { return Written::default() };
        let reserved = alloc.words;
        let (mut stored, mut replaced) = (0, 0);
        writer.insert_all::<REPLACE>(ops.len(), new_node, alloc, |index, outcome| {
            stored += usize::from(matches!(outcome, Ok(Outcome::New(_) | Outcome::Replaced(_))));
            replaced += usize::from(REPLACE && matches!(outcome, Ok(Outcome::Replaced(_))));
            if index % GROUP == GROUP - 1 {
                announced.stored(GROUP);
            }
        });
        Written { stored, replaced, bytes: (reserved - alloc.words) as usize * WORD }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let has_rest = self.alloc.words != 0 || self.alloc.entries != 0;
        if let Some((_, writer)) = self.inside.as_ref().filter(|_| has_rest) {
            writer.give_back(self.alloc.entries, self.alloc.start, self.alloc.words);
        }
    }
}

impl fmt::Debug for Reservation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("ops", &self.ops.len()).finish_non_exhaustive()
    }
}
