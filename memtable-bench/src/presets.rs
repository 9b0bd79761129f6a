//! Sets of cells that have names, so that a result can be repeated by one word. `presets.json` has them; a shape's fields that
//! it does not name are those of three million random entries on one thread.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::Deserialize;

use crate::spec::{Cell, Shape, Subject, Workload};

/// The sets' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// The tables of the published crate's own README: small, keys of 64 bytes, up to 8 threads
    Published,
    /// The loads of the logging engines: 100K, 600K and 3M entries, random and in order
    Engines,
    /// What goals N1 to N9 need, and no more
    Goals,
    /// What lookups cost after keys of every pattern from 1 to 8 threads: nodes and blocks, not times
    Patterns,
    /// Everything that the results page shows: goals, engines, published, patterns, growth, values, threads, memory
    Full,
}

impl Preset {
    pub(crate) fn cells(self) -> Vec<Cell> {
        let sets: &[&str] = match self {
            Self::Published => &["published"],
            Self::Engines => &["engines"],
            Self::Goals => &["goals", "published"],
            Self::Patterns => &[],
            Self::Full => &["goals", "published", "growth", "threads", "values", "memory"],
        };
        let all: BTreeMap<String, Vec<Block>> =
            serde_json::from_str(include_str!("presets.json")).expect("tests have read it");
        let cells = |Block { subjects, workloads, shapes }: &Block| {
            shapes.iter().map(|shape| Cell::new(*shape, subjects, workloads)).collect()
        };
        sets.iter().flat_map(|set| &all[*set]).flat_map::<Vec<Cell>, _>(cells).collect()
    }

    /// Whether the cost of lookups is counted too.
    pub(crate) fn has_patterns(self) -> bool {
        matches!(self, Self::Patterns | Self::Full)
    }
}

/// The subjects, or all of them, do these workloads on tables of each of these shapes.
#[derive(Deserialize)]
struct Block {
    #[serde(default)]
    subjects: Vec<Subject>,
    workloads: Vec<Workload>,
    shapes: Vec<Shape>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeySet;

    #[test]
    fn every_preset_can_be_done_and_the_full_one_has_every_size_thread_count_and_value_length() {
        // Catches a preset that is refused when somebody at last has the hours for it, and a curve with a gap.
        for preset in Preset::value_variants() {
            for cell in preset.cells() {
                assert_eq!(cell.check(None), Ok(()), "{preset:?}: {}", cell.shape);
            }
        }
        let shapes: Vec<_> = Preset::Full.cells().iter().map(|cell| cell.shape).collect();
        let has = |wanted: &dyn Fn(&Shape) -> bool| shapes.iter().any(wanted);
        for entries in [10_000, 100_000, 600_000, 1_000_000, 3_000_000, 10_000_000] {
            assert!(has(&|shape| shape.entries == entries && shape.keys == KeySet::Random), "{entries}");
        }
        assert!([1, 2, 4, 8].iter().all(|threads| has(&|shape| shape.threads == *threads)));
        assert!([8, 100, 1000].iter().all(|value_len| has(&|shape| shape.value_len == *value_len)));
    }
}
