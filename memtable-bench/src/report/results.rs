//! The cells of all files of a report, found by their shape.

use crate::keys::KeySet;
use crate::patterns::PatternCost;
use crate::results::{CellResults, Figure, Run};
use crate::spec::{Role, Shape, Subject, Workload};

/// What the tiles of the page and the README's table show, one by one or in batches.
pub(super) const HEADLINES: [(Workload, bool, &str); 9] = [
    (Workload::Insert, false, "insert"),
    (Workload::Insert, true, "insert, 256 at a time"),
    (Workload::Get, false, "get"),
    (Workload::GetMany, true, "get, 256 at a time"),
    (Workload::Miss, false, "get of absent keys"),
    (Workload::Seek, false, "seek and read 100"),
    (Workload::Scan, false, "scan, an entry"),
    (Workload::Mixed, false, "half reads, half writes"),
    (Workload::Delete, false, "delete"),
];

/// The size that headlines speak of, if it is there.
const HEADLINE_ENTRIES: usize = 3_000_000;

/// All files of a report.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) runs: Vec<Run>,
    /// Every cell of every file.
    pub(super) cells: Vec<CellResults>,
}

impl Results {
    /// # Errors
    /// Files without a single cell.
    pub(super) fn new(runs: Vec<Run>) -> Result<Self, String> {
        let cells: Vec<_> = runs.iter().flat_map(|run| run.cells.iter().cloned()).collect();
        if cells.is_empty() && runs.iter().all(|run| run.patterns.is_empty()) {
            return Err("the files hold no measurement".into());
        }
        Ok(Self { runs, cells })
    }

    /// The counts of the first run that has any.
    pub(super) fn patterns(&self) -> &[PatternCost] {
        self.runs.iter().map(|run| &run.patterns[..]).find(|costs| !costs.is_empty()).unwrap_or_default()
    }

    /// The cell of this shape that shows most at `workload`: ratios need peers in the same run.
    pub(super) fn find(&self, shape: &Shape, workload: Workload) -> Option<&CellResults> {
        let is_shown = |figure: &&Figure| figure.workload == workload && figure.ns_per_operation.is_some();
        let shown = |cell: &&CellResults| cell.figures.iter().filter(is_shown).count();
        let candidates = self.cells.iter().filter(|cell| cell.shape == *shape && shown(cell) > 0);
        // The last of several largest: so the files are asked from the end.
        candidates.rev().max_by_key(shown)
    }

    /// The shapes that are what `like` makes of them, in the order of `key`.
    fn shapes(&self, like: impl Fn(&Shape) -> Shape, key: fn(&Shape) -> usize) -> Vec<Shape> {
        let mut shapes: Vec<_> =
            self.cells.iter().map(|cell| cell.shape).filter(|shape| *shape == like(shape)).collect();
        shapes.sort_by_key(key);
        shapes.dedup();
        shapes
    }

    /// The shapes of one thread and uniform access for these keys, by size.
    pub(super) fn sizes(&self, keys: KeySet) -> Vec<Shape> {
        self.shapes(|shape| Shape::new(keys, shape.entries), |shape| shape.entries)
    }

    /// Shapes of random keys that differ in their threads, for the size that has most of them.
    pub(super) fn threads(&self) -> Vec<Shape> {
        let of_size = |size: Shape| self.shapes(|shape| size.threads(shape.threads), |shape| shape.threads);
        let sizes = self.sizes(KeySet::Random).into_iter().map(of_size);
        sizes.max_by_key(|shapes| (shapes.len(), shapes.first().map(|shape| shape.entries))).unwrap_or_default()
    }

    /// The shape that headlines speak of: one thread, random keys, the most entries but no more than 3 M, peers beside.
    pub(super) fn headline(&self) -> Option<Shape> {
        let sizes = self.sizes(KeySet::Random);
        let full = |shape: &&Shape| {
            self.find(shape, Workload::Insert).is_some_and(|cell| {
                let has = |role| cell.subjects.iter().any(|subject| subject.role() == role);
                has(Role::Own) && has(Role::SkipListPeer)
            })
        };
        sizes.iter().rev().filter(|shape| shape.entries <= HEADLINE_ENTRIES).find(full).copied()
    }

    /// The figures of a workload at a shape that are there, fastest first.
    pub(super) fn figures(&self, shape: &Shape, workload: Workload) -> Vec<&Figure> {
        let Some(cell) = self.find(shape, workload) else { return Vec::new() };
        let of_workload = |figure: &&Figure| figure.workload == workload && figure.ns_per_operation.is_some();
        let mut figures: Vec<_> = cell.figures.iter().filter(of_workload).collect();
        figures.sort_by(|a, b| a.median().total_cmp(&b.median()));
        figures
    }

    /// The fastest of ours at a workload, one by one or in batches.
    pub(super) fn best_own(&self, shape: &Shape, workload: Workload, batched: bool) -> Option<&Figure> {
        let is_own = |subject: Subject| subject.role() == Role::Own && subject.is_batched() == batched;
        self.figures(shape, workload).into_iter().find(|figure| is_own(figure.subject))
    }

    /// The fastest of the peers that are skip lists.
    pub(super) fn best_skip_list(&self, shape: &Shape, workload: Workload) -> Option<&Figure> {
        let workload = workload.of_peers();
        self.figures(shape, workload).into_iter().find(|figure| figure.subject.role() == Role::SkipListPeer)
    }

    /// Subjects whose rounds failed anywhere, with how many did, of how many, and the first reason.
    pub(super) fn failures(&self) -> Vec<(Subject, usize, usize, &str)> {
        let of = |&subject: &Subject| {
            let failures: Vec<_> = self.cells.iter().filter_map(|cell| cell.failures(subject)).collect();
            let ran = self.cells.iter().map(|cell| cell.rounds_of(subject)).sum();
            let (_, reason) = failures.first()?;
            Some((subject, failures.iter().map(|(failed, _)| failed).sum(), ran, *reason))
        };
        Subject::all().iter().filter_map(of).collect()
    }
}

/// Results that were never measured.
#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use crate::results::measured;
    use crate::spec::Cell;

    /// Runs of so many rounds: ours take 400 ns, all others 1200.
    pub(in crate::report) fn results(runs: &[(u32, &[Cell])]) -> Results {
        let nanos = |subject: Subject| if subject.role() == Role::Own { 400.0 } else { 1200.0 };
        let run = |(rounds, cells): &(u32, &[Cell])| {
            let cells = cells.iter().map(|cell| measured(cell, nanos, None)).collect();
            Run { cells, ..Run::new(None, *rounds) }
        };
        Results::new(runs.iter().map(run).collect()).expect("cells")
    }
}

#[cfg(test)]
mod tests {
    use super::testing::results;
    use super::*;
    use crate::presets::Preset;

    #[test]
    fn headlines_speak_of_three_million_random_keys_and_curves_have_every_size_and_thread_count_once() {
        // Catches a headline of a table that fits in a cache, and a point drawn twice where two presets measured it or left out;
        // and a plot of our own subjects alone, where another cell has the peers as well.
        let goals = results(&[(1, &Preset::Goals.cells())]);
        let shape = goals.headline().expect("a headline");
        assert_eq!(shape.entries, 3_000_000);
        assert_eq!(goals.best_skip_list(&shape, Workload::GetMany).map(|of| of.workload), Some(Workload::Get));
        let full = results(&[(1, &Preset::Full.cells())]);
        assert_eq!(full.headline(), Some(shape));
        let sizes: Vec<_> = full.sizes(KeySet::Random).iter().map(|shape| shape.entries).collect();
        assert_eq!(sizes, [10_000, 100_000, 600_000, 1_000_000, 3_000_000, 10_000_000]);
        let threads: Vec<_> = full.threads().iter().map(|shape| (shape.entries, shape.threads)).collect();
        assert_eq!(threads, [1, 2, 4, 8].map(|threads| (1_000_000, threads)));
    }
}
