//! The queue of batches whose writers wait for the write lock.
//!
//! The queue knows nothing of the core: it holds batches and their outcomes. What is done with them, and the invariants
//! that this keeps, is in `write/commit.rs`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::Result;
use crate::memtables::memory_for;
use crate::types::{BatchOp, SeqNo, WriteBatch};
use crate::wal::{self, Payload};

/// Where a write ends: all that is needed to make it durable later.
#[derive(Clone, Debug)]
pub(crate) struct Logged {
    pub(crate) seqno: SeqNo,
    pub(crate) log: Arc<wal::Segment>,
    pub(crate) end: u64,
    pub(crate) operations: u64,
    /// Bytes of keys and values.
    pub(crate) user_bytes: u64,
}

/// A batch on its way.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) batch: WriteBatch,
    /// The payload of its frame, if that is not the batch as it is.
    compressed: Option<Vec<u8>>,
    pub(crate) outcome: OnceLock<Result<Logged>>,
}

impl Pending {
    pub(crate) fn new(batch: WriteBatch, compressed: Option<Vec<u8>>) -> Arc<Pending> {
        Arc::new(Pending { batch, compressed, outcome: OnceLock::new() })
    }

    /// An upper estimate of the memory that the batch takes in a memtable.
    pub(crate) fn memory(&self) -> usize {
        memory_for(self.batch.len(), self.batch.payload().len())
    }

    /// The payload of its frame in the log.
    pub(crate) fn payload(&self) -> Payload<'_> {
        match &self.compressed {
            Some(bytes) => Payload::Compressed(bytes),
            None => Payload::Raw(self.batch.payload()),
        }
    }

    /// Bytes of its keys and values.
    pub(crate) fn user_bytes(&self) -> u64 {
        let bytes = |op: BatchOp<'_>| match op {
            BatchOp::Insert { key, value } => key.len() as u64 + value.len() as u64,
            BatchOp::Remove { key } => key.len() as u64,
        };
        self.batch.iter().map(bytes).sum()
    }
}

/// The batches whose writers wait for the write lock, first come first.
#[derive(Debug, Default)]
pub(crate) struct CommitQueue(Mutex<VecDeque<Arc<Pending>>>);

impl CommitQueue {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(crate) fn push(&self, pending: &Arc<Pending>) {
        self.lock().push_back(pending.clone());
    }

    pub(crate) fn withdraw(&self, own: &Arc<Pending>) {
        self.lock().retain(|pending| !Arc::ptr_eq(pending, own));
    }

    /// Takes `own`, whether or not it is in the queue, and those at the front that `fits` with what was taken before.
    pub(crate) fn take(&self, own: &Arc<Pending>, mut fits: impl FnMut(&Pending) -> bool) -> Vec<Arc<Pending>> {
        let mut queue = self.lock();
        queue.retain(|pending| !Arc::ptr_eq(pending, own));
        let mut group = vec![own.clone()];
        while let Some(next) = queue.pop_front_if(|next| fits(next)) {
            group.push(next);
        }
        group
    }

    /// Puts back what was taken and not written, in its old order.
    pub(crate) fn put_back(&self, others: Vec<Arc<Pending>>) {
        let mut queue = self.lock();
        others.into_iter().rev().for_each(|pending| queue.push_front(pending));
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Pending>>> {
        // Whole between any two statements, so a panic of another holder does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
