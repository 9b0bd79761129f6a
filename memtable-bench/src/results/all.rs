//! The cells of all files of a report, found by their shape.

use super::cell::{CellResults, Figure};
use super::run::Run;
use crate::spec::{KeySet, Role, Shape, Subject, Workload};

/// The largest size for headlines.
const HEADLINE_ENTRIES: usize = 3_000_000;

/// All files of a report.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) runs: Vec<Run>,
    /// Every cell of every file.
    pub(crate) cells: Vec<CellResults>,
}

impl Results {
    /// Refuses files without a single measurement.
    pub(crate) fn new(runs: Vec<Run>) -> Result<Self, String> {
        let cells: Vec<_> = runs.iter().flat_map(|run| run.cells.iter().cloned()).collect();
        if cells.is_empty() { Err("the files hold no measurement".into()) } else { Ok(Self { runs, cells }) }
    }

    /// The cell of this shape with the most subjects at `workload`: ratios need peers in the same run.
    pub(crate) fn find(&self, shape: &Shape, workload: Workload) -> Option<&CellResults> {
        let shown = |of: &&CellResults| of.figures_at(workload).count();
        let candidates = self.cells.iter().filter(|of| of.cell.shape == *shape && shown(of) > 0);
        // Of equal maxima `max_by_key` returns the last, so the reversed order gives the first.
        candidates.rev().max_by_key(shown)
    }

    /// The shapes for which `like` returns the shape itself, in the order of `key`.
    fn shapes(&self, like: impl Fn(&Shape) -> Shape, key: fn(&Shape) -> usize) -> Vec<Shape> {
        let all = self.cells.iter().map(|of| of.cell.shape);
        let mut shapes: Vec<_> = all.filter(|shape| *shape == like(shape)).collect();
        shapes.sort_by_key(key);
        shapes.dedup();
        shapes
    }

    /// The shapes with these keys, one thread and uniform access, by size.
    pub(crate) fn sizes(&self, keys: KeySet) -> Vec<Shape> {
        self.shapes(|shape| Shape::new(keys, shape.entries), |shape| shape.entries)
    }

    /// The shapes of random keys that differ only in their threads, at the size with the most such shapes.
    pub(crate) fn threads(&self) -> Vec<Shape> {
        let of_size = |size: Shape| self.shapes(|shape| size.with_threads(shape.threads), |shape| shape.threads);
        let sizes = self.sizes(KeySet::Random).into_iter().map(of_size);
        sizes.max_by_key(|shapes| (shapes.len(), shapes.first().map(|shape| shape.entries))).unwrap_or_default()
    }

    /// The shape for headlines: one thread, random keys, the most entries but no more than 3 M, with peers.
    pub(crate) fn headline(&self) -> Option<Shape> {
        let is_full = |shape: &Shape| {
            let of = self.find(shape, Workload::Insert);
            let has = |role| of.is_some_and(|of| of.cell.subjects.iter().any(|subject| subject.role() == role));
            shape.entries <= HEADLINE_ENTRIES && has(Role::Own) && has(Role::ClosePeer)
        };
        self.sizes(KeySet::Random).into_iter().rfind(is_full)
    }

    /// The figures of a workload at a shape, fastest first.
    pub(crate) fn figures(&self, shape: &Shape, workload: Workload) -> Vec<Figure> {
        let mut figures: Vec<_> =
            self.find(shape, workload).into_iter().flat_map(|of| of.figures_at(workload)).collect();
        figures.sort_by(|a, b| a.median().total_cmp(&b.median()));
        figures
    }

    /// The fastest of our subjects at a workload, one by one or `batched`.
    pub(crate) fn best_own(&self, shape: &Shape, workload: Workload, batched: bool) -> Option<Figure> {
        let is_own = |subject: Subject| subject.role() == Role::Own && subject.is_batched() == batched;
        self.figures(shape, workload).into_iter().find(|figure| is_own(figure.subject))
    }

    /// The fastest of the peers that are skip lists.
    pub(crate) fn best_skip_list(&self, shape: &Shape, workload: Workload) -> Option<Figure> {
        let figures = self.figures(shape, workload.of_peers());
        figures.into_iter().find(|figure| figure.subject.role() == Role::ClosePeer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::measured_run;
    use crate::spec::Cell;

    #[test]
    fn headlines_speak_of_three_million_random_keys_and_curves_have_every_size_and_thread_count_once() {
        // Catches a headline of a table that fits in a cache, a point that is drawn twice or not at all when two cells measured it,
        // and a plot of our subjects alone when another cell also has the peers.
        let ours = [Subject::Fastskip, Subject::MemtableBatch];
        let shapes = [10_000, 3_000_000, 100_000, 10_000_000, 1_000_000].map(|size| Shape::new(KeySet::Random, size));
        let threads = [4, 2, 1].map(|threads| shapes[4].with_threads(threads));
        let all =
            |shape: &Shape| Cell { subjects: Subject::of(shape.store).collect(), ..Cell::new(*shape, &ours, &[]) };
        let alone = shapes.iter().map(|shape| Cell::new(*shape, &ours, &[Workload::Insert, Workload::GetMany]));
        let cells: Vec<_> = alone.chain(shapes.iter().chain(&threads).map(all)).collect();
        let results = Results::new(vec![measured_run(1, &cells)]).expect("cells");
        let shape = Shape::new(KeySet::Random, 3_000_000);
        assert_eq!(results.headline(), Some(shape));
        assert_eq!(results.best_skip_list(&shape, Workload::GetMany).map(|of| of.workload), Some(Workload::Get));
        let sizes: Vec<_> = results.sizes(KeySet::Random).iter().map(|shape| shape.entries).collect();
        assert_eq!(sizes, [10_000, 100_000, 1_000_000, 3_000_000, 10_000_000]);
        assert_eq!(results.threads(), [1, 2, 4].map(|threads| shapes[4].with_threads(threads)));
    }
}
