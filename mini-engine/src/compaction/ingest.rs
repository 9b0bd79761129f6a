//! Where tables belong that come from outside: a pure function of the version and the merges under way.
//!
//! They are newer than everything there is, so they must stand above all tables whose keys they overlap; the lower, the less
//! often they are rewritten. Data in flight is still in the version, as inputs, so it counts too.

use crate::compaction::ranges::Span;
use crate::compaction::running::Running;
use crate::manifest::{MAX_LEVELS, Place, Run, Version};

/// The lowest place for new tables that span `span` together: within the newest run of a level if they fit between its
/// tables. Level 0, where each table is a run, takes any. O(tables).
pub(crate) fn place(version: &Version, running: &Running, span: &Span) -> Place {
    let mut lowest = Place::LEVEL_0;
    for level in 0..MAX_LEVELS {
        if version.level(level).any(|table| span.overlaps_table(table)) {
            break;
        }
        let place = Place { level, run: version.runs(level).first().map_or(1, Run::id) };
        if level > 0 && !running.writes_into(place, span) {
            lowest = place;
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

    fn span(smallest: &str, largest: &str) -> Span {
        Span { smallest: Slice::from(smallest.as_bytes()), largest: Slice::from(largest.as_bytes()) }
    }

    fn of(number: u64, smallest: &str, largest: &str) -> TableMeta {
        let Span { smallest, largest } = span(smallest, largest);
        TableMeta { smallest, largest, ..table(number, number, number) }
    }

    #[test]
    fn new_tables_go_as_low_as_nothing_above_or_beside_them_overlaps() {
        // Catches tables put below older versions of their keys, which would hide them, and ones that stay on top for nothing.
        let deepest = MAX_LEVELS - 1;
        let added = vec![
            (Place { level: deepest, run: 4 }, of(1, "a", "c")),
            (Place { level: deepest, run: 4 }, of(2, "m", "p")),
            (Place { level: 3, run: 2 }, of(3, "x", "z")),
            (Place::LEVEL_0, of(9, "q", "r")),
        ];
        let version = Version::default().apply(&VersionEdit { added, ..VersionEdit::default() }).unwrap();
        let at = |smallest, largest| place(&version, &Running::default(), &span(smallest, largest));
        assert_eq!(at("d", "l"), Place { level: deepest, run: 4 });
        assert_eq!(at("b", "d"), Place { level: deepest - 1, run: 1 });
        assert_eq!(at("y", "zz"), Place { level: 2, run: 1 });
        assert_eq!(at("a", "zz"), Place::LEVEL_0);
        assert_eq!(at("r", "s"), Place::LEVEL_0);
        assert_eq!(place(&Version::default(), &Running::default(), &span("a", "b")), Place { level: deepest, run: 1 });
        let mut running = Running::default();
        let id = running.reserve(Place { level: deepest, run: 4 }, span("k", "n"));
        assert_eq!(place(&version, &running, &span("d", "l")), Place { level: deepest - 1, run: 1 });
        running.end(id);
        assert_eq!(place(&version, &running, &span("d", "l")), Place { level: deepest, run: 4 });
    }
}
