//! [`NamedTables`]: which tables a version names.

use std::collections::HashSet;

use super::names::FileKind;
use super::version::Version;

/// The numbers of the tables that a version names, be it as ones that were set aside.
pub(crate) struct NamedTables(HashSet<u64>);

impl NamedTables {
    pub(crate) fn of(version: &Version) -> NamedTables {
        NamedTables(version.named_tables().map(|table| table.number).collect())
    }

    /// Whether `kind` is a table that is not among them.
    pub(crate) fn lack(&self, kind: FileKind) -> bool {
        matches!(kind, FileKind::Table(number) if !self.0.contains(&number))
    }
}
