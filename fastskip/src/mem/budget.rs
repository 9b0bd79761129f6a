//! Sums with a maximum to which tables add their parts: a [`MemoryBudget`], and the addresses of the process (`range.rs`).
//!
//! The limit of a table and its budget work in the same way: its chunks are leases of both, which shrink as either comes near its end (`arena.rs`).
//! A thread adds the bytes of a chunk to the sum, and then moves the extent of the arena, which has the limit (`chunk.rs`). Bytes that are given back
//! are subtracted after the extent has shrunk. So the sum of what was granted never exceeds the maximum. It equals the reserved bytes of all tables
//! whenever no thread is between the two steps (I6, loom `budget_of_two_tables`).
//!
//! A thread that waits for room sets a bit of the sum, by a read-modify-write that also returns the sum. A thread that subtracts later sees the bit,
//! takes the lock and wakes it; so no wake-up is lost (loom `waiting_for_room`).

#[cfg(feature = "std")]
use std::time::{Duration, Instant};

use crate::sync::{Arc, AtomicU64, Ordering};
#[cfg(feature = "std")]
use crate::sync::{Condvar, Mutex, PoisonError};

/// Bytes in a word of an arena.
const WORD: u64 = 8;

/// The bit of a sum that waiting threads set.
const WAITING: u64 = 1 << 63;

/// A sum, and its maximum.
#[derive(Debug)]
pub(super) struct Sum {
    pub(super) now: AtomicU64,
    pub(super) most: u64,
}

// Relaxed, as all accesses here: a read-modify-write sees the latest sum, which publishes nothing.
impl Sum {
    pub(super) fn total(&self) -> u64 {
        self.now.load(Ordering::Relaxed) & !WAITING
    }

    /// Adds `part`, unless the sum would exceed its maximum. Returns the sum after that.
    pub(super) fn add(&self, part: u64) -> Option<u64> {
        let added = |sum: u64| (sum & !WAITING).checked_add(part).filter(|total| *total <= self.most);
        let sum =
            self.now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |sum| added(sum).map(|_| sum + part)).ok();
        sum.and_then(added)
    }

    /// Returns whether a thread waits for this.
    pub(super) fn subtract(&self, part: u64) -> bool {
        self.now.fetch_sub(part, Ordering::Relaxed) & WAITING != 0
    }
}

/// A limit on the memory of several tables together, which is RocksDB's `WriteBufferManager`. A clone refers to the same budget.
///
/// The budget counts the bytes that the arenas of its tables have handed out ([`memory_reserved`](crate::Stats::memory_reserved)), exactly. It does
/// not count the first 320 bytes of each table, and memory that a [`TablePool`](crate::TablePool) keeps. A table takes a chunk at a time, and smaller
/// chunks towards the end, so most writes do not touch the budget. Memory returns to it when a table is dropped or reset, and the unused
/// rest of a reservation if it was taken for that reservation alone.
///
/// A write for which the budget has no room fails with [`Full`](crate::InsertError::Full), and may succeed later, when another table was dropped. It
/// fails even if other tables have idle chunks. Such a chunk has up to 2 MiB in each shard, usually an eighth of what the shard has. Entries never
/// exceed the budget. Blocks of the index may, if another table uses up the budget after the entries got their memory: by 7 to 12 bytes for each such
/// entry in most orders of keys, at most 32; and by one chunk for blocks, up to 32 KiB, for each shard.
///
/// ```
/// use fastskip::{InsertError, Memtable, MemoryBudget};
///
/// let budget = MemoryBudget::new(1 << 20);
/// let new = || Memtable::builder().shards(1).budget(&budget).build();
/// let (active, frozen) = (new(), new());
/// let mut seqno = 0..;
/// while frozen.put(b"key", seqno.next().unwrap(), &[0; 1000]).is_ok() {}
/// assert!(budget.is_under_backpressure(0.9));
/// assert_eq!(active.put(b"key", 1, &[0; 1000]), Err(InsertError::Full));
/// drop(frozen.freeze()); // A flush writes the table.
/// drop(frozen);
/// assert_eq!(budget.memory_reserved(), 0);
/// active.put(b"key", 1, &[0; 1000])?;
/// # Ok::<(), InsertError>(())
/// ```
#[derive(Debug, Clone)]
pub struct MemoryBudget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    sum: Sum,
    /// Held by a thread that waits while it is awake, and by the thread that wakes it.
    #[cfg(feature = "std")]
    awake: Mutex<()>,
    #[cfg(feature = "std")]
    returned: Condvar,
}

impl MemoryBudget {
    /// Creates a budget of this many bytes; 0 means no limit: the budget then only counts.
    #[must_use]
    pub fn new(max_memory_bytes: usize) -> Self {
        let most = if max_memory_bytes == 0 { WAITING - 1 } else { max_memory_bytes as u64 };
        let sum = Sum { now: AtomicU64::new(0), most };
        Self(Arc::new(Shared {
            sum,
            #[cfg(feature = "std")]
            awake: Mutex::new(()),
            #[cfg(feature = "std")]
            returned: Condvar::new(),
        }))
    }

    /// The limit, in bytes; 0 means no limit. O(1).
    #[must_use]
    pub fn max_memory_bytes(&self) -> usize {
        if self.0.sum.most == WAITING - 1 { 0 } else { self.0.sum.most as usize }
    }

    /// The bytes of all tables. While a thread takes a chunk, it may count although the thread does not get it. O(1).
    #[must_use]
    pub fn memory_reserved(&self) -> usize {
        self.0.sum.total() as usize
    }

    /// Whether `part` of the budget, from 0.0 to 1.0, is in use now. Tables include this, with their own part
    /// ([`backpressure_at`](crate::Builder::backpressure_at)), in `is_under_backpressure`. O(1).
    #[must_use]
    pub fn is_under_backpressure(&self, part: f64) -> bool {
        self.0.sum.total() as f64 >= self.0.sum.most as f64 * part
    }

    /// Waits until `bytes` are left, or `timeout` is over; returns whether they are left. The room is not reserved: another thread may take it first.
    /// A thread that holds a table or a reservation may wait only for memory that others return. More bytes than the budget has are not waited for.
    #[must_use]
    #[cfg(feature = "std")]
    pub fn wait_for_room(&self, bytes: usize, timeout: Duration) -> bool {
        let Shared { sum, awake, returned } = &*self.0;
        if bytes as u64 > sum.most {
            return false;
        }
        let mut begun = None;
        let mut guard = awake.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let total = sum.now.fetch_or(WAITING, Ordering::Relaxed) & !WAITING;
            if sum.most.saturating_sub(total) >= bytes as u64 {
                return true;
            }
            // One thread alone cannot wait for another, and may have no clock.
            if cfg!(all(target_family = "wasm", not(target_feature = "atomics"))) {
                return false;
            }
            let left = timeout.saturating_sub(begun.get_or_insert_with(Instant::now).elapsed());
            if left.is_zero() {
                return false;
            }
            guard = returned.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The number of words that an empty budget has, and the number that are left now.
    pub(super) fn most_words(&self) -> u64 {
        self.0.sum.most / WORD
    }

    pub(super) fn left_words(&self) -> u64 {
        self.0.sum.most.saturating_sub(self.0.sum.total()) / WORD
    }

    /// Takes `words`; beyond the limit only if they are for the index. Returns false if too few are left.
    pub(super) fn take(&self, words: u32, for_index: bool) -> bool {
        let bytes = u64::from(words) * WORD;
        if for_index {
            self.0.sum.now.fetch_add(bytes, Ordering::Relaxed);
        }
        for_index || self.0.sum.add(bytes).is_some()
    }

    pub(super) fn give_back(&self, words: u32) {
        if self.0.sum.subtract(u64::from(words) * WORD) {
            self.wake();
        }
    }

    /// Without `std` no thread waits.
    #[cold]
    fn wake(&self) {
        #[cfg(feature = "std")]
        {
            let _awake = self.0.awake.lock().unwrap_or_else(PoisonError::into_inner);
            self.0.sum.now.fetch_and(!WAITING, Ordering::Relaxed);
            self.0.returned.notify_all();
        }
    }
}
