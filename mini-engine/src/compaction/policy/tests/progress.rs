//! Tests that every compaction makes progress: the measure of `plan.rs` falls with each, automatic or manual.

use std::collections::HashSet;
use std::ops::Bound;

use super::world::key;
use super::*;
use crate::compaction::{ManualCompaction, pick_manual};
use crate::manifest::Run;

impl World {
    /// The measure, which falls in lexicographic order with each compaction. For each level from the top: the sum over its entries, each multiplied
    /// by the number of its run (on level 0, where that is a sequence number, by its position from the oldest). The last number counts the entries of
    /// tables that have yet to be rewritten: those with numbers below `made_from`, and narrowed ones.
    fn measure(&self, made_from: u64) -> Vec<u64> {
        let entries = |run: &Run| run.tables().iter().map(|table| self.entries_of(table).count() as u64).sum::<u64>();
        let level = |level: usize| {
            let runs = self.version.runs(level).iter().rev().zip(1..);
            runs.map(|(run, place)| entries(run) * if level == 0 { place } else { run.id() }).sum()
        };
        let old = self.version.tables().filter(|table| table.number < made_from || table.narrowed);
        let old = old.map(|table| self.entries_of(table).count() as u64).sum();
        (0..=BOTTOM).map(level).chain([old]).collect()
    }

    /// Runs `plan` piece by piece. Checks that each piece reaches a later key than the one before, or that the measure falls with it: then it took
    /// earlier keys of tables that have arrived since. Checks that the pieces end, and that the measure has fallen by then.
    fn complete(&mut self, plan: Plan, made_from: u64) {
        let (before, described) = (self.measure(made_from), format!("{plan:?} of {:?}", self.version));
        let (mut next, mut from) = (Some(plan), None);
        while let Some(plan) = next {
            let measure = self.measure(made_from);
            self.start(plan, false);
            self.end(self.jobs.len() - 1);
            let pointer = self.version.pointers().iter().find(|pointer| pointer.id == self.made).cloned();
            let reached = pointer.as_ref().map(|pointer| pointer.from.clone());
            let is_later = from.is_none() || reached.is_none() || from < reached;
            assert!(is_later || self.measure(made_from) < measure, "a piece takes nothing: {described}");
            next = pointer.and_then(|pointer| self.context().resume(&pointer));
            from = reached;
        }
        assert!(self.measure(made_from) < before, "nothing is gained by {described}");
    }

    /// Runs all plans of the policy.
    fn complete_all(&mut self) {
        let made_from = self.made + 1;
        while let Some(plan) = pick(&self.context(), Work::Any) {
            self.complete(plan, made_from);
        }
    }

    /// Compacts a range of `keys` keys, and returns the number of compactions that were needed.
    fn compact_range(&mut self, from: u8, keys: u8) {
        let to = from.saturating_add(keys).min(KEYS - 1);
        let bounds = (Bound::Included(key(from)), Bound::Included(key(to)));
        let range = ManualCompaction {
            bounds: crate::types::owned(&bounds),
            upto: self.seqno(),
            made_from: self.made + 1,
            minimal: HashSet::new(),
        };
        while let Some(plan) = pick_manual(&self.context(), &range, None) {
            self.complete(plan, range.made_from);
        }
    }
}

#[test]
fn compactions_of_many_runs_make_progress_too() {
    // Catches a compaction without progress by a rule for many runs, which the small random worlds below seldom have: for example an output that
    // becomes the newest of the runs that were joined.
    for (policy, ratio) in POLICIES.iter().flat_map(|policy| (2..5).map(move |ratio| (*policy, ratio))) {
        overwritten_with(policy, ratio, 20, World::complete_all);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_compaction_makes_progress(
        (policy, ratio) in (prop::sample::select(&POLICIES[..]), 2..5u64),
        (table_bytes, memtable_bytes) in (1..2000u64, 1..2000usize),
        piece in prop::sample::select(&[1, 5, 30, usize::MAX][..]),
        compressible in vec(0..KEYS, 0..12),
        steps in vec(step(), 1..100),
        ranges in vec((0..KEYS, 1..KEYS), 1..4),
    ) {
        // Catches a compaction that does not remove the reason for its choice, so that it is chosen for ever: for example one whose first piece ends
        // after small tables that it has included.
        let mut world = World::new(policy, ratio);
        (world.options.table_file_bytes, world.options.memtable_bytes) = (table_bytes, memtable_bytes);
        world.compressible = compressible.into_iter().map(key).collect();
        world.piece = piece;
        for step in steps {
            world.run(step);
        }
        world.in_progress.damage.forget(1..=world.made);
        world.end_all();
        world.end_range();
        world.complete_all();
        world.check();
        for (from, keys) in ranges {
            world.compact_range(from, keys);
            world.check();
        }
    }
}
