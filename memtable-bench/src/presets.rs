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

    #[test]
    fn every_preset_can_be_done() {
        // Catches a preset that is refused when somebody at last has the hours for it.
        for (preset, cell) in
            Preset::value_variants().iter().flat_map(|of| of.cells().into_iter().map(move |cell| (of, cell)))
        {
            assert_eq!(cell.check(None), Ok(()), "{preset:?}: {}", cell.shape);
        }
    }
}
