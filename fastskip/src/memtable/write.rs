//! Writes to a memtable: single writes, and batches, which reserve their memory first and then cannot fail.

use alloc::vec::Vec;
use core::fmt;

use super::op::{Op, Room, Written};
use super::table::Memtable;
use super::version::Versioned;
use crate::builder::{Builder, Duplicates};
use crate::error::InsertError;
use crate::key;
use crate::list::{Announced, ArenaAlloc, List, NodeAlloc, Outcome, Writer, index_words};
use crate::mem::storage::WORD;
use crate::node::{Kind, MAX_KEY_LEN, NewNode, Schema};
use crate::order::{Bytewise, Order};
use crate::sync::thread_index;
use crate::tuning::GROUP;

/// Writing.
impl<O: Order> Memtable<O> {
    /// Stores `value` as the version `seqno` of `key`, and returns the memory and entries that it took. Expected O(log n).
    ///
    /// # Errors
    /// * [`DuplicateKey`](InsertError::DuplicateKey) if the key already has a version `seqno`, which then stays unchanged; a table that
    ///   [replaces](crate::Duplicates::Replace) never returns this error.
    /// * [`Frozen`](InsertError::Frozen), [`Full`](InsertError::Full) or [`TooLarge`](InsertError::TooLarge).
    pub fn put(&self, key: &[u8], seqno: u64, value: &[u8]) -> Result<Written, InsertError> {
        self.write(&Op::Put { key, value }, seqno)
    }

    /// Stores a tombstone as the version `seqno` of `key`, whether or not the key is in this table. Expected O(log n).
    ///
    /// # Errors
    /// The same errors as [`put`](Self::put).
    pub fn delete(&self, key: &[u8], seqno: u64) -> Result<Written, InsertError> {
        self.write(&Op::Delete { key }, seqno)
    }

    /// Like [`put`](Self::put), but the key and the value are given in parts, which are joined. The parts of the value are copied only once, into the
    /// table. A key in several parts is first copied into one piece, because the search needs it.
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
    /// The same errors as [`put`](Self::put).
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
    /// The same errors as [`put`](Self::put); [`InvalidTag`](InsertError::InvalidTag).
    pub fn write(&self, op: &Op<'_>, seqno: u64) -> Result<Written, InsertError> {
        self.store(op, seqno, false)
    }

    /// Like [`write`](Self::write), but never replaces: in a table that [replaces](crate::Duplicates::Replace) it stores `op` only if its key has no
    /// version `seqno`, not even a tombstone. Of several concurrent calls for one key and sequence number, one stores. Expected O(log n).
    ///
    /// ```
    /// # use fastskip::{Duplicates, InsertError, Lookup, Memtable, Op};
    /// let memtable = Memtable::builder().duplicates(Duplicates::Replace).build();
    /// memtable.write_if_absent(&Op::Put { key: b"k", value: b"first" }, 0)?;
    /// let second = memtable.write_if_absent(&Op::Put { key: b"k", value: b"second" }, 0);
    /// assert_eq!((second, memtable.get(b"k", 0)), (Err(InsertError::DuplicateKey), Lookup::Value(b"first")));
    /// # Ok::<(), InsertError>(())
    /// ```
    ///
    /// # Errors
    /// [`DuplicateKey`](InsertError::DuplicateKey) if the key has a version `seqno`; the other errors of [`write`](Self::write).
    pub fn write_if_absent(&self, op: &Op<'_>, seqno: u64) -> Result<Written, InsertError> {
        self.store(op, seqno, true)
    }

    #[inline(always)]
    fn store(&self, op: &Op<'_>, seqno: u64, keeps_present: bool) -> Result<Written, InsertError> {
        let list = self.list.for_writes(1)?;
        match list.replaces() {
            true => write_replacing(list, op, seqno, keeps_present),
            false => write::<false>(list, op, seqno, keeps_present),
        }
    }

    /// Stores all of `ops`, or nothing, under consecutive sequence numbers from `first_seqno` on. The same as [`reserve`](Self::reserve) and
    /// [`Reservation::apply`], except that the sequence numbers are known: so a write that [replaces](crate::Duplicates::Replace) another one needs
    /// no room within the limit on entries.
    ///
    /// # Errors
    /// The same errors as [`reserve`](Self::reserve).
    pub fn apply(&self, ops: &[Op<'_>], first_seqno: u64) -> Result<Written, InsertError> {
        Ok(self.reserve_for(ops, Some(&|index| first_seqno.saturating_add(index as u64)))?.apply(first_seqno))
    }

    /// Stores all of `ops` under the sequence number `seqno`, or nothing. If several writes have the same key, the last one is stored. The same as
    /// [`reserve`](Self::reserve) and [`Reservation::apply_at`]; replacements count as for [`apply`](Self::apply).
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
    /// The same errors as [`reserve`](Self::reserve).
    pub fn apply_at(&self, ops: &[Op<'_>], seqno: u64) -> Result<Written, InsertError> {
        Ok(self.reserve_for(ops, Some(&|_| seqno))?.apply_at(seqno))
    }

    /// The number of bytes below the limit on memory that [`reserve`](Self::reserve) needs for `ops`: the bytes of their entries, and 32 bytes for
    /// each entry but the last, in which the index finds room while the operations are applied. A new table with this limit has room for `ops`, and
    /// so has a table with this number of bytes left. Afterwards, the bytes that the index did not need are free again. O(1) for each operation.
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
    /// [`TooLarge`](InsertError::TooLarge) if a key or value is too large for any table; [`InvalidTag`](InsertError::InvalidTag).
    pub fn memory_for(&self, ops: &[Op<'_>]) -> Result<usize, InsertError> {
        let (words, _) = self.words_for(ops)?;
        let words = usize::try_from(words + index_words(ops.len() as u64)).unwrap_or(usize::MAX);
        Ok(words.saturating_mul(WORD))
    }

    /// The number of words of the nodes for `ops`, and the number of words of the last node.
    #[inline]
    fn words_for(&self, ops: &[Op<'_>]) -> Result<(u64, u64), InsertError> {
        let replaces = self.list.config.duplicates == Duplicates::Replace;
        let (mut words, mut last) = (0, 0);
        for op in ops {
            let new = op.new_node(0);
            if !new.is_encodable() {
                return Err(op.limit_passed());
            }
            let replaceable = || 1 + new.replaceable().words(Versioned::<O>::META_WORDS);
            last = u64::from(if replaces { replaceable() } else { new.words(Versioned::<O>::META_WORDS) });
            words += last;
        }
        Ok((words, last))
    }

    /// Reserves all memory and entries that `ops` need, so that applying them cannot fail. Pebble's `arenaskl` has the same protocol. The reservation
    /// includes room for the index, so each operation is applied in O(log n) even if the batch fills the table: see [`memory_for`](Self::memory_for).
    /// O(1) for each operation.
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
    /// The operations may be dropped before the reservation, as in the last expression of a function in the edition 2021:
    ///
    /// ```edition2021
    /// # use fastskip::{Memtable, Op};
    /// fn delete(memtable: &Memtable, key: &[u8], seqno: u64) -> bool {
    ///     let ops = [Op::Delete { key }];
    ///     match memtable.reserve(&ops) {
    ///         Ok(reservation) => reservation.apply(seqno).stored == 1,
    ///         Err(_) => false,
    ///     }
    /// }
    /// # assert!(delete(&Memtable::new(), b"k", 1));
    /// ```
    ///
    /// # Errors
    /// * [`Frozen`](InsertError::Frozen) after `freeze`.
    /// * [`Full`](InsertError::Full) if the batch does not fit within the remaining limits. The last entry of the batch may exceed the limit on
    ///   memory. The sequence numbers are not known yet, so here each write counts as a new entry, although it may
    ///   [replace](crate::Duplicates::Replace) one.
    /// * [`TooLarge`](InsertError::TooLarge) if a key or value is too long, or if the batch would not fit even in an empty
    ///   table with the same limits; [`InvalidTag`](InsertError::InvalidTag).
    ///
    /// With each of these errors nothing is stored.
    pub fn reserve<'t, 'o>(&'t self, ops: &'o [Op<'o>]) -> Result<Reservation<'t, 'o, O>, InsertError> {
        self.reserve_for(ops, None)
    }

    /// Whether [`reserve`](Self::reserve) would now have room for `ops`, or could have it later. It shows whether a refusal as
    /// [`Full`](InsertError::Full) passes. The answer is found by a reservation that is dropped at once; so an untouched table reserves its memory,
    /// the operations count as attempted, and a refusal begins back-pressure as it does for a write. O(1) for each operation, and
    /// O(shards). On processors with weakly ordered memory it may be [`Room::Never`] too early while another thread begins a write.
    ///
    /// ```
    /// # use fastskip::{InsertError, Memtable, Op, Room};
    /// let memtable = Memtable::builder().max_entries(1).build();
    /// let ops = [Op::Put { key: b"k", value: b"v" }];
    /// let reservation = memtable.reserve(&ops)?;
    /// assert_eq!((memtable.put(b"a", 1, b""), memtable.room_for(&ops)), (Err(InsertError::Full), Room::Later));
    /// drop(reservation);
    /// assert_eq!(memtable.room_for(&ops), Room::Now);
    /// memtable.put(b"a", 1, b"")?;
    /// assert_eq!(memtable.room_for(&ops), Room::Never);
    /// # Ok::<(), InsertError>(())
    /// ```
    #[must_use]
    pub fn room_for(&self, ops: &[Op<'_>]) -> Room {
        let reserve = || {
            let writer = self.enter_for(ops)?;
            let (list, before) = (writer.list(), writer.list().traffic());
            match self.reserve_inside(writer, ops, None) {
                // No other writer was inside, and none came: all that is taken is taken for good, unless another table holds it.
                Err(InsertError::Full)
                    if before.0 == 1 && list.traffic() == (0, before.1) && self.list.config.arena.budget.is_none() =>
                {
                    Ok(Room::Never)
                }
                reserved => reserved.map(|_| Room::Now),
            }
        };
        match reserve() {
            Ok(room) => room,
            // Others hold room; or there are too many writers, or the system has refused memory.
            Err(InsertError::Full) => Room::Later,
            Err(_) => Room::Never,
        }
    }

    /// Reserves memory and entries for `ops`. If the sequence numbers are known and few entries are left, operations that replace take none.
    #[inline]
    fn reserve_for<'t, 'o>(
        &'t self,
        ops: &'o [Op<'o>],
        number: Option<&dyn Fn(usize) -> u64>,
    ) -> Result<Reservation<'t, 'o, O>, InsertError> {
        if ops.is_empty() && self.list.made().is_none() && !self.list.is_frozen() {
            let room = ReservedRoom { inside: None, alloc: ReservedAlloc::default() };
            return Ok(Reservation { room, ops, replaces: false });
        }
        self.reserve_inside(self.enter_for(ops)?, ops, number)
    }

    #[inline(always)]
    fn enter_for(&self, ops: &[Op<'_>]) -> Result<Writer<'_, Versioned<O>>, InsertError> {
        let attempts = ops.len() as u64;
        self.list.for_writes(attempts)?.enter(thread_index(), attempts)
    }

    #[inline]
    fn reserve_inside<'t, 'o>(
        &'t self,
        writer: Writer<'t, Versioned<O>>,
        ops: &'o [Op<'o>],
        number: Option<&dyn Fn(usize) -> u64>,
    ) -> Result<Reservation<'t, 'o, O>, InsertError> {
        let (list, replaces) = (writer.list(), writer.list().replaces());
        let (words, last) = self.words_for(ops)?;
        let mut entries = ops.len() as u64;
        // Checked before the batch is announced: other writers need not leave room for a batch that can never fit.
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
        Ok(Reservation { room: ReservedRoom { inside: Some((announced, writer)), alloc }, ops, replaces })
    }

    /// The maximum number of `ops` that are new entries: no entry disappears meanwhile. O(log n) for each operation.
    #[cold]
    fn new_entries(&self, ops: &[Op<'_>], number: &dyn Fn(usize) -> u64) -> u64 {
        // Not a `BTreeSet`, which may panic if an order breaks its promises.
        let keys: Vec<_> = ops.iter().map(|op| Op::Put { key: op.key(), value: &[] }).collect();
        let places = Builder::<Self>::new().shards(1).max_memory_bytes(self.memory_for(&keys).unwrap_or(0)).build();
        let is_first = |key, seqno| places.put(key, seqno, &[]) != Err(InsertError::DuplicateKey);
        let is_new = |key, seqno| self.get_version(key, seqno).is_none_or(|version| version.seqno != seqno);
        let numbered = ops.iter().enumerate().map(|(index, op)| (op.key(), number(index)));
        numbered.filter(|(key, seqno)| is_first(key, *seqno) && is_new(key, *seqno)).count() as u64
    }
}

/// Stores `op`; with `REPLACE`, unless `keeps_present`, also if its key already has a version `seqno`.
#[inline(always)]
fn write<const REPLACE: bool>(
    list: &List<Versioned<impl Order>>,
    op: &Op<'_>,
    seqno: u64,
    keeps_present: bool,
) -> Result<Written, InsertError> {
    let writer = list.enter(thread_index(), 1)?;
    let new = op.new_node(seqno);
    if !new.is_encodable() {
        return Err(op.limit_passed());
    }
    let new = if REPLACE { new.replaceable() } else { new };
    let mut alloc = ArenaAlloc::new(&writer);
    alloc.keeps_present = keeps_present;
    let outcome = writer.insert::<REPLACE>(&new, &mut alloc)?;
    if let Outcome::Present(_) = outcome {
        return Err(InsertError::DuplicateKey);
    }
    let replaced = usize::from(REPLACE && matches!(outcome, Outcome::Replaced(_)));
    Ok(Written { stored: 1, replaced, bytes: alloc.taken as usize * WORD })
}

/// A separate function, so that tables that reject duplicates do not pay for it.
#[inline(never)]
fn write_replacing(
    list: &List<Versioned<impl Order>>,
    op: &Op<'_>,
    seqno: u64,
    keeps_present: bool,
) -> Result<Written, InsertError> {
    write::<true>(list, op, seqno, keeps_present)
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
        // Only an order that breaks its promises lets a batch store more entries than were counted.
        self.entries = self.entries.saturating_sub(entries);
        Ok(start)
    }
}

/// Memory in a memtable, reserved for a batch. Dropping the reservation returns the memory to the table, even if other memory was allocated since.
#[must_use = "a reservation that is dropped stores nothing"]
pub struct Reservation<'t, 'o, O: Order = Bytewise> {
    room: ReservedRoom<'t, O>,
    ops: &'o [Op<'o>],
    replaces: bool,
}

/// The reserved memory. Only this part of a reservation is dropped by code, and it has no operations: so the compiler lets these end before the
/// reservation does (otherwise E0597).
struct ReservedRoom<'t, O: Order> {
    /// `None` if there are no operations and the table is untouched: then it takes no memory.
    inside: Option<(Announced<'t>, Writer<'t, Versioned<O>>)>,
    alloc: ReservedAlloc,
}

impl<O: Order> Reservation<'_, '_, O> {
    /// Stores the batch. The first write gets the sequence number `first_seqno`, and each further write gets the next number, up to at most
    /// `u64::MAX`. A write is not stored if its key already has a version with the same number, unless the table
    /// [replaces](crate::Duplicates::Replace) it.
    ///
    /// Each write commits separately. The batch is atomic for readers that get its sequence numbers only after `apply` has returned. Expected O(log
    /// n) for each write.
    pub fn apply(self, first_seqno: u64) -> Written {
        let ops = self.ops;
        self.store(move |index| ops[index].new_node(first_seqno.saturating_add(index as u64)))
    }

    /// Stores the whole batch under the sequence number `seqno`. If several writes have the same key, the last one is stored. A write is also not
    /// stored if its key had a version `seqno` before. A table that [replaces](crate::Duplicates::Replace) stores every write, one after the other;
    /// the final contents are the same.
    ///
    /// The batch is atomic for readers in the same sense as with [`apply`](Self::apply). Expected O(log n) for each write.
    pub fn apply_at(self, seqno: u64) -> Written {
        let ops = self.ops;
        if self.replaces || ops.is_sorted_by(|before, after| key::order::<O>(before.key(), after.key()).is_lt()) {
            return self.store(|index| ops[index].new_node(seqno));
        }
        // The first write of a key and sequence number is stored. In reverse order, the first write is the last one of the batch.
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
        let ReservedRoom { inside: Some((announced, writer)), alloc } = &mut self.room else {
            return Written::default();
        };
        let reserved = alloc.words;
        let (mut stored, mut replaced) = (0, 0);
        writer.insert_all::<REPLACE>(self.ops.len(), new_node, alloc, |index, outcome| {
            stored += usize::from(matches!(outcome, Ok(Outcome::New(_) | Outcome::Replaced(_))));
            replaced += usize::from(REPLACE && matches!(outcome, Ok(Outcome::Replaced(_))));
            if index % GROUP == GROUP - 1 {
                announced.stored(GROUP);
            }
        });
        Written { stored, replaced, bytes: (reserved - alloc.words) as usize * WORD }
    }
}

impl<O: Order> Drop for ReservedRoom<'_, O> {
    fn drop(&mut self) {
        let has_rest = self.alloc.words != 0 || self.alloc.entries != 0;
        if let Some((_, writer)) = self.inside.as_ref().filter(|_| has_rest) {
            writer.give_back(self.alloc.entries, self.alloc.start, self.alloc.words);
        }
    }
}

impl<O: Order> fmt::Debug for Reservation<'_, '_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("ops", &self.ops.len()).finish_non_exhaustive()
    }
}
