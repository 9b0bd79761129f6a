//! [`KeyspaceOptions`]: the settings of one keyspace, stored in the database.

use std::time::Duration;

use rpds::RedBlackTreeMapSync;

use super::{Compression, ZSTD_LEVEL};
use crate::error::{Error, Result};
use crate::types::{KeyspaceId, Millis};

/// The options of one keyspace, set by chained calls. They are stored in the database; see [`Db::keyspace_with`](crate::Db::keyspace_with).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceOptions {
    pub(crate) compression: Option<Compression>,
    pub(crate) expire_after: Option<Millis>,
}

/// The compression of those keyspaces that set their own. Clones are cheap.
pub(crate) type Compressions = RedBlackTreeMapSync<KeyspaceId, Compression>;

/// The maximum lifetime, in milliseconds: a thousand years.
const MAX_LIFETIME: Millis = 1000 * 365 * 24 * 60 * 60 * 1000;

impl KeyspaceOptions {
    /// The compression of the keyspace's data blocks, the same on every level; it replaces the compression in the database's options. Existing tables
    /// keep their compression until they are rewritten.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// The time after which an inserted entry expires, unless the insertion or [`Keyspace::set_expiry`](crate::Keyspace::set_expiry) gives it another
    /// expiry: 1 ms to 1,000 years, in whole milliseconds. By default entries do not expire. Cassandra calls it the default time to live. The time
    /// begins with the call that inserts, or, in a batch, with the call of [`WriteBatch::keyspace`](crate::WriteBatch::keyspace). Existing entries
    /// stay unchanged, and those of [`Keyspace::ingest`](crate::Keyspace::ingest) do not expire. To insert an entry that never expires, also when
    /// importing or rewriting it, call [`Keyspace::insert_with_expiry`](crate::Keyspace::insert_with_expiry) with `None` instead of a time.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// use mini_engine::KeyspaceOptions;
    /// use std::time::Duration;
    ///
    /// let db = mini_engine::Db::open(dir.path())?;
    /// let hour = KeyspaceOptions::default().expire_after(Duration::from_secs(3600));
    /// let sessions = db.keyspace_with("sessions", hour)?;
    /// sessions.insert("session", "alice")?;
    /// assert!(sessions.get_with_expiry("session")?.unwrap().1.is_some());
    /// sessions.insert_with_expiry("root", "admin", None)?;
    /// assert!(sessions.get_with_expiry("root")?.unwrap().1.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn expire_after(mut self, lifetime: Duration) -> Self {
        self.expire_after = Some(Millis::try_from(lifetime.as_millis()).unwrap_or(Millis::MAX));
        self
    }

    pub(crate) fn validate(&self) -> Result<()> {
        if let Some(after) = self.expire_after.filter(|after| !(1..=MAX_LIFETIME).contains(after)) {
            let what = format!("the lifetime of a keyspace's entries is 1 to {MAX_LIFETIME} ms, found {after}");
            return Err(Error::InvalidArgument(what));
        }
        self.compression.as_ref().map_or(Ok(()), Compression::validate)
    }
}

const AS_THE_DATABASE: u64 = 0;
const NONE: u64 = 1;
const LZ4: u64 = 2;

/// The number of the compression in a manifest: 0 for the database's option, 1 for none, 2 for LZ4, the level plus 2 for Zstandard.
pub(crate) fn compression_number(compression: Option<Compression>) -> u64 {
    match compression {
        None => AS_THE_DATABASE,
        Some(Compression::None) => NONE,
        Some(Compression::Lz4) => LZ4,
        Some(Compression::Zstd { level }) => LZ4 + u64::try_from(level).unwrap_or_default(),
    }
}

/// The compression with this number; `None` if there is none.
pub(crate) fn compression_of_number(number: u64) -> Option<Option<Compression>> {
    Some(match number {
        AS_THE_DATABASE => None,
        NONE => Some(Compression::None),
        LZ4 => Some(Compression::Lz4),
        zstd => {
            let level = i32::try_from(zstd - LZ4).ok().filter(|level| ZSTD_LEVEL.contains(level))?;
            Some(Compression::Zstd { level })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_compression_has_a_number_of_its_own() {
        // Catches two compressions with the same number, and an unassigned number that is read as a compression.
        let numbers = (0..).map_while(|number| compression_of_number(number).map(|found| (number, found)));
        let known: Vec<_> = numbers.collect();
        assert_eq!(known.len(), 3 + 22);
        assert!(known.iter().all(|(number, compression)| compression_number(*compression) == *number));
        assert_eq!(compression_of_number(u64::MAX), None);
    }
}
