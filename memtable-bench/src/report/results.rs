//! The cells of all files of a report, found by their shape.

use crate::patterns::PatternCost;
use crate::results::{CellResults, Figure, Run};
use crate::spec::{KeySet, Role, Shape, Subject, Workload};

/// What a tile of the page and a row of the README's table show, one by one or in batches.
pub(super) type Headline = (Workload, bool, &'static str);

pub(super) const HEADLINES: [Headline; 9] = [
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
    /// Refuses files without a single measurement.
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
        let shown = |cell: &&CellResults| cell.figures_at(workload).count();
        let candidates = self.cells.iter().filter(|cell| cell.shape == *shape && shown(cell) > 0);
        // The last of several largest: so the files are asked from the end.
        candidates.rev().max_by_key(shown)
    }

    /// The shapes that are what `like` makes of them, in the order of `key`.
    fn shapes(&self, like: impl Fn(&Shape) -> Shape, key: fn(&Shape) -> usize) -> Vec<Shape> {
        let all = self.cells.iter().map(|cell| cell.shape);
        let mut shapes: Vec<_> = all.filter(|shape| *shape == like(shape)).collect();
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
        let of_size =
            |size: Shape| self.shapes(|shape| Shape { threads: shape.threads, ..size }, |shape| shape.threads);
        let sizes = self.sizes(KeySet::Random).into_iter().map(of_size);
        sizes.max_by_key(|shapes| (shapes.len(), shapes.first().map(|shape| shape.entries))).unwrap_or_default()
    }

    /// The shape that headlines speak of: one thread, random keys, the most entries but no more than 3 M, peers beside.
    pub(super) fn headline(&self) -> Option<Shape> {
        let is_full = |shape: &Shape| {
            let cell = self.find(shape, Workload::Insert);
            let has = |role| cell.is_some_and(|cell| cell.subjects.iter().any(|subject| subject.role() == role));
            shape.entries <= HEADLINE_ENTRIES && has(Role::Own) && has(Role::ClosePeer)
        };
        self.sizes(KeySet::Random).into_iter().rfind(is_full)
    }

    /// The figures of a workload at a shape that are there, fastest first.
    pub(super) fn figures(&self, shape: &Shape, workload: Workload) -> Vec<&Figure> {
        let mut figures: Vec<_> =
            self.find(shape, workload).into_iter().flat_map(|cell| cell.figures_at(workload)).collect();
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
        let figures = self.figures(shape, workload.of_peers());
        figures.into_iter().find(|figure| figure.subject.role() == Role::ClosePeer)
    }

    /// Subjects whose rounds failed anywhere, with how many did, of how many, and the first reason.
    pub(super) fn failures(&self) -> Vec<(Subject, usize, usize, &str)> {
        let of = |&subject: &Subject| {
            let ran = self.cells.iter().map(|cell| cell.rounds.iter().filter(|turn| turn.subject == subject).count());
            let failures: Vec<_> = self.cells.iter().filter_map(|cell| cell.failures(subject)).collect();
            Some((subject, failures.iter().map(|of| of.0).sum(), ran.sum(), failures.first()?.2))
        };
        Subject::all().iter().filter_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::Preset;
    use crate::results::measured_run;

    #[test]
    fn headlines_speak_of_three_million_random_keys_and_curves_have_every_size_and_thread_count_once() {
        // Catches a headline of a table that fits in a cache, and a point drawn twice where two presets measured it or left out;
        // and a plot of our own subjects alone, where another cell has the peers as well.
        let [goals, full] = [Preset::Goals, Preset::Full]
            .map(|preset| Results::new(vec![measured_run(1, &preset.cells())]).expect("cells"));
        let shape = Shape::new(KeySet::Random, 3_000_000);
        assert_eq!([goals.headline(), full.headline()], [Some(shape); 2]);
        assert_eq!(goals.best_skip_list(&shape, Workload::GetMany).map(|of| of.workload), Some(Workload::Get));
        let sizes: Vec<_> = full.sizes(KeySet::Random).iter().map(|shape| shape.entries).collect();
        assert_eq!(sizes, [10_000, 100_000, 600_000, 1_000_000, 3_000_000, 10_000_000]);
        let threads: Vec<_> = full.threads().iter().map(|shape| (shape.entries, shape.threads)).collect();
        assert_eq!(threads, [1, 2, 4, 8].map(|threads| (1_000_000, threads)));
    }
}
