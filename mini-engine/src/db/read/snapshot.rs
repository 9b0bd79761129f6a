//! A snapshot: the database at one moment, for as long as it is kept.

use std::sync::Arc;
use std::time::SystemTime;

use super::cursor::Cursor;
use super::iter::Iter;
use super::pinned::{Pinned, Registered};
use super::read_point::ReadPoint;
use crate::db::core::Core;
use crate::error::{Error, Result};
use crate::types::{KeyBounds, KeyspaceRef, SeqNo, Slice, prefix_bounds, system_time};

/// The database as it was when the snapshot was taken. Owned and cheap to clone; may be sent to other threads.
///
/// It also sees the time at which it was taken: an entry that expires later does not expire for it.
///
/// While it lives, flushes and compactions keep the versions that it sees, even if they were overwritten since: they take space. It keeps no old
/// file. The directory stays locked. It can still be read after the last handle was dropped or closed. A snapshot taken from a closed handle
/// returns [`Error::Closed`] from every read.
#[derive(Debug, Clone)]
pub struct Snapshot {
    source: Result<Arc<Registered>>,
    seqno: SeqNo,
    keyspace: KeyspaceRef,
}

impl Snapshot {
    /// A snapshot of `keyspace` at a registered number; `seqno` is the number of one that could not be taken.
    pub(crate) fn new(source: Result<Arc<Registered>>, seqno: SeqNo, keyspace: KeyspaceRef) -> Snapshot {
        let seqno = source.as_ref().map_or(seqno, |registered| registered.seqno());
        Snapshot { source, seqno, keyspace }
    }

    /// The same moment in another keyspace, of the database with this core.
    pub(crate) fn of_keyspace(&self, core: &Arc<Core>, keyspace: &KeyspaceRef) -> Snapshot {
        let is_foreign = |registered: &Arc<Registered>| !registered.is_of(core);
        let source = match self.source.as_ref().is_ok_and(is_foreign) {
            true => Err(keyspace.is_foreign()),
            false => self.source.clone(),
        };
        Snapshot { source, seqno: self.seqno, keyspace: keyspace.clone() }
    }

    /// The sequence number of the last write that the snapshot sees; it sees every write up to it.
    pub fn seqno(&self) -> SeqNo {
        self.seqno
    }

    /// The value of `key`. O(log n) in memtables and a block read in each table whose filter does not rule the key out.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corruption`] of the tables asked; never an older value instead.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.keyspace.prefix.with_stored(key.as_ref(), |key| self.read(|point| point.get(key)))
    }

    /// The value of `key`, and the time from which on the key is absent for others; see
    /// [`Keyspace::get_with_expiry`](crate::Keyspace::get_with_expiry).
    pub fn get_with_expiry(&self, key: impl AsRef<[u8]>) -> Result<Option<(Slice, Option<SystemTime>)>> {
        let found =
            self.keyspace.prefix.with_stored(key.as_ref(), |key| self.read(|point| point.get_with_expiry(key)))?;
        Ok(found.map(|(value, at)| (value, at.map(system_time))))
    }

    /// The values of `keys`, in their order: cheaper than separate reads, see [`Keyspace::get_many`](crate::Keyspace::get_many).
    /// Errors as of [`Snapshot::get`], if any key has one.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Slice>>> {
        let keys: Vec<K> = keys.into_iter().collect();
        let mut buffer = Vec::new();
        let keys = self.keyspace.prefix.all_stored(&keys, &mut buffer);
        self.read(|point| point.get_many(&keys))
    }

    /// Like [`Snapshot::get_many`], until the values that were found have `soft_limit` bytes together, see
    /// [`Keyspace::get_many_up_to`](crate::Keyspace::get_many_up_to).
    pub fn get_many_up_to<K: AsRef<[u8]>>(
        &self,
        soft_limit: usize,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Option<Slice>>>> {
        let keys: Vec<K> = keys.into_iter().collect();
        let mut buffer = Vec::new();
        let keys = self.keyspace.prefix.all_stored(&keys, &mut buffer);
        self.read(|point| point.get_many_up_to(Some(soft_limit), &keys))
    }

    /// Whether `key` has a value, which is not copied. Errors as of [`Snapshot::get`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.keyspace.prefix.with_stored(key.as_ref(), |key| self.read(|point| point.contains(key)))
    }

    /// The entry with the smallest key. Errors as of [`Snapshot::get`].
    pub fn first(&self) -> Result<Option<(Slice, Slice)>> {
        self.iter().next().transpose()
    }

    /// The entry with the largest key. Errors as of [`Snapshot::get`].
    pub fn last(&self) -> Result<Option<(Slice, Slice)>> {
        self.iter().next_back().transpose()
    }

    /// All entries in key order.
    pub fn iter(&self) -> Iter {
        self.range(..)
    }

    /// The entries whose keys lie in `bounds`. Inverted bounds are empty.
    pub fn range(&self, bounds: impl KeyBounds) -> Iter {
        Iter::new(self.pin(), self.keyspace.prefix, self.keyspace.prefix.bounds(&bounds))
    }

    /// The entries whose keys start with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.range(prefix_bounds(prefix.as_ref()))
    }

    /// A cursor over all entries.
    pub fn cursor(&self) -> Cursor {
        Cursor::new(self.pin(), self.keyspace.prefix, self.keyspace.prefix.bounds(&..))
    }

    /// The current view, for a scan.
    fn pin(&self) -> Result<Arc<Pinned>> {
        self.source()?.pin(&self.keyspace)
    }

    fn read<T>(&self, read: impl FnOnce(ReadPoint<'_>) -> Result<T>) -> Result<T> {
        self.source()?.read(&self.keyspace, read)
    }

    fn source(&self) -> Result<&Arc<Registered>> {
        self.source.as_ref().map_err(Error::clone)
    }
}
