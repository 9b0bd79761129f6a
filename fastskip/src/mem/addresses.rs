//! The addresses that all tables of the process have: their sum has a bound, so that tables leave addresses to the process, and the system's
//! mappings.

use std::io;

use crate::sync::{AtomicU64, Ordering};

/// Ranges up to this size come from the allocator, which is quicker than the system. 256 KiB. Under Miri, which cannot reserve addresses, all do.
pub(super) const HEAP_BYTES: usize = if cfg!(miri) { 4 << 20 } else { 256 << 10 };

/// The factor by which a request shrinks when the system refuses: the table should not take the last memory that the system would grant.
pub(super) const LESS: usize = 16;

/// The range of a table without a limit. A table may grow into it. Windows charges a mapping when it is made, not when it is touched.
pub(crate) const UNLIMITED_BYTES: usize = if cfg!(windows) { 1 << 30 } else { 16 << 30 };

/// What all tables may have together: 64 TiB, half of the 47 bits that the common systems give to a process.
const MOST: u64 = 64 << 40;

/// A table without a limit takes at most one part in this many of what is left. So 2048 tables get the whole range, 30,000 each of the next three
/// sizes, a sixteenth of the one before, and more than 120,000 tables one at all.
const PART: u64 = 2048;

/// The ranges that may ask for huge pages. Each is two mappings of the system, of which Linux allows a process 65,530; other ranges are joined there.
const MOST_HUGE: u64 = 8192;

/// Each time as many bytes were added, a table asks whether the system would grant further addresses. 16 MiB.
const ASK: u64 = 16 << 20;

/// What must be left to the process, for its threads and allocations, once tables have as much. 256 MiB.
const LEFT: u64 = 256 << 20;

static BYTES: AtomicU64 = AtomicU64::new(0);
static HUGE: AtomicU64 = AtomicU64::new(0);

/// The bytes that a table without a limit asks for: fewer where tables have much already.
pub(crate) fn unlimited_bytes() -> usize {
    let left = MOST.saturating_sub(BYTES.load(Ordering::Relaxed));
    let mut bytes = UNLIMITED_BYTES;
    while bytes as u64 > left / PART && bytes > HEAP_BYTES {
        bytes /= LESS;
    }
    bytes
}

/// A part of a sum, which is taken back when this is dropped.
#[derive(Debug)]
pub(super) struct Share {
    of: &'static AtomicU64,
    share: u64,
    /// The sum behind it.
    sum: u64,
}

impl Share {
    /// Adds `share`, unless the sum would exceed `most`.
    fn take(of: &'static AtomicU64, share: u64, most: u64) -> Option<Self> {
        // Relaxed: a sum, which publishes nothing.
        let add = |sum: u64| sum.checked_add(share).filter(|sum| *sum <= most);
        let before = of.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Self { of, share, sum: before + share })
    }

    /// `bytes` of addresses.
    ///
    /// # Errors
    /// The tables of the process have too many already.
    pub(super) fn of_addresses(bytes: usize) -> io::Result<Self> {
        Self::take(&BYTES, bytes as u64, MOST).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// The bytes that the system should grant beside these: as many again, and as many as all tables have, up to [`LEFT`]. `None` if that was asked a
    /// short while ago, unless addresses are known to be scarce.
    pub(super) fn to_be_left(&self, is_scarce: bool) -> Option<usize> {
        let is_due = is_scarce || (self.sum - self.share) / ASK != self.sum / ASK;
        is_due.then_some(self.share.max(self.sum.min(LEFT)) as usize)
    }

    /// One range with huge pages, if there may be another.
    pub(super) fn of_huge_pages() -> Option<Self> {
        Self::take(&HUGE, 1, MOST_HUGE)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.fetch_sub(self.share, Ordering::Relaxed);
    }
}
