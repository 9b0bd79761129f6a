//! Freezing a memtable while it is in use.

use core::fmt;
use core::ops::Deref;

use super::Memtable;

#[cfg(doc)]
use crate::InsertError;

impl Memtable {
    /// Refuses every later reservation with [`Sealed`](InsertError::Sealed), waits until the open ones are applied or
    /// dropped (by unwinding too), and returns the table as it then is for good. A thread that calls this while it holds
    /// a reservation of the same table waits for itself, for ever; so does any for a reservation that was leaked.
    pub fn freeze(&self) -> FrozenVersions {
        self.list.freeze();
        FrozenVersions { memtable: self.clone() }
    }
}

/// A frozen memtable. It reads as the [`Memtable`] it was ([`Deref`]); its writes all say
/// [`Sealed`](InsertError::Sealed). A handle, like it.
#[derive(Clone)]
pub struct FrozenVersions {
    memtable: Memtable,
}

impl Deref for FrozenVersions {
    type Target = Memtable;

    fn deref(&self) -> &Memtable {
        &self.memtable
    }
}

impl fmt::Debug for FrozenVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrozenVersions").field("len", &self.len()).finish_non_exhaustive()
    }
}
