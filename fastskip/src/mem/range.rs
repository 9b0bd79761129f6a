//! Address ranges, and the pool that passes them from a dropped table to the next one. The sum of all ranges of the process is bounded, so that
//! tables leave addresses and mappings of the system to the rest of the process.

use alloc::alloc::{Layout, alloc, dealloc};
use alloc::vec::Vec;
use core::fmt;
use core::ptr::NonNull;
#[cfg(feature = "std")]
use std::io::ErrorKind::OutOfMemory;

#[cfg(feature = "std")]
use memmap2::{MmapMut, MmapOptions, MmapRaw};

use super::budget::Sum;
use super::poison::unpoison;
#[cfg(not(feature = "std"))]
use crate::error::InsertError::Full as OutOfMemory;
use crate::error::Refusal;
use crate::sync::{Arc, AtomicU64, Mutex, PoisonError, TryLockError};

/// Whether arenas are fixed: the allocator provides all of an arena at once, since addresses are few, or there is no system. A cfg compiles this for
/// 64 bits with `std` too, for tests.
const IS_FIXED: bool = cfg!(any(not(target_pointer_width = "64"), not(feature = "std"), fastskip_fixed_arena));

/// Ranges up to this size come from the allocator, which is faster than the system. 256 KiB; all ranges if arenas are fixed, and under Miri, which
/// cannot reserve addresses.
pub(super) const HEAP_BYTES: usize = match (IS_FIXED, cfg!(miri)) {
    (true, _) => isize::MAX as usize,
    (false, true) => 4 << 20,
    (false, false) => 256 << 10,
};

/// The factor by which a request shrinks when the system refuses it: a table should not take the last memory that the system would grant.
pub(super) const LESS: usize = 16;

/// The size of the range of a table without a limit. The table may grow into all of it. Windows charges a mapping when it is created, not when
/// touched. The size of a fixed arena is that of a large memtable.
pub(crate) const UNLIMITED_BYTES: usize = match (IS_FIXED, cfg!(windows)) {
    (true, _) => 64 << 20,
    (false, true) => 1 << 30,
    (false, false) => 16 << 30,
};

/// The maximum number of bytes of all tables together: 64 TiB, half of the 47 bits that common systems give to a process; 2 GiB of fixed arenas.
const MOST: u64 = if IS_FIXED { 2 << 30 } else { 64 << 40 };

/// A table without a limit takes at most one part in this many of the bytes that are left. So 2048 tables get the whole range; 30,000 tables get each
/// of the next three sizes, which decrease by a factor of sixteen; and more than 120,000 tables get a range at all. Of fixed arenas, 16 get 64 MiB, and
/// about 250 get 4 MiB.
const PART: u64 = if IS_FIXED { 16 } else { 2048 };

/// The maximum number of ranges that may ask for huge pages. Each of them is two mappings of the system, of which Linux allows a process 65,530;
/// adjacent ranges without huge pages are joined into one mapping.
#[cfg(feature = "std")]
const MOST_HUGE: u64 = 8192;

/// After each addition of this many bytes, a table tests whether the system would grant further addresses. 16 MiB.
const ASK: u64 = 16 << 20;

/// The maximum number of bytes that must be left to the process, for its threads and allocations; less is required while tables have less. 256 MiB.
const LEFT: u64 = 256 << 20;

static BYTES: Sum = Sum { now: AtomicU64::new(0), most: MOST };
#[cfg(feature = "std")]
static HUGE: Sum = Sum { now: AtomicU64::new(0), most: MOST_HUGE };

/// The number of bytes that a table without a limit requests: fewer if the tables of the process have many already.
pub(crate) fn unlimited_bytes() -> usize {
    let left = MOST.saturating_sub(BYTES.total());
    let mut bytes = UNLIMITED_BYTES;
    while bytes as u64 > left / PART && bytes > SHARED_BYTES {
        bytes /= LESS;
    }
    bytes
}

/// A part of a sum, which is subtracted when this value is dropped.
#[derive(Debug)]
struct Share {
    total: &'static Sum,
    share: u64,
    /// The sum after this share was added.
    sum: u64,
}

impl Share {
    /// Adds `share`, unless the sum would exceed its maximum.
    fn take(total: &'static Sum, share: u64) -> Option<Self> {
        Some(Self { total, share, sum: total.add(share)? })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.total.subtract(self.share);
    }
}

/// Alignment of a range: rows of the index are aligned to cache lines.
const ALIGN: usize = 64;

/// The number of ranges that are kept for tables without a pool, and the maximum used memory of each. 8, and 256 KiB: 2 MiB in all.
#[cfg(feature = "std")]
const SHARED_RANGES: usize = 8;
const SHARED_BYTES: usize = 256 << 10;

/// The size of a huge page on the common 64-bit systems. Tables smaller than this keep ordinary pages.
#[cfg(feature = "std")]
const HUGE_PAGE: usize = 2 << 20;

/// A range of addresses that belongs to one table, aligned to a cache line.
#[derive(Debug)]
pub(crate) struct Range {
    base: NonNull<u8>,
    len: usize,
    /// The mapping; `None` if the range came from the allocator.
    map: Option<MmapRaw>,
    /// Whether huge pages were requested.
    huge_pages: bool,
    /// The shares of this range in the sums over all tables.
    addresses: Option<Share>,
    _advised: Option<Share>,
}

// SAFETY: it owns its memory, and only hands out the address.
unsafe impl Send for Range {}
// SAFETY: as above.
unsafe impl Sync for Range {}

impl Range {
    /// A range of `bytes`. The size is divided repeatedly while the system refuses, the tables of the process have too much, or too little would be
    /// left to the process; it is never less than `least`. `bytes` and `least` are multiples of 64.
    ///
    /// # Errors
    /// Returns the last error of the system.
    pub(crate) fn reserve(bytes: usize, least: usize, huge_pages: bool) -> Result<Self, Refusal> {
        // Returns the memory of the shared pool to the system, unless another thread is using the pool. Returns whether the pool had any memory.
        #[cfg(feature = "std")]
        let give_up = || TablePool::shared().try_with(core::mem::take).is_some_and(|kept| !kept.is_empty());
        #[cfg(not(feature = "std"))]
        let give_up = || false;
        let mut len = bytes.max(least);
        let mut is_cleared = false;
        loop {
            match Self::granted(len, huge_pages, len < bytes) {
                Ok(range) => return Ok(range),
                Err(_) if !core::mem::replace(&mut is_cleared, true) && give_up() => {}
                Err(refusal) if len == least => return Err(refusal),
                Err(_) => len = (len / LESS).next_multiple_of(ALIGN).max(least),
            }
        }
    }

    /// A range of `len` bytes that leaves addresses to the process. Tests this if `is_scarce`, and otherwise once in a while.
    fn granted(len: usize, huge_pages: bool, is_scarce: bool) -> Result<Self, Refusal> {
        let addresses = Share::take(&BYTES, len as u64).ok_or(OutOfMemory)?;
        let mut range = if len <= HEAP_BYTES { Self::allocate(len) } else { Self::map(len, huge_pages) }?;
        let Share { sum, share, .. } = addresses;
        if !cfg!(miri) && !IS_FIXED && (is_scarce || (sum - share) / ASK != sum / ASK) {
            // The test maps the size of this range or, if that is larger, the size of all tables up to `LEFT`.
            Self::map_anonymous(share.max(sum.min(LEFT)) as usize)?;
        }
        range.addresses = Some(addresses);
        Ok(range)
    }

    fn layout(len: usize) -> Result<Layout, Refusal> {
        let layout = Layout::from_size_align(len, ALIGN).ok().ok_or(OutOfMemory)?;
        Ok(layout)
    }

    /// A range from the allocator. Its contents are undefined, like those of a range from an earlier table: a table reads only words that it wrote.
    fn allocate(len: usize) -> Result<Self, Refusal> {
        let layout = Self::layout(len.max(ALIGN))?;
        // SAFETY: the size is not 0.
        let base = NonNull::new(unsafe { alloc(layout) }).ok_or(OutOfMemory)?;
        Ok(Self { base, len: layout.size(), map: None, huge_pages: false, addresses: None, _advised: None })
    }

    #[cfg(feature = "std")]
    fn map(len: usize, huge_pages: bool) -> Result<Self, Refusal> {
        if cfg!(miri) {
            return Err(std::io::ErrorKind::Unsupported.into());
        }
        let map = MmapRaw::from(Self::map_anonymous(len)?);
        let base = NonNull::new(map.as_mut_ptr()).ok_or(OutOfMemory)?;
        // A process with many such ranges does not use huge pages for further ones.
        let may_advise = cfg!(target_os = "linux") && huge_pages && map.len() > 2 * HUGE_PAGE;
        let advised = may_advise.then(|| Share::take(&HUGE, 1)).flatten();
        #[cfg(target_os = "linux")]
        if advised.is_some() {
            // The first huge page is left out, so that a small table takes little memory. If the kernel has no huge pages, the call fails, and the
            // table is slower.
            drop(map.advise_range(memmap2::Advice::HugePage, HUGE_PAGE, map.len() - HUGE_PAGE));
        }
        Ok(Self { base, len: map.len(), map: Some(map), huge_pages, addresses: None, _advised: advised })
    }

    #[cfg(feature = "std")]
    fn map_anonymous(len: usize) -> Result<MmapMut, Refusal> {
        // Without a claim on swap, the kernel counts a page when it is touched, not when it is reserved.
        MmapOptions::new().len(len).no_reserve_swap().map_anon()
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

/// Without `std`, all ranges are from the allocator.
#[cfg(not(feature = "std"))]
type MmapRaw = core::convert::Infallible;

#[cfg(not(feature = "std"))]
impl Range {
    fn map(_: usize, _: bool) -> Result<Self, Refusal> {
        Err(OutOfMemory)
    }

    fn map_anonymous(_: usize) -> Result<(), Refusal> {
        Err(OutOfMemory)
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        if self.map.is_some() {
            return;
        }
        unpoison(self.base(), self.len);
        if let Ok(layout) = Self::layout(self.len) {
            // SAFETY: allocated with this layout, and used by nobody else.
            unsafe { dealloc(self.base(), layout) };
        }
    }
}

/// Keeps the memory of dropped tables for tables that are built later.
///
/// A table that was built with [`Builder::pool`](crate::Builder::pool) takes its memory from the pool, if the pool has memory of the needed size, and
/// returns it when its last handle is dropped. So an engine that repeatedly replaces its memtable touches no new pages. A clone refers to the same
/// pool. The pool may be dropped before its tables. Other tables share [a small pool](Self::shared), so tables of a few entries cost almost nothing.
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
pub struct TablePool(Arc<Pool>);

struct Pool {
    /// The maximum number of ranges to keep, and the maximum number of used bytes of each.
    most: usize,
    most_bytes: usize,
    kept: Mutex<Vec<Kept>>,
}

struct Kept {
    range: Range,
    /// The number of bytes of the range that tables have used: these may be committed memory.
    used: usize,
}

impl TablePool {
    /// Creates an empty pool that keeps the memory of up to `tables` tables.
    #[must_use]
    pub fn new(tables: usize) -> Self {
        Self::with(tables, usize::MAX)
    }

    fn with(most: usize, most_bytes: usize) -> Self {
        Self(Arc::new(Pool { most, most_bytes, kept: Mutex::default() }))
    }

    /// The pool of all tables of the process that are built without one. It keeps the ranges of up to eight tables that used no more than 256 KiB
    /// each: at most 2 MiB of memory in ordinary pages, and the addresses of the ranges. [`clear`](Self::clear) returns these ranges to the system. A
    /// table whose request for a range is refused also returns them.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: std::sync::LazyLock<TablePool> =
            std::sync::LazyLock::new(|| TablePool::with(SHARED_RANGES, SHARED_BYTES));
        &SHARED
    }

    /// The number of tables whose memory the pool keeps at the moment.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether the pool keeps no memory at the moment.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of kept bytes that tables have used, which may therefore be committed memory.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|kept| kept.used).sum()
    }

    /// Returns all memory of the pool to the system.
    pub fn clear(&self) {
        let kept = core::mem::take(&mut *self.0.kept.lock().unwrap_or_else(PoisonError::into_inner));
        drop(kept);
    }

    /// Runs `with` on the ranges, unless another thread is using them: no thread waits for a pool.
    fn try_with<R>(&self, with: impl FnOnce(&mut Vec<Kept>) -> R) -> Option<R> {
        match self.0.kept.try_lock() {
            Ok(mut kept) => Some(with(&mut kept)),
            Err(TryLockError::Poisoned(poisoned)) => Some(with(&mut poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The most recently returned range of `bytes`, if any, and the number of its bytes that earlier tables have used.
    pub(super) fn take(&self, bytes: usize, huge_pages: bool) -> Option<(Range, usize)> {
        self.try_with(|kept| {
            let fits = |kept: &Kept| {
                kept.range.len() == bytes && (kept.range.map.is_none() || kept.range.huge_pages == huge_pages)
            };
            let kept = kept.remove(kept.iter().rposition(fits)?);
            Some((kept.range, kept.used))
        })?
    }

    /// Keeps `range`, of which `used` bytes were used; if the pool is full, it replaces the oldest range.
    pub(super) fn put(&self, range: Range, used: usize) {
        // Windows charges reserved memory, and an allocator may have committed all of it.
        let cost = if cfg!(windows) || IS_FIXED { range.len() } else { used };
        let mut new = Some(Kept { range, used });
        let replaced = self.try_with(|kept| {
            if self.0.most == 0 || cost > self.0.most_bytes {
                return None;
            }
            let replaced = (kept.len() >= self.0.most).then(|| kept.remove(0));
            kept.extend(new.take());
            replaced
        });
        // Unmapping is slow, so it is done after the lock is released.
        drop((replaced, new));
    }
}

impl fmt::Debug for TablePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TablePool").field("len", &self.len()).field("most", &self.0.most).finish()
    }
}
