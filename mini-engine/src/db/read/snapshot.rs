//! A snapshot: the database at one moment, for as long as it is kept.

use std::sync::Arc;
use std::time::SystemTime;

use super::cursor::Cursor;
use super::iter::Iter;
use super::point_read::{PointOfSnapshot, PointRead, view_with_all_writes};
use super::scan::{Scan, SharedReads};
use crate::db::core::{Core, SnapshotId};
use crate::error::{Error, Result};
use crate::types::{KeyBounds, KeyspaceRef, Millis, SeqNo, Slice, prefix_bounds, system_time};

/// The database as it was when the snapshot was taken. Owned and cheap to clone; may be sent to other threads.
///
/// The snapshot also keeps the time at which it was taken: an entry that expires later does not expire for the snapshot.
///
/// As long as it exists, flushes and compactions keep the versions that it sees, even if they were overwritten since, so these take space. It holds
/// no old file. The directory stays locked while it exists. It can still be read after the last handle was dropped or closed. A snapshot taken from a
/// closed handle returns [`Error::Closed`] from every read.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// An error if the snapshot could not be taken.
    registered: Result<Arc<Registered>>,
    seqno: SeqNo,
    keyspace: KeyspaceRef,
}

/// The registered number of a snapshot, which is its only resource (P1 of `scan.rs`). It also keeps the directory locked.
struct Registered {
    id: SnapshotId,
    shared: Arc<SharedReads>,
    core: Arc<Core>,
}

impl std::fmt::Debug for Registered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registered").field("seqno", &self.id.seqno).field("core", &self.core).finish_non_exhaustive()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.core.snapshots.release(&self.id);
    }
}

impl Snapshot {
    /// Registers the number that is visible now, to read `keyspace` at it.
    pub(crate) fn now(core: &Arc<Core>, keyspace: KeyspaceRef) -> Snapshot {
        let registered = core.check_open().map(|()| {
            // The quarantined tables are read before the number is registered. Otherwise a table could be dropped in between, although reads at the
            // number must not ignore it.
            let (pinned, shown) = match core.store.options.follows {
                // The process that writes does not know this snapshot.
                true => Some(view_with_all_writes(core)).unzip(),
                false => (None, None),
            };
            let quarantined = pinned.as_ref().unwrap_or(&core.view.get()).version.quarantined().to_vec();
            let id = core.snapshots.register(|| shown.unwrap_or_else(|| core.visible()), || core.clock.now());
            Arc::new(Registered { id, shared: SharedReads::new(quarantined, pinned), core: core.clone() })
        });
        let seqno = registered.as_ref().map_or_else(|_| core.visible(), |registered| registered.id.seqno);
        Snapshot { registered, seqno, keyspace }
    }

    /// The same moment in another keyspace, which belongs to the database of `core`.
    pub(crate) fn of_keyspace(&self, core: &Arc<Core>, keyspace: &KeyspaceRef) -> Snapshot {
        let registered = self.registered.clone().and_then(|registered| match Arc::ptr_eq(&registered.core, core) {
            true => Ok(registered),
            false => Err(keyspace.is_foreign()),
        });
        Snapshot { registered, seqno: self.seqno, keyspace: keyspace.clone() }
    }

    /// Fails if the snapshot could not be taken.
    pub(crate) fn check(&self) -> Result<()> {
        self.registered().map(drop)
    }

    /// The instant of the snapshot's reads; 0 if no entry of the database expires (K2 of the clock), or if the snapshot could not be taken.
    pub(crate) fn instant(&self) -> Millis {
        self.registered.as_ref().map_or(0, |registered| registered.id.instant)
    }

    /// Reads the current view at the snapshot's number, in `keyspace` instead of its own.
    pub(crate) fn read_in<T>(
        &self,
        keyspace: &KeyspaceRef,
        read: impl FnOnce(PointRead<'_>) -> Result<T>,
    ) -> Result<T> {
        let Registered { id, shared, core } = &**self.registered()?;
        let (seqno, instant) = (id.seqno, id.instant);
        let (quarantined, view) = (&*shared.quarantined, shared.view.as_ref());
        let snapshot = Some(PointOfSnapshot { seqno, instant, quarantined, view });
        read(PointRead { core, keyspace: Some(keyspace), snapshot })
    }

    /// Pins the view of the snapshot, or the current one, for a scan at the snapshot's number, in `keyspace` instead of its own.
    pub(crate) fn scan_in(&self, keyspace: &KeyspaceRef) -> Result<Arc<Scan>> {
        let Registered { id, shared, core } = &**self.registered()?;
        Scan::at(core, keyspace, id, shared)
    }

    fn registered(&self) -> Result<&Arc<Registered>> {
        self.registered.as_ref().map_err(Error::clone)
    }

    fn read<T>(&self, read: impl FnOnce(PointRead<'_>) -> Result<T>) -> Result<T> {
        self.read_in(&self.keyspace, read)
    }

    fn read_key<T>(&self, key: &[u8], read: impl FnOnce(PointRead<'_>, &[u8]) -> Result<T>) -> Result<T> {
        self.keyspace.prefix.with_stored(key, |key| self.read(|of| read(of, key)))
    }

    /// The sequence number of the last write that the snapshot sees; it sees every write up to it.
    pub fn seqno(&self) -> SeqNo {
        self.seqno
    }

    /// The value of `key`. O(log n) in memtables and a block read in each table whose filter does not rule the key out.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corruption`] if a table that was searched cannot be read; an older value is never returned instead.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.read_key(key.as_ref(), |read, key| read.get(key))
    }

    /// The value of `key`, and the time at which it expires for later readers; see [`Keyspace::get_with_expiry`](crate::Keyspace::get_with_expiry).
    pub fn get_with_expiry(&self, key: impl AsRef<[u8]>) -> Result<Option<(Slice, Option<SystemTime>)>> {
        let found = self.read_key(key.as_ref(), |read, key| read.get_with_expiry(key))?;
        Ok(found.map(|(value, at)| (value, at.map(system_time))))
    }

    /// The values of `keys`, in the order of `keys`: cheaper than separate reads, see [`Keyspace::get_many`](crate::Keyspace::get_many). Errors are
    /// those of [`Snapshot::get`], if the read of any key fails.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Slice>>> {
        self.keyspace.prefix.with_all_stored(keys, |keys| self.read(|read| read.get_many(keys)))
    }

    /// Like [`Snapshot::get_many`], until the values that were found have `soft_limit` bytes together, see
    /// [`Keyspace::get_many_up_to`](crate::Keyspace::get_many_up_to).
    pub fn get_many_up_to<K: AsRef<[u8]>>(
        &self,
        soft_limit: usize,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Option<Slice>>>> {
        let read_all = |keys: &[&[u8]]| self.read(|read| read.get_many_up_to(Some(soft_limit), keys));
        self.keyspace.prefix.with_all_stored(keys, read_all)
    }

    /// Whether `key` has a value; the value is not copied. Errors are those of [`Snapshot::get`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.read_key(key.as_ref(), |read, key| read.contains(key))
    }

    /// The entry with the smallest key. Errors are those of [`Snapshot::get`].
    pub fn first(&self) -> Result<Option<(Slice, Slice)>> {
        self.iter().next().transpose()
    }

    /// The entry with the largest key. Errors are those of [`Snapshot::get`].
    pub fn last(&self) -> Result<Option<(Slice, Slice)>> {
        self.iter().next_back().transpose()
    }

    /// All entries in key order.
    pub fn iter(&self) -> Iter {
        self.range(..)
    }

    /// The entries whose keys lie in `bounds`. Inverted bounds are empty.
    pub fn range(&self, bounds: impl KeyBounds) -> Iter {
        Iter::new(self.scan_in(&self.keyspace), self.keyspace.prefix, self.keyspace.prefix.bounds(&bounds))
    }

    /// The entries whose keys start with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.range(prefix_bounds(prefix.as_ref()))
    }

    /// A cursor over all entries.
    pub fn cursor(&self) -> Cursor {
        Cursor::new(self.scan_in(&self.keyspace), self.keyspace.prefix, self.keyspace.prefix.bounds(&..))
    }
}
