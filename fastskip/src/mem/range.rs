//! Ranges of addresses, and the pool that hands them from one table to the next.

use core::fmt;
use core::ptr::NonNull;
use std::alloc::{Layout, alloc, dealloc};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use memmap2::{MmapMut, MmapOptions, MmapRaw};

use super::poison::unpoison;

/// Ranges up to this size come from the allocator, which is quicker than the system. 256 KiB.
const HEAP_BYTES: usize = 256 << 10;

/// Alignment of a range: rows of the index are aligned to cache lines.
const ALIGN: usize = 64;

/// By how much less is asked for when the system refuses: what it would just grant is not ours alone.
const LESS: usize = 16;

/// A size of huge page on the common 64-bit systems. Tables smaller than one keep ordinary pages.
const HUGE_PAGE: usize = 2 << 20;

/// A range of addresses that one table has, aligned to a cache line.
#[derive(Debug)]
pub(crate) struct Range {
    base: NonNull<u8>,
    len: usize,
    /// The mapping, or none if the allocator gave the range.
    map: Option<MmapRaw>,
}

// SAFETY: owns its memory, and only hands out its address.
unsafe impl Send for Range {}
// SAFETY: as above.
unsafe impl Sync for Range {}

impl Range {
    /// A range of `bytes`, or far less again and again while the system refuses, but no less than `least`. Both are multiples of 64.
    ///
    /// # Errors
    /// The system's last refusal.
    pub(crate) fn reserve(bytes: usize, least: usize, huge_pages: bool) -> io::Result<Self> {
        let mut len = bytes.max(least);
        loop {
            let range = if len <= HEAP_BYTES { Self::allocate(len) } else { Self::map(len, huge_pages) };
            match range {
                Ok(range) => return Ok(range),
                Err(refusal) if len == least => return Err(refusal),
                Err(_) => len = (len / LESS).next_multiple_of(ALIGN).max(least),
            }
        }
    }

    fn layout(len: usize) -> io::Result<Layout> {
        Layout::from_size_align(len, ALIGN).map_err(io::Error::other)
    }

    /// From the allocator. What it contains is as undefined as what a table before has left there: tables read only what they wrote.
    fn allocate(len: usize) -> io::Result<Self> {
        let layout = Self::layout(len.max(ALIGN))?;
        // SAFETY: the size is not 0.
        let base = NonNull::new(unsafe { alloc(layout) }).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, len: layout.size(), map: None })
    }

    fn map(len: usize, huge_pages: bool) -> io::Result<Self> {
        // Without a claim on swap the kernel counts a page when it is touched, not when it is reserved.
        let map: MmapMut = MmapOptions::new().len(len).no_reserve_swap().map_anon()?;
        let map = MmapRaw::from(map);
        if huge_pages {
            advise_huge_pages(&map);
        }
        let base = NonNull::new(map.as_mut_ptr()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, len: map.len(), map: Some(map) })
    }

    #[inline(always)]
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        if self.map.is_some() {
            return;
        }
        unpoison(self.base(), self.len);
        if let Ok(layout) = Self::layout(self.len) {
            // SAFETY: allocated with this layout, and nobody else has it.
            unsafe { dealloc(self.base(), layout) };
        }
    }
}

/// Asks for huge pages past the first one, so that a table which stays small stays small in memory too.
/// A system without them ignores the wish.
fn advise_huge_pages(map: &MmapRaw) {
    #[cfg(target_os = "linux")]
    if map.len() > 2 * HUGE_PAGE {
        // Refused where the kernel was built without them: the table works the same, only slower.
        drop(map.advise_range(memmap2::Advice::HugePage, HUGE_PAGE, map.len() - HUGE_PAGE));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (map, HUGE_PAGE);
}

/// Keeps the memory of dropped tables for the tables that are made next.
///
/// A table that was built with [`Builder::pool`](crate::Builder::pool) takes its memory from the pool, if the pool has some of the size
/// that the table needs, and returns it when its last handle is dropped. So an engine that replaces its memtable again and again
/// touches no fresh page. A clone is the same pool. The pool may be dropped before its tables.
///
/// ```
/// use fastskip::{Memtable, TablePool};
///
/// let pool = TablePool::new(2);
/// for round in 0..10 {
///     let memtable = Memtable::builder().max_memory_bytes(1 << 20).pool(&pool).build();
///     memtable.put(b"key", round, b"value")?;
/// }
/// assert_eq!(pool.len(), 1);
/// # Ok::<(), fastskip::InsertError>(())
/// ```
#[derive(Clone)]
pub struct TablePool {
    most: usize,
    ranges: Arc<Mutex<Vec<Range>>>,
}

impl TablePool {
    /// Creates an empty pool that keeps the memory of up to `tables` tables.
    #[must_use]
    pub fn new(tables: usize) -> Self {
        Self { most: tables, ranges: Arc::default() }
    }

    /// How many tables' memory it keeps at the moment.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether it keeps no memory at the moment.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory that it keeps to the system.
    pub fn clear(&self) {
        let kept = core::mem::take(&mut *self.ranges.lock().unwrap_or_else(PoisonError::into_inner));
        drop(kept);
    }

    /// Runs `with` on the ranges, unless another thread has them: nobody waits for a pool.
    fn try_with<R>(&self, with: impl FnOnce(&mut Vec<Range>) -> R) -> Option<R> {
        match self.ranges.try_lock() {
            Ok(mut ranges) => Some(with(&mut ranges)),
            Err(TryLockError::Poisoned(poisoned)) => Some(with(&mut poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// A range of `bytes`, the one that came back last, or none.
    pub(super) fn take(&self, bytes: usize) -> Option<Range> {
        self.try_with(|ranges| {
            let index = ranges.iter().rposition(|range| range.len() == bytes)?;
            Some(ranges.remove(index))
        })?
    }

    /// Keeps `range`, in place of the oldest if there are enough.
    pub(super) fn put(&self, range: Range) {
        let mut range = Some(range);
        let replaced = self.try_with(|ranges| {
            let full = ranges.len() >= self.most && !ranges.is_empty();
            let replaced = full.then(|| ranges.remove(0));
            if self.most != 0 {
                ranges.extend(range.take());
            }
            replaced
        });
        // To unmap takes long: after the lock is released.
        drop((replaced, range));
    }
}

impl fmt::Debug for TablePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TablePool").field("len", &self.len()).field("most", &self.most).finish()
    }
}
