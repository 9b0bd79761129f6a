//! [`OpenKeyspace`]: a keyspace of an open database; [`KeyspaceRef`]: the keyspace of a handle or a snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::expiry::Millis;
use super::key_prefix::KeyPrefix;
use crate::error::{Error, Result};

/// The keyspace of a handle or a snapshot. A cheap clone.
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

    /// As [`OpenKeyspace::check`].
    pub(crate) fn check(&self) -> Result<()> {
        self.open.as_ref().map_or(Ok(()), |open| open.check())
    }

    /// Its name; empty for the default keyspace.
    pub(crate) fn name(&self) -> &str {
        self.open.as_ref().map_or("", |open| &open.name)
    }

    /// The lifetime of entries that are inserted without an expiry, if it has one.
    #[inline]
    pub(crate) fn expire_after(&self) -> Option<Millis> {
        self.open.as_ref().and_then(|open| open.expire_after())
    }

    /// The error that it belongs to another database.
    pub(crate) fn is_foreign(&self) -> Error {
        foreign(self.name())
    }
}

/// A keyspace of an open database other than the default one, shared by everything that refers to it.
#[derive(Debug)]
pub(crate) struct OpenKeyspace {
    pub(crate) name: Box<str>,
    pub(crate) prefix: KeyPrefix,
    /// The open database that it belongs to: no other one of this process has that number.
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
        // Relaxed: nothing else depends on it. An insertion beside a change of the option takes either.
        Some(self.expire_after.load(Ordering::Relaxed)).filter(|&after| after > 0)
    }

    pub(crate) fn set_expire_after(&self, after: Option<Millis>) {
        self.expire_after.store(after.unwrap_or(0), Ordering::Relaxed);
    }

    /// Fails unless it is one of the open database with this number, and not dropped.
    pub(crate) fn check_in(&self, database: u64) -> Result<()> {
        if self.database == database { self.check() } else { Err(foreign(&self.name)) }
    }

    /// Fails once it was dropped. A reader checks this after it has pinned its view: then the view still has everything, or this fails.
    pub(crate) fn check(&self) -> Result<()> {
        // Acquire: pairs with the store in `set_dropped`. Views without its entries are published after that.
        match self.is_dropped.load(Ordering::Acquire) {
            true => Err(Error::NoKeyspace { name: self.name.to_string() }),
            false => Ok(()),
        }
    }

    /// Drops it. Called with the write lock held, under which writes are checked: so none comes after it.
    pub(crate) fn set_dropped(&self) {
        self.is_dropped.store(true, Ordering::Release);
    }
}

#[cold]
fn foreign(name: &str) -> Error {
    Error::InvalidArgument(format!("the keyspace \"{}\" belongs to another open database", name.escape_debug()))
}
