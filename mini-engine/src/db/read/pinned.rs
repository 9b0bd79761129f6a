//! A pinned moment of the database: what snapshots, iterators and cursors own.

use std::sync::Arc;

use super::get::{contains, get, view_first};
use super::get_many::get_many;
use crate::db::core::{Core, View};
use crate::error::Result;
use crate::types::{SeqNo, Slice};

/// A view, and the sequence number at which it is read: all that a snapshot or an iterator sees. Keeps the directory's
/// lock, the memtables and the open tables alive. Fields drop in this order: the files before the lock.
pub(crate) struct Pinned {
    pub(crate) view: Arc<View>,
    pub(crate) seqno: SeqNo,
    pub(crate) core: Arc<Core>,
}

impl std::fmt::Debug for Pinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pinned").field("seqno", &self.seqno).field("core", &self.core).finish_non_exhaustive()
    }
}

impl Pinned {
    /// Pins the database as it is now, as a live snapshot.
    pub(crate) fn now(core: &Arc<Core>) -> Result<Arc<Pinned>> {
        core.check_open()?;
        let (view, seqno) = core.snapshots.register(|| consistent(|| core.view.load_full(), || core.visible()));
        Ok(Arc::new(Pinned { view, seqno, core: core.clone() }))
    }

    /// The newest value of `key` that this sees.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Slice>> {
        get(&self.core, &self.view, key, self.seqno)
    }

    /// Whether `key` has a value that this sees.
    pub(crate) fn contains(&self, key: &[u8]) -> Result<bool> {
        contains(&self.core, &self.view, key, self.seqno)
    }

    /// The newest values of `keys` that this sees.
    pub(crate) fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Slice>>> {
        get_many(&self.core, &self.view, keys, self.seqno)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.core.snapshots.release(self.seqno);
    }
}

/// A view and a number that belong together: the view holds every write up to the number.
///
/// Between the two a rotation may have taken place, and the number may count writes that went to a memtable the view
/// does not have. They all come after everything in the view, so that the reader would still see one moment of the
/// past, but under a wrong number. If the view is still current when the number is known, all writes up to the number
/// are in it.
fn consistent<V>(view: impl Fn() -> Arc<V>, visible: impl Fn() -> SeqNo) -> (Arc<V>, SeqNo) {
    loop {
        let (pinned, seqno) = view_first(&view, &visible);
        if Arc::ptr_eq(&pinned, &view()) {
            return (pinned, seqno);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_pinned_number_counts_no_write_that_the_pinned_view_does_not_have() {
        // Catches a snapshot whose number says more than it shows, when a rotation comes between the two loads.
        let views = [Arc::new(5), Arc::new(9)];
        let rotated = Cell::new(false);
        let current = || views[usize::from(rotated.get())].clone();
        let (last_in_view, seqno) = consistent(current, || {
            rotated.set(true);
            9
        });
        assert_eq!((*last_in_view, seqno), (9, 9));
    }
}
