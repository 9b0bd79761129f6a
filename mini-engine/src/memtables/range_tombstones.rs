//! [`MemtableRanges`]: the range tombstones of a memtable, beside its entries.
//!
//! There are few of them, mostly none: then a read pays one load. Each addition makes the fragments anew, so the engine rotates a
//! memtable that has [`MOST_RANGES`] of them.
//!
//! R1 the first key of each range is removed by an ordinary tombstone of the same number, among the entries. So a memtable with range
//!    tombstones is not empty, and its operations have numbers without gaps.
//! R2 a number is published after the range tombstones of all numbers up to it were added (`db/core/publication.rs`), as it is with
//!    entries. So a reader that sees a number sees them, whatever the orderings here; newer ones it leaves out by their numbers.
//! R3 after the freeze nothing is added.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use crate::types::{RangeTombstone, RangeTombstones};

/// A memtable with so many range tombstones is full.
pub(crate) const MOST_RANGES: usize = 256;

/// The range tombstones of one memtable.
#[derive(Debug, Default)]
pub(super) struct MemtableRanges {
    /// Relaxed: by R2 whoever has to see it set has synchronised with the thread that set it.
    is_used: AtomicBool,
    fragments: ArcSwap<RangeTombstones>,
    /// Held by a writer that adds some.
    all: Mutex<Vec<RangeTombstone>>,
}

impl MemtableRanges {
    pub(super) fn add(&self, more: impl IntoIterator<Item = RangeTombstone>) {
        // Pushing and making fragments of what is there leave both whole, wherever a panic strikes.
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.len();
        all.extend(more);
        if all.len() > before {
            self.fragments.store(Arc::new(RangeTombstones::new(&*all)));
            self.is_used.store(true, Ordering::Relaxed);
        }
    }

    /// Those that were added; `None` if there are none.
    #[inline]
    pub(super) fn get(&self) -> Option<Arc<RangeTombstones>> {
        if self.is_used.load(Ordering::Relaxed) { Some(self.fragments.load_full()) } else { None }
    }
}
