//! [`KeyspaceBatch`]: adds operations in one keyspace to a batch.

use std::time::SystemTime;

use super::Keyspace;
use crate::error::Result;
use crate::types::{KeyBounds, KeyPrefix, WriteBatch, prefix_bounds};

/// Adds operations in one keyspace to a [`WriteBatch`]; created by [`WriteBatch::keyspace`].
#[derive(Debug)]
pub struct KeyspaceBatch<'a> {
    batch: &'a mut WriteBatch,
    prefix: KeyPrefix,
    /// The expiry of insertions that do not give one.
    expiry: Option<SystemTime>,
}

impl WriteBatch {
    /// Selects `keyspace`: operations added there become part of this batch, in the order of the calls. A write of the batch returns
    /// [`Error::NoKeyspace`](crate::Error::NoKeyspace) if the keyspace was dropped, and
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) if it belongs to another database: then nothing is written.
    pub fn keyspace(&mut self, keyspace: &Keyspace) -> KeyspaceBatch<'_> {
        self.note_keyspace(&keyspace.keyspace);
        let expiry = keyspace.core().default_expiry(&keyspace.keyspace);
        KeyspaceBatch { batch: self, prefix: keyspace.keyspace.prefix, expiry }
    }
}

impl KeyspaceBatch<'_> {
    /// Adds the insertion of `value` under `key`. Errors are those of [`WriteBatch::insert`].
    pub fn insert(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.batch.insert_in(self.prefix, key.as_ref(), value.as_ref(), self.expiry)
    }

    /// Adds the insertion of `value` under `key`, which expires at `at`, or never if that is `None`. Errors are those of
    /// [`WriteBatch::insert_with_expiry`].
    pub fn insert_with_expiry(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        at: impl Into<Option<SystemTime>>,
    ) -> Result<()> {
        self.batch.insert_in(self.prefix, key.as_ref(), value.as_ref(), at.into())
    }

    /// Adds the removal of `key`, whether or not it exists. Errors are those of [`WriteBatch::remove`].
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.batch.remove_in(self.prefix, key.as_ref())
    }

    /// Adds the removal of all keys of the keyspace within `bounds`. Errors are those of [`WriteBatch::remove_range`].
    pub fn remove_range(&mut self, bounds: impl KeyBounds) -> Result<()> {
        self.batch.remove_range_in(self.prefix, &bounds)
    }

    /// Adds the removal of all keys of the keyspace that begin with `prefix`. Errors are those of [`WriteBatch::remove_range`].
    pub fn remove_prefix(&mut self, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.remove_range(prefix_bounds(prefix.as_ref()))
    }
}
