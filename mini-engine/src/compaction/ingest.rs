//! Picks the level for ingested tables: a pure function of the version and the compactions in progress.
//!
//! Ingested tables are newer than all other entries, so they must be above all tables whose keys they overlap; the lower they are, the less often
//! they are rewritten. The inputs of running compactions are still in the version, so they count too.

use crate::compaction::in_progress::InProgress;
use crate::compaction::key_range::KeyRange;
use crate::manifest::{MAX_LEVELS, Run, RunId, Version};

/// The lowest place for new tables that together cover `key_range`: in the newest run of a level if they fit between its tables. Level 0, where each
/// table is a run, accepts any table. O(tables).
pub(crate) fn pick_for_ingest(version: &Version, in_progress: &InProgress, key_range: &KeyRange) -> RunId {
    let mut lowest = RunId::LEVEL_0;
    for level in 0..MAX_LEVELS {
        if version.level(level).any(|table| key_range.overlaps_table(table)) {
            break;
        }
        let run_id = RunId { level, run: version.runs(level).first().map_or(1, Run::id) };
        if level > 0 && !in_progress.writes_into(run_id, key_range) {
            lowest = run_id;
        }
    }
    lowest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::VersionEdit;
    use crate::manifest::test_tables::table;
    use crate::table::TableMeta;
    use crate::types::Slice;

    fn key_range(smallest: &str, largest: &str) -> KeyRange {
        KeyRange { smallest: Slice::from(smallest.as_bytes()), largest: Slice::from(largest.as_bytes()) }
    }

    fn of(number: u64, smallest: &str, largest: &str) -> TableMeta {
        let KeyRange { smallest, largest } = key_range(smallest, largest);
        TableMeta { smallest, largest, ..table(number, number, number) }
    }

    #[test]
    fn new_tables_go_as_low_as_nothing_above_or_beside_them_overlaps() {
        // Catches tables put below older versions of their keys, which would hide them, and tables that stay on top without need.
        let deepest = MAX_LEVELS - 1;
        let added = vec![
            (RunId { level: deepest, run: 4 }, of(1, "a", "c")),
            (RunId { level: deepest, run: 4 }, of(2, "m", "p")),
            (RunId { level: 3, run: 2 }, of(3, "x", "z")),
            (RunId::LEVEL_0, of(9, "q", "r")),
        ];
        let version = Version::default().apply(&VersionEdit { added, ..VersionEdit::default() }).unwrap();
        let at = |smallest, largest| pick_for_ingest(&version, &InProgress::default(), &key_range(smallest, largest));
        assert_eq!(at("d", "l"), RunId { level: deepest, run: 4 });
        assert_eq!(at("b", "d"), RunId { level: deepest - 1, run: 1 });
        assert_eq!(at("y", "zz"), RunId { level: 2, run: 1 });
        assert_eq!(at("a", "zz"), RunId::LEVEL_0);
        assert_eq!(at("r", "s"), RunId::LEVEL_0);
        assert_eq!(
            pick_for_ingest(&Version::default(), &InProgress::default(), &key_range("a", "b")),
            RunId { level: deepest, run: 1 }
        );
        let mut in_progress = InProgress::default();
        let id = in_progress.reserve(RunId { level: deepest, run: 4 }, key_range("k", "n"));
        assert_eq!(pick_for_ingest(&version, &in_progress, &key_range("d", "l")), RunId { level: deepest - 1, run: 1 });
        in_progress.end(id);
        assert_eq!(pick_for_ingest(&version, &in_progress, &key_range("d", "l")), RunId { level: deepest, run: 4 });
    }
}
