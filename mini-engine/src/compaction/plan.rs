//! Which tables to merge next: a pure function of the version and the options, testable without a file.
//!
//! Level 0 is all there is. Once it holds more than the trigger, a run of its newest tables becomes one. The run grows
//! towards older tables as long as the next one is not larger than twice what was chosen so far: an entry is then
//! rewritten only when the data above it has grown to a good part of its table, and sizes grow geometrically towards
//! the oldest. Merging everything each time would rewrite the whole database for every few flushes.

use crate::manifest::Version;
use crate::options::Options;

/// One merge: its inputs are neighbours, so its output takes their place (V2 of the version).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Numbers of the tables to merge, newest first.
    pub(crate) inputs: Vec<u64>,
    /// Whether nothing lies below the inputs, so that a tombstone has nothing left to hide.
    pub(crate) drop_tombstones: bool,
}

/// The merge that the version needs most, if it needs one. A pure function, O(tables).
pub(crate) fn pick(version: &Version, options: &Options) -> Option<Plan> {
    let tables = version.level(0);
    if tables.len() <= options.l0_trigger {
        return None;
    }
    let mut sizes = tables.iter().map(|table| table.size);
    // A run of one would make no progress, so the second table is taken whatever its size.
    let mut sum = sizes.next()?.saturating_add(sizes.next()?);
    let more = sizes.take_while(|&size| {
        let taken = size <= sum.saturating_mul(2);
        sum = sum.saturating_add(size);
        taken
    });
    let chosen = 2 + more.count();
    let deeper = version.levels().iter().skip(1).any(|level| !level.is_empty());
    Some(Plan {
        inputs: tables.iter().take(chosen).map(|table| table.number).collect(),
        drop_tombstones: chosen == tables.len() && !deeper,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::VersionEdit;
    use crate::manifest::test_tables::table_of_size;

    /// A version whose level 0 has tables of `sizes`, newest first; the newest has the highest number.
    fn version(sizes: &[u64]) -> Version {
        let count = sizes.len() as u64;
        let added = sizes.iter().zip(0..).map(|(&size, age)| (0, table_of_size(count - age, size))).collect();
        Version::default().apply(&VersionEdit { added, ..VersionEdit::default() }).unwrap()
    }

    fn inputs(sizes: &[u64]) -> Option<(usize, bool)> {
        let options = Options { l0_trigger: 4, ..Options::default() };
        pick(&version(sizes), &options).map(|plan| (plan.inputs.len(), plan.drop_tombstones))
    }

    #[test]
    fn nothing_to_do_up_to_the_trigger() {
        // Catches a merge for every flush.
        assert_eq!(inputs(&[]), None);
        assert_eq!(inputs(&[1, 1, 1, 1]), None);
    }

    #[test]
    fn tombstones_go_only_with_the_oldest_table() {
        // Catches a dropped tombstone that lets an older value in a table below come back.
        assert_eq!(inputs(&[1, 1, 1, 1, 1]), Some((5, true)));
        assert_eq!(inputs(&[1, 1, 1, 1, 100]), Some((4, false)));
        assert_eq!(inputs(&[1, 1, 1, 1, 8]), Some((5, true)));
        assert_eq!(inputs(&[1, 1, 1, 1, 9]), Some((4, false)));
    }

    #[test]
    fn a_run_has_at_least_two_tables() {
        // Catches a plan that rewrites one table for ever and never shrinks the level.
        assert_eq!(inputs(&[1, 100, 1_000, 10_000, 100_000]), Some((2, false)));
    }

    #[test]
    fn inputs_are_the_newest_tables_newest_first() {
        // Catches a run with a gap, whose output would interleave with what it left out.
        let options = Options { l0_trigger: 2, ..Options::default() };
        let plan = pick(&version(&[1, 1, 50]), &options);
        assert_eq!(plan, Some(Plan { inputs: vec![3, 2], drop_tombstones: false }));
    }

    #[test]
    fn write_amplification_grows_with_the_logarithm_and_the_level_stays_at_its_trigger() {
        // Catches a rule that rewrites everything for each few flushes: 1000 flushes would cost 125 rewrites an entry.
        let options = Options { l0_trigger: 4, ..Options::default() };
        let mut sizes: Vec<u64> = Vec::new();
        let mut rewritten = 0;
        for _ in 0..1000 {
            sizes.insert(0, 1);
            while let Some(plan) = pick(&version(&sizes), &options) {
                let merged: u64 = sizes.drain(..plan.inputs.len()).sum();
                rewritten += merged;
                sizes.insert(0, merged);
            }
            assert!(sizes.len() <= 4);
        }
        assert!(rewritten < 12 * 1000, "an entry was rewritten {} times on average", rewritten / 1000);
    }
}
