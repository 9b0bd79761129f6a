//! Quarantined tables, which make reads fail (rule 10, [`RecoveryMode::Quarantine`](crate::RecoveryMode::Quarantine)).
//!
//! Recovery could not read such a table, and continued without it. The table is no longer on any level, but the version still lists it. Its contents
//! are unknown, so a read must not return older versions of its keys, nor keys that it may have removed. Sequence numbers decide: a version newer
//! than all entries of the table is right, wherever it is now. All other reads of keys in the table's range fail, and so do scans over a part of the
//! range, until the user drops the table and so accepts the loss of its writes.

use std::path::PathBuf;

use super::point_read::ViewRead;
use super::scan::Scan;
use crate::compaction::{TableStore, overlaps_bounds};
use crate::db::core::Core;
use crate::error::{Error, Result};
use crate::manifest::ASIDE;
use crate::table::{self, TableMeta};
use crate::types::{OwnedBounds, SeqNo, ShownKey, Slice};

/// A table that recovery could not read and has set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuarantinedTable {
    /// The number of the table, by which [`Db::drop_quarantined`](crate::Db::drop_quarantined) drops it.
    pub number: u64,
    /// The present path of the table's file, unless the file was missing.
    pub file: PathBuf,
    /// The smallest stored key of the table, including the prefix of its keyspace.
    pub smallest: Slice,
    /// The largest stored key of the table.
    pub largest: Slice,
    /// The number of entries in the file, versions and tombstones, which are lost with it. If a compaction has already consumed a part of the table,
    /// the entries of that part are counted too.
    pub entries: u64,
}

impl QuarantinedTable {
    pub(crate) fn new(store: &TableStore, meta: &TableMeta) -> QuarantinedTable {
        let name = table::file_name(meta.number);
        let (file, aside) = (store.dir.join(&name), store.dir.join(name + ASIDE));
        // A read-only open quarantines a table but leaves its file in place.
        let in_place = store.options.read_only && !store.fs.exists(&aside).unwrap_or(true);
        QuarantinedTable {
            number: meta.number,
            file: if in_place { file } else { aside },
            smallest: meta.smallest.clone(),
            largest: meta.largest.clone(),
            entries: meta.entries,
        }
    }
}

impl std::fmt::Display for QuarantinedTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let QuarantinedTable { number, file, smallest, largest, entries } = self;
        write!(
            f,
            "{}: table {number} is quarantined: reads of keys {} to {} fail, unless they were written anew; the command repair \
             makes a new database with all of its {entries} entries that can be read; quarantine --drop {number} gives all of \
             them up, and older values of its keys, and removed keys, may then be back",
            file.display(),
            ShownKey(smallest),
            ShownKey(largest)
        )
    }
}

/// Fails if a quarantined table may hold a version of `key` that is newer than `found` and visible at the read's number.
#[inline]
pub(super) fn check_key(read: ViewRead<'_>, key: &[u8], found: Option<SeqNo>) -> Result<()> {
    if read.quarantined.is_empty() { Ok(()) } else { check_quarantined(read, key, found) }
}

#[cold]
fn check_quarantined(read: ViewRead<'_>, key: &[u8], found: Option<SeqNo>) -> Result<()> {
    let ViewRead { core, seqno, quarantined, .. } = read;
    let hides = |table: &&TableMeta| {
        let within = *table.smallest <= *key && *key <= *table.largest;
        within && table.min_seqno <= seqno && found.is_none_or(|found| found <= table.max_seqno)
    };
    quarantined.iter().find(hides).map_or(Ok(()), |table| Err(quarantined_error(core, table)))
}

/// Fails if a quarantined table may hold a key that lies in both ranges and that the scan could see.
pub(super) fn check_range(scan: &Scan, ranges: [&OwnedBounds; 2]) -> Result<()> {
    let hides = |table: &&TableMeta| {
        table.min_seqno <= scan.seqno && ranges.into_iter().all(|range| overlaps_bounds(table, range))
    };
    scan.quarantined().iter().find(hides).map_or(Ok(()), |table| Err(quarantined_error(&scan.core, table)))
}

/// The error of a read of keys that a quarantined table may hold.
pub(crate) fn quarantined_error(core: &Core, meta: &TableMeta) -> Error {
    let QuarantinedTable { file, smallest, largest, number, .. } = QuarantinedTable::new(&core.store, meta);
    let what = format!(
        "keys {} to {}: expected what table {number} held, which is quarantined; found no newer version",
        ShownKey(&smallest),
        ShownKey(&largest)
    );
    Error::corruption(&file, 0, what)
}
