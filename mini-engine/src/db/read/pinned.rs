//! The possessions of readers beyond a call: a snapshot owns a sequence number, an iterator or a cursor owns a view. None owns both.
//!
//! P1 A registered number keeps versions: from its registration on, no flush and no compaction drops what it sees (rule 16). So any later
//!    view holds all of it, and a snapshot reads whichever view is current. It holds no file and no memtable of the past.
//! P2 A view keeps files and memtables: they hold all that was in them, whatever compactions write elsewhere. So an iterator needs no
//!    registered number. It pins its view while the number that it reads at is registered, and so before any compaction may drop what it
//!    is to see (P1).
//! P3 A compaction drops a version only for a newer one among its inputs. All of its inputs are visible when it asks for the live numbers:
//!    a load is published in one step with its view, and a memtable is frozen after its writes are visible. So a number that is
//!    registered after that sees the newer version.
//! P4 Quarantined tables are those of the time when the number was registered: one that is dropped later is still in the way, since
//!    the snapshot may have shown that it is.
//! P5 A scan of now registers no number either. It pins its view first and loads the visible number after (rule 16): what the view's
//!    tables lack was replaced by versions that this number sees. Writes of after the view's last rotation are not in the view, whatever
//!    the number: then the scan shows the database as it was at that rotation, which the caller overlapped with. No batch is in two memtables.
//!
//! Both at once, as in a snapshot that pins its view, would keep the space twice: the files of the past, and in the new ones the
//! versions that these files hold as well. An iterator does not move on to newer views on its way: for that it would have to keep
//! its number registered too. A scan that may take hours is better made of ranges of a snapshot, each from the key after the last.

use std::sync::Arc;

use super::read_point::{ReadPoint, view_first};
use crate::db::core::{Core, SnapshotId, View, ViewId};
use crate::error::Result;
use crate::table::TableMeta;
use crate::types::SeqNo;

/// A registered sequence number: all that a snapshot owns. Keeps the directory's lock.
pub(crate) struct Registered {
    id: SnapshotId,
    /// Whose keys cannot be read (P4).
    quarantined: Arc<[TableMeta]>,
    core: Arc<Core>,
}

impl std::fmt::Debug for Registered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registered").field("seqno", &self.id.seqno).field("core", &self.core).finish_non_exhaustive()
    }
}

impl Registered {
    /// Registers the number that is visible now.
    pub(crate) fn now(core: &Arc<Core>) -> Result<Arc<Registered>> {
        core.check_open()?;
        // Before the number is registered: later, and a table could be dropped in between that a read at the number must not pass.
        let quarantined = core.view.load().version.quarantined().into();
        let id = core.snapshots.register(|| core.visible());
        Ok(Arc::new(Registered { id, quarantined, core: core.clone() }))
    }

    pub(crate) fn seqno(&self) -> SeqNo {
        self.id.seqno
    }

    /// Pins the current view, to be read at this number.
    pub(crate) fn pin(&self) -> Arc<Pinned> {
        Pinned::new(&self.core, self.core.view.load_full(), self.seqno(), Some(self.quarantined.clone()))
    }

    /// Reads the current view at this number.
    pub(crate) fn read<T>(&self, read: impl FnOnce(ReadPoint<'_>) -> T) -> T {
        let Registered { quarantined, core, .. } = self;
        read(ReadPoint { core, view: &core.view.load(), seqno: self.seqno(), quarantined })
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.core.snapshots.release(&self.id);
    }
}

/// A view, and the sequence number at which it is read: what an iterator or a cursor owns. Keeps the directory's lock, the memtables
/// and the open tables alive. Fields drop in this order: the files before the lock.
pub(crate) struct Pinned {
    pub(crate) view: Arc<View>,
    pub(crate) seqno: SeqNo,
    /// Of the snapshot that it was made from, if it was (P4).
    quarantined: Option<Arc<[TableMeta]>>,
    id: ViewId,
    core: Arc<Core>,
}

impl Pinned {
    /// Pins the current view, to be read as of now (P5).
    pub(crate) fn now(core: &Arc<Core>) -> Result<Arc<Pinned>> {
        core.check_open()?;
        let (view, seqno) = view_first(|| core.view.load_full(), || core.visible());
        Ok(Pinned::new(core, view, seqno, None))
    }

    fn new(core: &Arc<Core>, view: Arc<View>, seqno: SeqNo, quarantined: Option<Arc<[TableMeta]>>) -> Arc<Pinned> {
        let id = core.snapshots.register_view();
        Arc::new(Pinned { view, seqno, quarantined, id, core: core.clone() })
    }

    /// Whether there are quarantined tables, which no read may pass.
    pub(super) fn is_guarded(&self) -> bool {
        !self.quarantined().is_empty()
    }

    fn quarantined(&self) -> &[TableMeta] {
        self.quarantined.as_deref().unwrap_or_else(|| self.view.version.quarantined())
    }

    pub(super) fn point(&self) -> ReadPoint<'_> {
        let Pinned { view, seqno, core, .. } = self;
        ReadPoint { core, view, seqno: *seqno, quarantined: self.quarantined() }
    }
}

impl std::fmt::Debug for Pinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pinned").field("seqno", &self.seqno).field("core", &self.core).finish_non_exhaustive()
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.core.snapshots.release_view(&self.id);
    }
}
