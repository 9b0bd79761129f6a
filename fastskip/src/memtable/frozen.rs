//! Freezing a memtable while it is in use.

use core::fmt;
use core::ops::Deref;

use super::table::Memtable;

#[cfg(doc)]
use crate::InsertError;

impl Memtable {
    /// Freezes the table and returns it; its contents no longer change. Every later write and reservation is rejected with
    /// [`Frozen`](InsertError::Frozen).
    ///
    /// Waits until the writes in progress are finished and the open reservations are applied or dropped, also by
    /// unwinding. A thread that holds a reservation of this table must not call `freeze`: it would wait for itself forever.
    /// If a reservation was leaked, `freeze` never returns. O(shards), not counting the wait.
    ///
    /// It sleeps until the last writer leaves, which wakes it. It does not park: an [`unpark`](std::thread::Thread::unpark) neither ends the
    /// wait nor is used up by it. It may be called while a thread's thread-locals are destroyed.
    pub fn freeze(&self) -> FrozenMemtable {
        self.list.freeze();
        FrozenMemtable { memtable: self.clone() }
    }
}

/// A frozen memtable. It dereferences to [`Memtable`], so it is read in the same way; every write is rejected with
/// [`Frozen`](InsertError::Frozen). Like a [`Memtable`], it is a handle.
#[derive(Clone)]
pub struct FrozenMemtable {
    memtable: Memtable,
}

impl FrozenMemtable {
    /// Makes this the next memtable: empty, open, with the same memory.
    ///
    /// # Errors
    /// Returns the frozen table while another handle of it exists, or a cursor, iterator or value that owns it.
    pub fn reset(mut self) -> Result<Memtable, Self> {
        if self.memtable.reset() { Ok(self.memtable) } else { Err(self) }
    }
}

impl Deref for FrozenMemtable {
    type Target = Memtable;

    fn deref(&self) -> &Memtable {
        &self.memtable
    }
}

impl fmt::Debug for FrozenMemtable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrozenMemtable").field("len", &self.len()).finish_non_exhaustive()
    }
}
