//! Spreads filter memory over the levels so that a read of an absent key causes the fewest useless reads: Monkey (Dayan,
//! Athanassoulis and Idreos, "Monkey: Optimal Navigable Key-Value Store", 2017).
//!
//! With the same number of bits for every key, each run causes a read the same chance of a useless block read, though the last level's filters take
//! ten times the memory of those above. A bit for each key of a small level costs little memory, but avoids as many useless reads as a bit for each
//! key of a large level. So bits are given one by one to the level where they avoid the most useless reads for their memory, until the memory is
//! spent. Instead of the formula for an ideal filter, this uses the measured false-positive curve of our filter, interpolated linearly between whole
//! bits. Each bit gains less than the one before it, so this greedy choice gives the optimal spread.

use std::collections::HashSet;

use crate::compaction::plan::Plan;
use crate::manifest::{RunId, Version};
use crate::options::Options;
use crate::table::{MOST_BITS, TableMeta, false_positive_rate};

/// The size of a level, which determines its share of the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LevelShape {
    entries: u64,
    /// The number of sorted runs: a read of an absent key searches each of them.
    runs: u64,
}

impl LevelShape {
    /// The memory of one filter bit for each key of the level.
    fn bit(self) -> f64 {
        self.entries as f64
    }

    /// The useless reads avoided for each bit of memory, if filters that have `bits` per key get one more bit for each key.
    fn gain(self, bits: usize) -> f64 {
        let spared = false_positive_rate(bits as f64) - false_positive_rate(bits as f64 + 1.0);
        self.runs as f64 * spared / self.bit()
    }
}

/// The bits per key for the filters of the output of `plan`. Existing tables keep their filters, so the mean over all tables equals that of the
/// options only after every table was rewritten with the tree in its present shape. O(tables).
pub(crate) fn filter_bits_of_merge(options: &Options, version: &Version, plan: &Plan) -> f64 {
    let taken: HashSet<u64> = plan.tables().collect();
    let inputs = version.tables().filter(|table| taken.contains(&table.number));
    let entries = inputs.fold(0u64, |sum, table| sum.saturating_add(table.entries));
    filter_bits(options, version, &taken, plan.output, entries)
}

/// The bits per key for the filter of a memtable that is flushed with `entries` entries. O(runs).
pub(crate) fn filter_bits_of_flush(options: &Options, version: &Version, entries: u64) -> f64 {
    filter_bits(options, version, &HashSet::new(), RunId::LEVEL_0, entries)
}

fn filter_bits(options: &Options, version: &Version, taken: &HashSet<u64>, output: RunId, entries: u64) -> f64 {
    let shapes = shapes(version, taken, output, entries);
    let bits = bits_per_level(&shapes, f64::from(options.filter_bits_per_key));
    bits.get(output.level).copied().unwrap_or_default()
}

/// The sizes of the levels after the tables `taken` are removed and `entries` entries are added at `output`.
fn shapes(version: &Version, taken: &HashSet<u64>, output: RunId, entries: u64) -> Vec<LevelShape> {
    let mut shapes = vec![LevelShape::default(); version.levels().len().max(output.level + 1)];
    // On level 0 each table is a separate run.
    let mut is_new_run = true;
    for (level, run) in version.all_runs() {
        let is_left = |table: &&TableMeta| !taken.contains(&table.number);
        let (is_left, left) = match taken.is_empty() {
            // A flush does not visit the tables.
            true => (true, run.entries()),
            false => {
                let left = || run.tables().iter().filter(is_left).map(|table| table.entries);
                (left().next().is_some(), left().fold(0, u64::saturating_add))
            }
        };
        if is_left {
            shapes[level].runs += 1;
            shapes[level].entries = shapes[level].entries.saturating_add(left);
            is_new_run &= level == 0 || level != output.level || run.id() != output.run;
        }
    }
    shapes[output.level].runs += u64::from(is_new_run);
    shapes[output.level].entries = shapes[output.level].entries.saturating_add(entries);
    shapes
}

/// The bits per key of each level's filters, 0 (no filter) to 32: of all spreads with a mean of `mean` bits per key, the one with the fewest false
/// positives. Levels without entries get no bits. A pure function, O(levels * log levels).
fn bits_per_level(levels: &[LevelShape], mean: f64) -> Vec<f64> {
    // A level without entries has no filter to give bits to.
    let filled = levels.iter().enumerate().filter(|(_, shape)| shape.entries > 0);
    let steps = filled.flat_map(|(level, shape)| (0..MOST_BITS).map(move |bit| (level, shape.gain(bit))));
    let mut steps: Vec<(usize, f64)> = steps.collect();
    steps.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut left = levels.iter().map(|shape| shape.bit() * mean).sum::<f64>();
    let mut bits = vec![0.0; levels.len()];
    for (level, _) in steps {
        let given = (left / levels[level].bit()).min(1.0);
        bits[level] += given;
        left = (left - given * levels[level].bit()).max(0.0);
    }
    bits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::manifest::VersionEdit;
    use crate::manifest::test_tables::table_of_keys;

    /// The average number of runs whose filters give a false positive.
    fn useless_reads(levels: &[LevelShape], bits: &[f64]) -> f64 {
        levels.iter().zip(bits).map(|(level, &bits)| level.runs as f64 * false_positive_rate(bits)).sum()
    }

    fn memory(levels: &[LevelShape], bits: &[f64]) -> f64 {
        levels.iter().zip(bits).map(|(level, &bits)| level.bit() * bits).sum()
    }

    /// A version with these tables, each given as level, run, entries.
    fn version(tables: &[(usize, u64, u64)]) -> Version {
        let table = |(number, &(level, run, entries)): (u64, &(usize, u64, u64))| {
            let key = |letter: char| format!("{letter}{number:03}");
            (RunId { level, run }, TableMeta { entries, ..table_of_keys(number, &key('a'), &key('a')) })
        };
        let added = (1..).zip(tables).map(table).collect();
        Version::default().apply(&VersionEdit { added, ..VersionEdit::default() }).unwrap()
    }

    #[test]
    fn a_flush_over_large_levels_gets_more_bits_than_the_mean_and_the_last_level_fewer() {
        // Catches a spread that is not applied, or that is computed from the levels before the compaction.
        let options = Options::default();
        assert_eq!(filter_bits_of_flush(&options, &Version::default(), 1000), 10.0);
        let three = version(&[(0, 0, 1000), (1, 1, 10_000), (2, 1, 100_000)]);
        let flush = filter_bits_of_flush(&options, &three, 1000);
        assert!(flush > 16.0, "{flush}");
        let taken = HashSet::from([2, 3]);
        let last = filter_bits(&options, &three, &taken, RunId { level: 2, run: 1 }, 110_000);
        assert!((9.0..10.0).contains(&last), "{last}");
        // With all entries in one run, nothing is left to spread.
        let all = filter_bits(&options, &three, &HashSet::from([1, 2, 3]), RunId { level: 2, run: 1 }, 111_000);
        assert!((all - 10.0).abs() < 1e-9, "{all}");
        assert_eq!(filter_bits_of_flush(&options.filter_bits_per_key(0), &three, 1000), 0.0);
    }

    #[test]
    fn shapes_are_those_after_the_merge() {
        // Catches inputs that are counted twice, an output that is not counted in the run that it joins, and runs of level 0 that are counted as one.
        let before = version(&[(0, 0, 5), (0, 0, 6), (1, 1, 50), (1, 1, 60), (2, 2, 7), (2, 1, 8)]);
        let shape = |entries, runs| LevelShape { entries, runs };
        let none = HashSet::new();
        let flushed = shapes(&before, &none, RunId::LEVEL_0, 9);
        assert_eq!(flushed, [shape(20, 3), shape(110, 1), shape(15, 2)]);
        let joined = shapes(&before, &HashSet::from([1, 2, 3]), RunId { level: 1, run: 1 }, 61);
        assert_eq!(joined, [shape(0, 0), shape(121, 1), shape(15, 2)]);
        let new_run = shapes(&before, &HashSet::from([3, 4]), RunId { level: 2, run: 3 }, 110);
        assert_eq!(new_run, [shape(11, 2), shape(0, 0), shape(125, 3)]);
        let deeper = shapes(&before, &HashSet::from([5, 6]), RunId { level: 3, run: 1 }, 15);
        assert_eq!(deeper[2..], [shape(0, 0), shape(15, 1)]);
    }

    #[test]
    fn each_bit_of_the_curve_gains_less_than_the_one_before() {
        // Catches a measured point that is off the curve: then the greedy choice would not give the optimal spread.
        let shape = LevelShape { entries: 1, runs: 1 };
        for bits in 1..MOST_BITS {
            assert!(shape.gain(bits) < shape.gain(bits - 1), "bit {bits}");
        }
    }

    #[test]
    fn scarce_memory_goes_to_the_small_levels_alone() {
        // Catches a small memory that is spent on the last level alone, where the filters are then too weak to be useful.
        let leveled = [10, 1_000_000].map(|entries| LevelShape { entries, runs: 1 });
        let bits = bits_per_level(&leveled, 0.0001);
        assert!(bits[0] > 5.0 && bits[1] < 0.0001, "{bits:?}");
        assert_eq!(bits_per_level(&leveled, 0.0), [0.0, 0.0]);
        assert_eq!(bits_per_level(&[], 10.0), [0.0; 0]);
    }

    proptest! {
        #[test]
        fn the_mean_is_kept_and_no_other_spread_is_better(
            sizes in prop::collection::vec((1u64..1 << 40, 1u64..12), 1..8), mean in 0.0f64..=32.0,
            moved in 0.0f64..3.0, from in 0usize..8, to in 0usize..8,
        ) {
            // Catches memory that is lost or invented, and a spread that is worse than equal filters for all levels.
            let levels: Vec<LevelShape> = sizes.iter().map(|&(entries, runs)| LevelShape { entries, runs }).collect();
            let bits = bits_per_level(&levels, mean);
            let uniform = vec![mean; levels.len()];
            let (spent, budget) = (memory(&levels, &bits), memory(&levels, &uniform));
            prop_assert!((spent - budget).abs() <= budget * 1e-9 + 1e-6, "{} of {}", spent, budget);
            prop_assert!(bits.iter().all(|bits| (0.0..=32.0 + 1e-9).contains(bits)), "{:?}", bits);
            let best = useless_reads(&levels, &bits);
            prop_assert!(best <= useless_reads(&levels, &uniform) * (1.0 + 1e-9));
            // Moves the same amount of memory from one level to another.
            let (from, to) = (from % levels.len(), to % levels.len());
            let mut other = bits;
            let memory_moved = (moved.min(other[from]) * levels[from].bit()).min((32.0 - other[to]).max(0.0) * levels[to].bit());
            other[from] -= memory_moved / levels[from].bit();
            other[to] += memory_moved / levels[to].bit();
            prop_assert!(best <= useless_reads(&levels, &other) * (1.0 + 1e-9) + 1e-12);
        }
    }
}
