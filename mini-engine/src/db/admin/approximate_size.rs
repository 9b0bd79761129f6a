//! The approximate size of a keyspace, from the tables' metadata and fence pointers.

use std::ops::Bound;

use crate::compaction::overlaps_bounds;
use crate::db::core::Core;
use crate::error::Result;
use crate::table::RunTable;
use crate::types::{KeyspaceRef, OwnedBounds, Slice, is_above, is_below};

/// The approximate size of a keyspace in tables; see [`Keyspace::approximate_size`](crate::Keyspace::approximate_size).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyspaceSize {
    /// Bytes of tables as stored, after compression.
    pub bytes: u64,
    /// Entries in tables: versions of keys, and tombstones.
    pub entries: u64,
    /// The number of tombstones among the entries.
    pub tombstones: u64,
}

pub(crate) fn approximate_size(core: &Core, keyspace: &KeyspaceRef) -> Result<KeyspaceSize> {
    core.check_open()?;
    let view = core.view.get();
    keyspace.check()?;
    let (bounds, mut size) = (keyspace.prefix.bounds(&..), KeyspaceSize::default());
    for table in view.tables().filter(|table| overlaps_bounds(&table.meta(), &bounds)) {
        let (part, meta) = (bytes_within(table, &bounds), table.meta());
        size.bytes += part;
        let share = |count: u64| (u128::from(count) * u128::from(part) / u128::from(meta.size.max(1))) as u64;
        size.entries += share(meta.entries);
        size.tombstones += share(meta.tombstones);
    }
    Ok(size)
}

fn bytes_within(table: &RunTable, (start, end): &OwnedBounds) -> u64 {
    let before = |bound: &Bound<Slice>| match bound {
        Bound::Included(key) | Bound::Excluded(key) => table.bytes_before(key),
        Bound::Unbounded => 0,
    };
    let begin = if is_above(table.smallest(), start.as_ref().map(|key| &**key)) { 0 } else { before(start) };
    let is_whole = is_below(table.largest(), end.as_ref().map(|key| &**key));
    (if is_whole { table.bytes() } else { before(end) }).saturating_sub(begin)
}
