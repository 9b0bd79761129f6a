//! [`Keyspaces`]: the keyspaces of an open database, by name.
//!
//! The set in the manifest is authoritative. This struct holds the part that handles, snapshots and batches share; it is changed after the manifest,
//! with the manifest's lock held.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::error::Result;
use crate::lock::lock;
use crate::manifest::{KeyspaceMeta, KeyspaceSet};
use crate::types::{KeyPrefix, KeyspaceRef, OpenKeyspace, WriteBatch};

/// The number for the next database that is opened.
static NEXT_DATABASE: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Keyspaces {
    database: u64,
    by_name: Mutex<BTreeMap<Arc<str>, Arc<OpenKeyspace>>>,
    /// Held during a drop, and while a checkpoint chooses its tables. Taken before all other locks.
    drops: Mutex<()>,
}

impl Keyspaces {
    pub(super) fn new(set: &KeyspaceSet) -> Keyspaces {
        // Relaxed: the number only has to be unique.
        let database = NEXT_DATABASE.fetch_add(1, Ordering::Relaxed);
        let by_name = set.iter().map(|meta| (meta.name.clone(), open(meta, database))).collect();
        Keyspaces { database, by_name: Mutex::new(by_name), drops: Mutex::new(()) }
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<OpenKeyspace>> {
        lock(&self.by_name).get(name).cloned()
    }

    /// Adds the keyspace, or updates its options.
    pub(super) fn set(&self, meta: &KeyspaceMeta) -> Arc<OpenKeyspace> {
        let mut by_name = lock(&self.by_name);
        let open = by_name.entry(meta.name.clone()).or_insert_with(|| open(meta, self.database));
        open.set_expire_after(meta.options.expire_after);
        open.clone()
    }

    /// Makes the keyspaces those of `set`, which another process has recorded.
    pub(super) fn follow(&self, set: &KeyspaceSet) {
        lock(&self.by_name).retain(|name, open| {
            let is_live = set.named(name).is_some_and(|meta| meta.id == open.prefix.id());
            if !is_live {
                open.set_dropped();
            }
            is_live
        });
        set.iter().for_each(|meta| drop(self.set(meta)));
    }

    pub(super) fn remove(&self, name: &str) {
        lock(&self.by_name).remove(name);
    }

    /// Fails if a keyspace of `batch` was dropped, or belongs to another database. Called with the write lock held.
    #[inline]
    pub(crate) fn check_batch(&self, batch: &WriteBatch) -> Result<()> {
        batch.keyspaces().iter().try_for_each(|keyspace| keyspace.check_in(self.database))
    }

    /// The same check for one keyspace, for a read.
    pub(crate) fn check_keyspace(&self, keyspace: &KeyspaceRef) -> Result<()> {
        keyspace.open().map_or(Ok(()), |keyspace| keyspace.check_in(self.database))
    }

    /// While the guard is held, no other thread drops a keyspace.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        lock(&self.drops)
    }

    /// The names of the keyspaces, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        lock(&self.by_name).keys().map(|name| name.to_string()).collect()
    }
}

fn open(meta: &KeyspaceMeta, database: u64) -> Arc<OpenKeyspace> {
    let open = OpenKeyspace::new(&meta.name, KeyPrefix::of(meta.id), database);
    open.set_expire_after(meta.options.expire_after);
    Arc::new(open)
}
