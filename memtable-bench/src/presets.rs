//! Sets of cells that have names, so that a result can be repeated by one word.

use clap::ValueEnum;

use crate::goals;
use crate::keys::KeySet::{self, Paths, Random, Sequential};
use crate::spec::Workload::*;
use crate::spec::{Cell, Shape, Workload};

/// The sets' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// The tables of the published crate's own README: small, keys of 64 bytes, up to 8 threads
    Published,
    /// The loads of the logging engines: 100K, 600K and 3M entries, random and in order
    Engines,
    /// What goals M1 to M10 need, and no more
    Goals,
    /// Everything that the results page shows: goals, engines, published, growth, values, threads
    Full,
}

const ENGINE_SIZES: [usize; 3] = [100_000, 600_000, 3_000_000];

impl Preset {
    pub(crate) fn cells(self) -> Vec<Cell> {
        match self {
            Self::Published => goals::published(),
            Self::Engines => [Random, Sequential].map(engines).concat(),
            Self::Goals => goals::cells(),
            Self::Full => [goals::cells(), growth(), threads(), values(), goals::published()].concat(),
        }
    }
}

/// A cell of all subjects.
fn cell(shape: Shape, workloads: &[Workload]) -> Cell {
    Cell::new(shape, &[], workloads)
}

fn engines(keys: KeySet) -> Vec<Cell> {
    ENGINE_SIZES.map(|size| cell(Shape::new(keys, size), &[Insert, Sort, Get, GetMany, Scan, FrozenScan])).to_vec()
}

/// How cost grows with the table; the sizes of the logging engines are among them.
fn growth() -> Vec<Cell> {
    let of = |keys, sizes: &[usize]| {
        let workloads = [Insert, Sort, Get, GetMany, Miss, Scan, Seek, FrozenScan];
        sizes.iter().map(|&size| cell(Shape::new(keys, size), &workloads)).collect::<Vec<_>>()
    };
    let random = [10_000, 100_000, 600_000, 1_000_000, 3_000_000, 10_000_000];
    [of(Random, &random), of(Sequential, &ENGINE_SIZES), of(Paths, &ENGINE_SIZES)].concat()
}

/// How throughput grows with threads, with workloads that other cells leave out.
fn threads() -> Vec<Cell> {
    let shape = Shape::new(Random, 1_000_000);
    [1, 2, 4, 8].map(|n| cell(shape.threads(n), &[Insert, Get, GetMany, Mixed, Mixed95, Delete])).to_vec()
}

fn values() -> Vec<Cell> {
    let shape = Shape::new(Random, 1_000_000);
    [8, 1000].map(|value_len| cell(Shape { value_len, ..shape }, &[Insert, Get, Scan])).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for entries in [10_000, 100_000, 1_000_000, 3_000_000, 10_000_000] {
            assert!(has(&|shape| shape.entries == entries && shape.keys == Random), "{entries}");
        }
        assert!([1, 2, 4, 8].iter().all(|threads| has(&|shape| shape.threads == *threads)));
        assert!([8, 100, 1000].iter().all(|value_len| has(&|shape| shape.value_len == *value_len)));
    }
}
