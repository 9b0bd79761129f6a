//! Sets of cells that have names, so that a result can be repeated by one word. `presets.json` has them; a shape's fields that
//! it does not name are those of three million random entries on one thread.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::Deserialize;

use crate::spec::{Cell, Shape, Subject, Workload};

/// The entries of a database unless arguments say otherwise.
pub(crate) const ENGINE_ENTRIES: usize = 600_000;

/// The names of sets of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// The tables of the published crate's own README: small, keys of 64 bytes, up to 8 threads
    Published,
    /// The loads of the logging engines: 100K, 600K and 3M entries, random and in order
    Engines,
    /// What goals N1 to N9 and N11 need, and no more
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
        sets.iter().flat_map(|set| cells(set)).collect()
    }

    /// Whether the cost of lookups is counted too.
    pub(crate) fn has_patterns(self) -> bool {
        matches!(self, Self::Patterns | Self::Full)
    }
}

/// The cells of one set.
pub(crate) fn cells(set: &str) -> Vec<Cell> {
    let all: BTreeMap<String, Vec<Block>> =
        serde_json::from_str(include_str!("presets.json")).expect("tests have read it");
    let cells = |Block { subjects, workloads, shapes }: &Block| {
        shapes.iter().map(|shape| Cell::new(*shape, subjects, workloads)).collect()
    };
    all[set].iter().flat_map::<Vec<Cell>, _>(cells).collect()
}

/// The same with no subject that needs a feature which this program lacks.
pub(crate) fn built(set: &str) -> Vec<Cell> {
    let mut cells = cells(set);
    cells.iter_mut().for_each(|cell| cell.subjects.retain(|subject| subject.missing_feature().is_none()));
    cells
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

    #[test]
    fn every_preset_can_be_done() {
        // Catches a preset that is refused when somebody at last has the hours for it.
        let of_tables = Preset::value_variants().iter().flat_map(|of| of.cells());
        let of_engines = ["engine", "engine-quick"].into_iter().flat_map(built);
        for cell in of_tables.chain(of_engines) {
            assert_eq!(cell.check(None), Ok(()), "{}", cell.shape);
        }
    }
}
