//! Sets of cells that have names, so that a result can be repeated by one word.

use clap::ValueEnum;

use super::cell::Cell;
use super::shape::{Access, KEY_LEN, Shape, VALUE_LEN};
use super::subjects::Subject;
use super::workload::Workload::{self, *};
use crate::goals;
use crate::keys::KeySet;

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

/// Every subject, or every workload that the subjects can do.
const ALL_SUBJECTS: &[Subject] = &[];

impl Preset {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Engines => "engines",
            Self::Goals => "goals",
            Self::Full => "full",
        }
    }

    pub(crate) fn cells(self) -> Vec<Cell> {
        match self {
            Self::Published => published(),
            Self::Engines => engines(),
            Self::Goals => goals::cells(),
            Self::Full => full(),
        }
    }
}

/// A table of one thread, with keys and values as most cells have them.
pub(crate) const fn shape(keys: KeySet, entries: usize) -> Shape {
    Shape { keys, access: Access::Uniform, entries, threads: 1, key_len: KEY_LEN, value_len: VALUE_LEN }
}

/// That crate's benches insert 10,000 entries on each thread, and go to keys of tables of 1,000 and 10,000. Values have 12 bytes
/// there.
pub(crate) fn published() -> Vec<Cell> {
    let shape = |keys, entries| Shape { key_len: 64, value_len: 12, ..shape(keys, entries) };
    let cell = |keys, entries, threads, workloads: &[Workload]| {
        Cell::new(Shape { threads, ..shape(keys, entries) }, ALL_SUBJECTS, workloads)
    };
    vec![
        cell(KeySet::Sequential, 1000, 1, &[SeekOne]),
        cell(KeySet::Sequential, 10_000, 1, &[Insert, Get, Miss, SeekOne]),
        cell(KeySet::Random, 1000, 1, &[SeekOne]),
        cell(KeySet::Random, 10_000, 1, &[Insert, Get, Miss, SeekOne]),
        cell(KeySet::Sequential, 40_000, 4, &[Insert]),
        cell(KeySet::Random, 40_000, 4, &[Insert]),
        cell(KeySet::Sequential, 80_000, 8, &[Insert]),
        cell(KeySet::Random, 80_000, 8, &[Insert]),
    ]
}

fn engines() -> Vec<Cell> {
    let workloads = [Insert, Sort, Get, GetMany, Scan, FrozenScan];
    let sizes = [100_000, 600_000, 3_000_000];
    let cell = |keys| move |entries| Cell::new(shape(keys, entries), ALL_SUBJECTS, &workloads);
    sizes.into_iter().map(cell(KeySet::Random)).chain(sizes.into_iter().map(cell(KeySet::Sequential))).collect()
}

fn full() -> Vec<Cell> {
    [goals::cells(), growth(), threads(), values(), published()].concat()
}

/// How cost grows with the table; the sizes of the logging engines are among them.
fn growth() -> Vec<Cell> {
    let workloads = [Insert, Sort, Get, GetMany, Miss, Scan, Seek, FrozenScan];
    let cell = |keys, entries| Cell::new(shape(keys, entries), ALL_SUBJECTS, &workloads);
    let random = [10_000, 100_000, 600_000, 1_000_000, 3_000_000, 10_000_000];
    let others = [100_000, 600_000, 3_000_000];
    let mut cells: Vec<_> = random.into_iter().map(|entries| cell(KeySet::Random, entries)).collect();
    for keys in [KeySet::Sequential, KeySet::Paths] {
        cells.extend(others.into_iter().map(|entries| cell(keys, entries)));
    }
    cells
}

/// How throughput grows with threads, and what is seldom asked.
fn threads() -> Vec<Cell> {
    let workloads = [Insert, Get, GetMany, Mixed, Mixed95, Delete];
    let cell = |threads| {
        let shape = Shape { threads, ..shape(KeySet::Random, 1_000_000) };
        Cell::new(shape, ALL_SUBJECTS, &workloads)
    };
    [1, 2, 4, 8].into_iter().map(cell).collect()
}

fn values() -> Vec<Cell> {
    let cell = |value_len| {
        let shape = Shape { value_len, ..shape(KeySet::Random, 1_000_000) };
        Cell::new(shape, ALL_SUBJECTS, &[Insert, Get, Scan])
    };
    [8, 1000].into_iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_be_done() {
        // Catches a preset that is refused when somebody at last has the hours for it.
        for preset in Preset::value_variants() {
            for cell in preset.cells() {
                assert_eq!(cell.check(None), Ok(()), "{}: {}", preset.name(), cell.shape);
            }
        }
    }

    #[test]
    fn the_full_preset_has_every_size_thread_count_and_value_length() {
        // Catches a page with a gap where the goals ask for a curve.
        let cells = Preset::Full.cells();
        let has = |wanted: &dyn Fn(&Shape) -> bool| cells.iter().any(|cell| wanted(&cell.shape));
        for entries in [10_000, 100_000, 1_000_000, 3_000_000, 10_000_000] {
            assert!(has(&|shape| shape.entries == entries && shape.keys == KeySet::Random), "{entries}");
        }
        for threads in [1, 2, 4, 8] {
            assert!(has(&|shape| shape.threads == threads), "{threads}");
        }
        for value_len in [8, 100, 1000] {
            assert!(has(&|shape| shape.value_len == value_len), "{value_len}");
        }
    }
}
