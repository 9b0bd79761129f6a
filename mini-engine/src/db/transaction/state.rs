//! [`TransactionState`]: the data of a transaction, shared by its parts for all keyspaces.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use super::pending::Pending;
use crate::db::core::{Core, RecentWrites};
use crate::db::read::{PointRead, Snapshot};
use crate::error::Result;
use crate::types::{KeyspaceRef, Millis, Slice};

/// The place in which a commit searches for writes that are newer than its reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConflictCheck {
    /// In the record of the newest writes, which writers keep while such transactions are open (`core/recent_writes.rs`).
    InRecord,
    /// In the view: cheap for a few keys.
    InView,
}

#[derive(Debug)]
pub(super) struct TransactionState {
    pub(super) core: Arc<Core>,
    /// Makes writers record their operations until the transaction ends.
    _recorded: Option<Recorded>,
    /// The snapshot for the transaction's reads, in the default keyspace.
    pub(super) snapshot: Snapshot,
    pub(super) pending: RefCell<Pending>,
    /// The instant for the transaction's own writes if its snapshot has none; read from the clock when it is first needed.
    own_instant: OnceCell<Millis>,
    /// Whether the last check before the commit has found a conflict.
    pub(super) has_conflict: Cell<bool>,
}

impl TransactionState {
    /// A transaction that reads at the number that is visible now. Its reads and writes may take `max_bytes` of memory.
    pub(super) fn now(core: &Arc<Core>, max_bytes: usize, check: ConflictCheck) -> TransactionState {
        // The recording begins before the number is registered, so that all later writes are in the record.
        let _recorded = (check == ConflictCheck::InRecord).then(|| Recorded::begin(core));
        let pending = RefCell::new(Pending::new(max_bytes));
        let (own_instant, has_conflict) = Default::default();
        let snapshot = Snapshot::now(core, KeyspaceRef::DEFAULT);
        TransactionState { core: core.clone(), _recorded, snapshot, pending, own_instant, has_conflict }
    }

    /// The instant at which the transaction's own writes are judged: that of its reads. If no entry of the database expired when the transaction
    /// began, the instant is the time of the transaction's first write of such an entry.
    pub(super) fn instant(&self) -> Result<Millis> {
        self.snapshot.check()?;
        Ok(match self.snapshot.instant() {
            0 => *self.own_instant.get_or_init(|| self.core.clock.peek()),
            instant => instant,
        })
    }

    /// The snapshot, to read `keyspace`.
    pub(super) fn snapshot_for(&self, keyspace: &KeyspaceRef) -> Result<&Snapshot> {
        self.core.keyspaces.check_keyspace(keyspace)?;
        self.snapshot.check()?;
        Ok(&self.snapshot)
    }

    /// The value of the stored key `key`, if it has one: the transaction's own value in `written`, or the result of `committed`, with its expiry.
    pub(super) fn read_key<T>(
        &self,
        keyspace: &KeyspaceRef,
        key: &[u8],
        written: impl FnOnce(&Slice) -> T,
        committed: impl FnOnce(PointRead<'_>) -> Result<Option<(T, Option<Millis>)>>,
    ) -> Result<Option<T>> {
        let snapshot = self.snapshot_for(keyspace)?;
        let mut pending = self.pending.borrow_mut();
        if let Some(own) = pending.writes.get(key) {
            return Ok(own.map(written));
        }
        pending.note_key(key)?;
        let Some((value, at)) = snapshot.read_in(keyspace, committed)? else { return Ok(None) };
        pending.reads.note_expiry(key, at);
        Ok(Some(value))
    }
}

/// Keeps the record of newer writes running (`core/recent_writes.rs`) until it is dropped.
#[derive(Debug)]
struct Recorded(Arc<Core>);

impl Recorded {
    fn begin(core: &Arc<Core>) -> Recorded {
        core.recording.add(|| {
            let mut state = core.lock();
            state.recent = Some(RecentWrites::new(state.last_seqno, core.store.options.max_transaction_bytes));
        });
        Recorded(core.clone())
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.0.recording.remove();
    }
}
