//! Sizes of the tables and the pieces of a compaction.
//!
//! A piece takes space until its inputs are removed, so it must be small in relation to the data. A piece ends with a full table, so tables must be
//! small too. In a database with only a few tables of `table_file_bytes`, tables are therefore smaller: a 32nd of the data, but no smaller than a
//! memtable, whose flush makes a table as well. Table sizes grow with the data: a table that was full when it was written counts as a crumb when the
//! data is four times as large, and is then compacted with its neighbours ([`plan`](super::plan)). So an entry is rewritten for this reason only a
//! few times, however large the database is.

use crate::manifest::{Run, Version};
use crate::options::Options;

/// A table has at most this part (1/32) of the data.
const TABLES: u64 = 32;
/// A piece has at most this part (1/16) of the data, but at least one table.
const PIECES: u64 = 16;
/// The maximum number of tables of a piece.
const PIECE_TABLES: u64 = 4;

/// The minimum size in bytes of a table while space is short, unless the options set less.
const LEAST: u64 = 32 << 10;

/// The sizes for one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutputSizes {
    /// A table ends with the last version of the key that makes it reach this size.
    pub(crate) table_bytes: u64,
    /// A piece ends with the table that makes it reach this size.
    pub(crate) piece_bytes: u64,
}

impl OutputSizes {
    pub(crate) fn of(options: &Options, version: &Version) -> OutputSizes {
        let data: u64 = version.all_runs().map(|(_, run)| Run::bytes(run)).sum();
        let least = options.table_file_bytes.min(options.memtable_bytes as u64);
        let table_bytes = (data / TABLES).clamp(least, options.table_file_bytes);
        let by_data = (data / PIECES).clamp(table_bytes, table_bytes.saturating_mul(PIECE_TABLES));
        OutputSizes { table_bytes, piece_bytes: options.max_compaction_bytes.unwrap_or(by_data) }
    }

    /// The sizes while space is short: pieces of one table, which is small whatever the options are.
    pub(crate) fn small(options: &Options, version: &Version) -> OutputSizes {
        let data: u64 = version.all_runs().map(|(_, run)| Run::bytes(run)).sum();
        let bytes = (data / TABLES).max(LEAST).min(options.table_file_bytes);
        OutputSizes { table_bytes: bytes, piece_bytes: bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{RunId, VersionEdit};
    use crate::table::TableMeta;

    fn sizes(options: &Options, data: u64) -> OutputSizes {
        let table = TableMeta {
            number: 1,
            size: data,
            smallest: b"a"[..].into(),
            largest: b"b"[..].into(),
            ..TableMeta::default()
        };
        let edit = VersionEdit { added: vec![(RunId { level: 7, run: 1 }, table)], ..VersionEdit::default() };
        OutputSizes::of(options, &Version::default().apply(&edit).unwrap())
    }

    #[test]
    fn tables_and_pieces_grow_with_the_data_between_a_memtable_and_what_the_options_say() {
        // Catches a piece as large as the data, unlimited tables in a small database, and options that are ignored.
        let options = Options::default().memtable_bytes(1 << 20);
        let mib = |data: u64| {
            let OutputSizes { table_bytes, piece_bytes } = sizes(&options, data << 20);
            (table_bytes >> 20, piece_bytes >> 20)
        };
        let expected = [(1, 1), (1, 1), (2, 4), (12, 25), (64, 128), (64, 256), (64, 256)];
        assert_eq!([0, 20, 64, 400, 2048, 4096, 1 << 20].map(mib), expected);
        let large = Options::default();
        assert_eq!(sizes(&large, 400 << 20), OutputSizes { table_bytes: 64 << 20, piece_bytes: 64 << 20 });
        let asked = large.table_file_bytes(1 << 10).max_compaction_bytes(7 << 10);
        assert_eq!(sizes(&asked, 1 << 30), OutputSizes { table_bytes: 1 << 10, piece_bytes: 7 << 10 });
    }
}
