//! The arena's bytes in a model: has the interface of `fastskip/src/mem/storage.rs` and checks its rules.
//!
//! The bytes lie in one arena as in the shipped storage, so offsets mean the same. Each word has a shadow, which is made at the first use of the
//! word: either a modelled atomic, or a cell that watches the readers and writers of the bytes. The storage panics when a word is used both ways,
//! when a byte is written twice (two nodes overlap, or a frozen byte changes), and when bytes are read that were never written. The cell finds a
//! read that does not happen after the write. An atomic that was never written holds an offset outside of the arena, so a search that follows a
//! hint or a block too early fails.

use core::cell::UnsafeCell;
use core::fmt;
use core::ops::Range;
use core::sync::atomic::{AtomicU8, Ordering};
use std::io;
use std::sync::OnceLock;

use super::lanes::{self, Test};
use crate::sync::{AtomicU64, Watch};

/// Bytes in a word, the unit of every offset.
pub(crate) const WORD: usize = 8;

/// The most words a 32-bit offset reaches: 32 GiB.
pub(crate) const MAX_WORDS: u64 = 1 << 32;

/// The largest range that is granted, in bytes. A larger request is halved, as if the system were short of memory. No model fills this range, and
/// each execution pays for its shadows.
const GRANTED: usize = 16 << 10;

/// The range of a table without a limit: here the granted one.
pub(crate) const UNLIMITED_BYTES: usize = GRANTED;

/// As [`UNLIMITED_BYTES`]: a model has one table.
pub(crate) fn unlimited_bytes() -> usize {
    UNLIMITED_BYTES
}

/// The value of an atomic that was never written: each half is an offset far outside the arena.
const UNWRITTEN: u64 = 0xdead_dead_dead_dead;

/// As in the shipped storage: no redzones between nodes.
pub(crate) const REDZONE_WORDS: usize = 0;

/// As in the shipped crate, and unused: each model's table has a memory of its own.
#[derive(Debug, Clone)]
pub struct TablePool;

/// The use of a word: as an atomic, or as bytes. Before that, it may be the first word of a spare piece.
#[derive(Default)]
struct Shadow {
    atomic: OnceLock<AtomicU64>,
    /// Checks that reads of the bytes, or of the content of a spare piece, happen after their writes.
    cell: OnceLock<Watch<()>>,
    /// A bit for each written byte. No part of the model.
    written: AtomicU8,
}

impl Shadow {
    fn cell(&self) -> &Watch<()> {
        self.cell.get_or_init(|| Watch::new(()))
    }
}

/// A range of memory that checks its use.
pub(crate) struct Storage {
    bytes: Box<[UnsafeCell<u8>]>,
    shadows: Box<[OnceLock<Box<Shadow>>]>,
}

// SAFETY: loom, and shuttle too, runs the threads of a model on one thread of the system. It switches only inside its own operations, and no such
// operation lies between a check and the access to `bytes` that it protects.
unsafe impl Sync for Storage {}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage").field("words", &self.words()).finish_non_exhaustive()
    }
}

impl Storage {
    /// Grants `bytes`, halved until they are at most [`GRANTED`], but no less than `least`.
    ///
    /// # Errors
    /// None: a model needs little memory.
    pub(crate) fn reserve(bytes: usize, least: usize, _: bool, _: Option<&TablePool>) -> io::Result<Self> {
        let mut len = bytes.max(least).next_multiple_of(WORD);
        while len > GRANTED && len / 2 >= least {
            len = (len / 2).next_multiple_of(WORD);
        }
        let bytes = (0..len).map(|_| UnsafeCell::new(0)).collect();
        let shadows = (0..len / WORD).map(|_| OnceLock::new()).collect();
        Ok(Self { bytes, shadows })
    }

    /// Does nothing: the memory of a model's table is its own.
    pub(crate) fn set_used(&mut self, _: u64) {}

    /// Words in the range.
    pub(crate) fn words(&self) -> u64 {
        self.shadows.len() as u64
    }

    /// The atomic word at `off`.
    ///
    /// # Safety
    /// As in the shipped storage. Here a breach panics.
    pub(crate) unsafe fn word(&self, off: u32) -> &AtomicU64 {
        let shadow = self.shadow(off as usize);
        assert_eq!(shadow.written.load(Ordering::Relaxed), 0, "word {off} holds bytes and is used as an atomic");
        shadow.atomic.get_or_init(|| {
            // The first thread that uses the word has exclusive access: uses of it as part of a spare piece happened before.
            shadow.cell.get().inspect(|cell| cell.with_mut(|_| ()));
            AtomicU64::new(UNWRITTEN)
        })
    }

    /// The value that was written to word `off` of a spare piece.
    ///
    /// # Safety
    /// As in the shipped storage. Here a breach panics.
    pub(crate) unsafe fn read_spare(&self, off: u32) -> u64 {
        self.spare(off).cell().with(|_| ());
        let at = off as usize * WORD;
        // SAFETY: bytes of one word, which no thread writes meanwhile: the cell has just checked that.
        u64::from_ne_bytes(core::array::from_fn(|byte| unsafe { self.bytes[at + byte].get().read() }))
    }

    /// Writes to word `off` of a spare piece.
    ///
    /// # Safety
    /// As in the shipped storage. Here a breach panics.
    pub(crate) unsafe fn write_spare(&self, off: u32, word: u64) {
        self.spare(off).cell().with_mut(|_| ());
        let at = off as usize * WORD;
        for (cell, byte) in self.bytes[at..at + WORD].iter().zip(word.to_ne_bytes()) {
            // SAFETY: the byte is not borrowed: no data is stored in a spare piece, which was just checked.
            unsafe { cell.get().write(byte) };
        }
    }

    /// The shadow of a word without stored data.
    fn spare(&self, off: u32) -> &Shadow {
        let shadow = self.shadow(off as usize);
        let is_stored = shadow.atomic.get().is_some() || shadow.written.load(Ordering::Relaxed) != 0;
        assert!(!is_stored, "word {off} is in use, and spare");
        shadow
    }

    fn shadow(&self, word: usize) -> &Shadow {
        self.shadows[word].get_or_init(Box::default)
    }

    /// The words from word `off` on.
    ///
    /// # Safety
    /// As in the shipped storage. Here a breach panics.
    pub(crate) unsafe fn words_from(&self, off: u32) -> Words<'_> {
        Words { storage: self, off }
    }

    /// Does nothing: caches are no part of the model.
    pub(crate) fn prefetch<const WORDS: usize>(&self, _: u32) {}

    /// Does nothing: the storage watches the use of a word anyway.
    pub(crate) fn poison(&self, _: u32, _: u32) {}

    /// Does nothing, likewise.
    pub(crate) fn unpoison(&self, _: u32, _: usize) {}

    /// Copies `bytes` to `at` bytes past word `off`.
    ///
    /// # Safety
    /// As in the shipped storage. Here a breach panics.
    pub(crate) unsafe fn write(&self, off: u32, at: usize, bytes: &[u8]) {
        let range = self.range(off, at, bytes.len());
        self.each_word(&range, |cell, written, mask| {
            assert_eq!(written.load(Ordering::Relaxed) & mask, 0, "bytes {range:?} are written twice");
            cell.with_mut(|_| ());
            written.fetch_or(mask, Ordering::Relaxed);
        });
        for (cell, byte) in self.bytes[range].iter().zip(bytes) {
            // SAFETY: the byte is not borrowed: a borrowed byte was written before, which was just excluded.
            unsafe { cell.get().write(*byte) };
        }
    }

    /// The `len` bytes that start `at` bytes past word `off`.
    ///
    /// # Safety
    /// As in the shipped storage. Here a breach panics.
    pub(crate) unsafe fn read(&self, off: u32, at: usize, len: usize) -> &[u8] {
        let range = self.range(off, at, len);
        self.each_word(&range, |cell, written, mask| {
            assert_eq!(written.load(Ordering::Relaxed) & mask, mask, "bytes {range:?} are read and were never written");
            cell.with(|_| ());
        });
        let from = self.bytes[range].as_ptr().cast::<u8>();
        // SAFETY: `len` cells of one byte each, all written, which excludes another write.
        unsafe { core::slice::from_raw_parts(from, len) }
    }

    fn range(&self, off: u32, at: usize, len: usize) -> Range<usize> {
        let first = off as usize * WORD + at;
        first..first + len
    }

    /// Calls `look` for each word of `range`, with a mask of the word's bytes that lie in the range.
    fn each_word(&self, range: &Range<usize>, look: impl Fn(&Watch<()>, &AtomicU8, u8)) {
        for word in range.start / WORD..range.end.div_ceil(WORD) {
            let inside = (0..WORD).filter(|byte| range.contains(&(word * WORD + byte)));
            let mask = inside.fold(0, |mask, byte| mask | 1 << byte);
            if mask != 0 {
                let (cell, written) = self.bytes_of(word);
                look(cell, written, mask);
            }
        }
    }

    fn bytes_of(&self, word: usize) -> (&Watch<()>, &AtomicU8) {
        let shadow = self.shadow(word);
        assert!(shadow.atomic.get().is_none(), "word {word} is an atomic and is used as bytes");
        (shadow.cell(), &shadow.written)
    }
}

/// The words of a storage from one offset on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'a> {
    storage: &'a Storage,
    off: u32,
}

impl<'a> Words<'a> {
    /// The atomic word at `index`.
    ///
    /// # Safety
    /// As in the shipped storage. Here a breach panics.
    pub(crate) unsafe fn word(self, index: u32) -> &'a AtomicU64 {
        // SAFETY: a breach panics.
        unsafe { self.storage.word(self.off + index) }
    }

    /// Lane `lane` of the row that begins with word `row`.
    ///
    /// # Safety
    /// As in the shipped storage. Here a breach panics.
    pub(crate) unsafe fn lane(self, row: u32, lane: usize, order: Ordering) -> u32 {
        // SAFETY: a breach panics.
        let word = unsafe { self.word(row + lane as u32 / 2) }.load(order);
        (word >> (32 * (lane & 1))) as u32
    }

    /// Which of the first `lanes` lanes of the row that begins with word `row` pass the test.
    ///
    /// # Safety
    /// As in the shipped storage. Here a breach panics.
    pub(crate) unsafe fn lanes(self, row: u32, test: Test, lanes: usize) -> u32 {
        let words = (row..row + lanes.div_ceil(2) as u32).map(|index| {
            // SAFETY: a breach panics.
            unsafe { self.word(index) }.load(Ordering::Relaxed)
        });
        lanes::mask(words, test)
    }

    /// Does nothing, as [`Storage::prefetch`].
    pub(crate) fn prefetch(self, _: u32) {}
}
