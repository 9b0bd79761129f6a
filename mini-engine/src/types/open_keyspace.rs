//! [`OpenKeyspace`]: a keyspace of an open database; [`KeyspaceRef`]: the keyspace of a handle or a snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::expiry::Millis;
use super::key_prefix::KeyPrefix;
use crate::error::{Error, Result};

/// The keyspace of a handle or a snapshot. Clones are cheap.
#[derive(Clone, Debug)]
pub(crate) struct KeyspaceRef {
    pub(crate) prefix: KeyPrefix,
    /// `None` for the default keyspace.
    open: Option<Arc<OpenKeyspace>>,
}

impl KeyspaceRef {
    pub(crate) const DEFAULT: Self = Self { prefix: KeyPrefix::DEFAULT, open: None };

    pub(crate) fn new(open: Arc<OpenKeyspace>) -> Self {
        Self { prefix: open.prefix, open: Some(open) }
    }

    /// The keyspace, unless it is the default one.
    pub(crate) fn open(&self) -> Option<&Arc<OpenKeyspace>> {
        self.open.as_ref()
    }

    /// Like [`OpenKeyspace::check`].
    pub(crate) fn check(&self) -> Result<()> {
        self.open.as_ref().map_or(Ok(()), |open| open.check())
    }

    /// The name of the keyspace; empty for the default one.
    pub(crate) fn name(&self) -> &str {
        self.open.as_ref().map_or("", |open| &open.name)
    }

    /// The lifetime of entries that are inserted without an expiry, if the keyspace has one.
    #[inline]
    pub(crate) fn expire_after(&self) -> Option<Millis> {
        self.open.as_ref().and_then(|open| open.expire_after())
    }

    /// The error for a keyspace that belongs to another database.
    pub(crate) fn is_foreign(&self) -> Error {
        foreign(self.name())
    }
}

/// A keyspace of an open database other than the default one, shared by all that refer to it.
#[derive(Debug)]
pub(crate) struct OpenKeyspace {
    pub(crate) name: Box<str>,
    pub(crate) prefix: KeyPrefix,
    /// The number of the open database to which it belongs; it is unique in this process.
    database: u64,
    is_dropped: AtomicBool,
    /// The lifetime of entries that are inserted without an expiry; 0 if they do not expire.
    expire_after: AtomicU64,
}

impl OpenKeyspace {
    pub(crate) fn new(name: &str, prefix: KeyPrefix, database: u64) -> Self {
        let (is_dropped, expire_after) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { name: name.into(), prefix, database, is_dropped, expire_after }
    }

    fn expire_after(&self) -> Option<Millis> {
        // Relaxed: no other memory depends on it. An insertion that is concurrent with a change of the option uses either value.
        Some(self.expire_after.load(Ordering::Relaxed)).filter(|&after| after > 0)
    }

    pub(crate) fn set_expire_after(&self, after: Option<Millis>) {
        self.expire_after.store(after.unwrap_or(0), Ordering::Relaxed);
    }

    /// Fails unless the keyspace belongs to the open database with this number, and was not dropped.
    pub(crate) fn check_in(&self, database: u64) -> Result<()> {
        if self.database == database { self.check() } else { Err(foreign(&self.name)) }
    }

    /// Fails once the keyspace was dropped. A reader checks this after it has pinned its view: then the view still has all entries, or this fails.
    pub(crate) fn check(&self) -> Result<()> {
        // Acquire: pairs with the store in `set_dropped`. Views without the keyspace's entries are published only after that store.
        match self.is_dropped.load(Ordering::Acquire) {
            true => Err(Error::NoKeyspace { name: self.name.to_string() }),
            false => Ok(()),
        }
    }

    /// Marks the keyspace as dropped. Must be called with the write lock held, under which writes check the mark: so no write follows it.
    pub(crate) fn set_dropped(&self) {
        self.is_dropped.store(true, Ordering::Release);
    }
}

#[cold]
fn foreign(name: &str) -> Error {
    Error::InvalidArgument(format!("the keyspace \"{}\" belongs to another open database", name.escape_debug()))
}
