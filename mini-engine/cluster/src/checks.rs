//! [`Checks`]: hashes of a group's contents at one entry of the log, by which the replicas are compared.
//!
//! When a node applies a check, it takes a snapshot of the database, and hashes that while later entries are applied. All nodes that apply the entry
//! have the same contents at it, and the same instant, by which entries have expired. Only the last check is kept, in memory: a node that was away
//! applies old ones first.

use std::ops::Bound;
use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;

use mini_engine::{Db, Error, Keyspace, Slice, Snapshot};
use mini_engine_server::replicated::{KEYSPACE, SLOTS, slot_of};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Failure;
use crate::lock::lock;

/// The number of slots that share a hash: a difference is found in one of 64 ranges.
pub(crate) const SLOTS_TOGETHER: u16 = SLOTS / 64;
/// After this many bytes of keys and values, a look whether to go on.
const LOOK_AFTER_BYTES: usize = 1 << 20;

/// What a node has of a check.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Checked {
    /// The node has not applied the entry.
    Behind,
    UnderWay,
    /// The hash of each range of slots, or why there is none.
    Done(Result<Vec<u64>, String>),
}

#[derive(Clone, Default)]
pub(crate) struct Checks {
    /// The last check, with the index of its entry.
    last: Arc<Mutex<Option<(u64, Checked)>>>,
    failure: Failure,
}

impl Checks {
    /// Without a check. Damage is told to `failure`.
    pub(crate) fn new(failure: Failure) -> Self {
        Self { failure, ..Self::default() }
    }

    /// Begins to hash what the database holds now, before the entry at `index`. An earlier check ends.
    pub(crate) fn begin(&self, index: u64, db: &Db) -> mini_engine::Result<()> {
        let stored = db.keyspace(KEYSPACE)?;
        let snapshot = stored.snapshot();
        *lock(&self.last) = Some((index, Checked::UnderWay));
        let (hashing, checks) = (self.clone(), self.clone());
        let hashed = spawn_blocking(move || {
            hashing.hashes(index, &stored, &snapshot).map_err(|error| {
                // The files of a closed database may be gone, which is no damage: then this is `Closed`.
                let error = stored.contains_key("").err().unwrap_or(error);
                if matches!(error, Error::Corruption { .. }) {
                    hashing.failure.tell(&error);
                }
                error.to_string()
            })
        });
        // A task of its own, which also notes a panic.
        tokio::spawn(async move {
            let hashes = hashed.await.unwrap_or_else(|panicked| Err(panicked.to_string()));
            if let Some((at, checked)) = &mut *lock(&checks.last)
                && *at == index
            {
                *checked = Checked::Done(hashes);
            }
        });
        Ok(())
    }

    /// The state of the check at `index`. `is_applied` is whether its entry was applied before the call.
    pub(crate) fn get(&self, index: u64, is_applied: bool) -> Checked {
        match &*lock(&self.last) {
            Some((at, checked)) if *at == index => checked.clone(),
            Some((at, _)) if *at > index => Checked::Done(Err("a later check has replaced this one".into())),
            _ if is_applied => Checked::Done(Err("it has received a snapshot, or was restarted".into())),
            _ => Checked::Behind,
        }
    }

    /// For each range of slots, the sum of the hashes of its entries. Incomplete if a later check has begun.
    fn hashes(&self, index: u64, stored: &Keyspace, snapshot: &Snapshot) -> mini_engine::Result<Vec<u64>> {
        let (mut sums, mut bytes) = (vec![0_u64; usize::from(SLOTS / SLOTS_TOGETHER)], Vec::new());
        let mut last = None::<Slice>;
        while matches!(&*lock(&self.last), Some((at, _)) if *at == index) {
            // A snapshot can still be read after the group was stopped; then this returns an error.
            stored.contains_key("")?;
            // An iterator keeps old files, so none is kept for long.
            let after = last.take().map_or(Bound::Unbounded, Bound::Excluded);
            let (mut entries, mut read) = (snapshot.range((after, Bound::Unbounded)), 0);
            while read < LOOK_AFTER_BYTES {
                let Some(entry) = entries.next_with_expiry() else { return Ok(sums) };
                let (key, value, expiry) = entry?;
                let expiry = expiry.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
                bytes.clear();
                bytes.extend((key.len() as u64).to_le_bytes());
                bytes.extend(expiry.map_or(0, |at| at.as_millis()).to_le_bytes());
                bytes.extend_from_slice(&key);
                bytes.extend_from_slice(&value);
                let sum = &mut sums[usize::from(slot_of(&key) / SLOTS_TOGETHER)];
                *sum = sum.wrapping_add(xxh3_64(&bytes));
                read += bytes.len();
                last = Some(key);
            }
        }
        Ok(sums)
    }
}
