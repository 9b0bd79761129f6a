//! What was measured, by what was asked: the cells of all files, found by their shape.

use crate::keys::KeySet;
use crate::memtable::{Access, Document, Figure, Measured, Role, Shape, Subject, Workload, shape};

/// The size that headlines speak of, if it is there.
const HEADLINE_ENTRIES: usize = 3_000_000;

/// All files of a report.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) documents: Vec<Document>,
    /// Every cell of every file.
    pub(super) cells: Vec<Measured>,
}

impl Book {
    /// # Errors
    /// Files without a single cell.
    pub(super) fn new(documents: Vec<Document>) -> Result<Self, String> {
        let cells: Vec<_> = documents.iter().flat_map(|document| document.cells.iter().cloned()).collect();
        if cells.is_empty() {
            return Err("the files hold no measurement".into());
        }
        Ok(Self { documents, cells })
    }

    /// The cell of this shape that shows most at `workload`: ratios need peers in the same run.
    pub(super) fn find(&self, shape: &Shape, workload: Workload) -> Option<&Measured> {
        let shown = |cell: &&Measured| {
            cell.figures
                .iter()
                .filter(|figure| figure.workload == workload && figure.ns_per_operation.is_some())
                .count()
        };
        let candidates = self.cells.iter().filter(|cell| cell.shape == *shape && shown(cell) > 0);
        // The last of several largest: so the files are asked from the end.
        candidates.rev().max_by_key(shown)
    }

    /// Every shape that differs from `like` in `vary` only, in the order of `key`.
    pub(super) fn shapes(&self, like: &Shape, vary: fn(&mut Shape, &Shape), key: fn(&Shape) -> usize) -> Vec<Shape> {
        let same = |shape: &Shape| {
            let mut with = *like;
            vary(&mut with, shape);
            with == *shape
        };
        let mut shapes: Vec<_> = self.cells.iter().map(|cell| cell.shape).filter(same).collect();
        shapes.sort_by_key(key);
        shapes.dedup();
        shapes
    }

    /// The shapes of one thread and uniform access for these keys, by size.
    pub(super) fn sizes(&self, keys: KeySet) -> Vec<Shape> {
        self.shapes(&shape(keys, 0), |with, shape| with.entries = shape.entries, |shape| shape.entries)
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
        figures.sort_by(|a, b| median(a).total_cmp(&median(b)));
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

    /// Shapes of random keys that differ in their threads, for the size that has most of them.
    pub(super) fn threads(&self, access: Access) -> Vec<Shape> {
        let of_size = |entries| {
            let like = Shape { access, ..shape(KeySet::Random, entries) };
            self.shapes(&like, |with, shape| with.threads = shape.threads, |shape| shape.threads)
        };
        let sizes = self.sizes(KeySet::Random).into_iter().map(|shape| of_size(shape.entries));
        sizes.max_by_key(|shapes| (shapes.len(), shapes.first().map(|shape| shape.entries))).unwrap_or_default()
    }

    /// Subjects whose rounds failed anywhere, with how many did, of how many, and the first reason.
    pub(super) fn failures(&self) -> Vec<(Subject, usize, usize, &str)> {
        let of = |subject: Subject| {
            let cells = || self.cells.iter().filter(|cell| cell.subjects.contains(&subject));
            let failures: Vec<_> = cells().filter_map(|cell| cell.failures(subject)).collect();
            let failed = failures.iter().map(|(failed, _)| failed).sum();
            let ran = cells().flat_map(|cell| &cell.rounds).filter(|turn| turn.subject == subject).count();
            failures.first().map(|(_, reason)| (subject, failed, ran, *reason))
        };
        Subject::ALL.into_iter().filter_map(of).collect()
    }
}

/// The median of a figure that has one.
pub(super) fn median(figure: &Figure) -> f64 {
    figure.ns_per_operation.map_or(f64::INFINITY, |nanos| nanos.median)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memtable::testing::measured;
    use crate::memtable::{Cell, Preset};

    fn book(preset: Preset) -> Book {
        let mut document = Document::new(Some(preset.name()), 1);
        document.cells = preset.cells().iter().map(|cell| measured(cell, |_| 100.0, None)).collect();
        Book::new(vec![document]).expect("cells")
    }

    #[test]
    fn headlines_speak_of_three_million_random_keys() {
        // Catches a headline of a table that fits in a cache, and of one that has no peers beside it.
        assert_eq!(book(Preset::Goals).headline().map(|shape| shape.entries), Some(3_000_000));
        assert_eq!(book(Preset::Full).headline().map(|shape| shape.entries), Some(3_000_000));
        let none = Cell::new(shape(KeySet::Random, 10), &[Subject::Memtable], &[Workload::Insert]);
        let mut document = Document::new(None, 1);
        document.cells.push(measured(&none, |_| 1.0, None));
        assert_eq!(Book::new(vec![document]).expect("cells").headline(), None);
    }

    #[test]
    fn curves_have_every_size_and_thread_count_once() {
        // Catches a point drawn twice where two presets measured it, and one that is left out.
        let book = book(Preset::Full);
        let sizes: Vec<_> = book.sizes(KeySet::Random).iter().map(|shape| shape.entries).collect();
        assert_eq!(sizes, [10_000, 100_000, 466_000, 600_000, 1_000_000, 3_000_000, 10_000_000]);
        let threads = book.threads(Access::Uniform);
        assert!(threads.iter().all(|shape| shape.entries == 1_000_000));
        assert_eq!(threads.iter().map(|shape| shape.threads).collect::<Vec<_>>(), [1, 2, 4, 8]);
    }

    #[test]
    fn the_cell_with_most_to_compare_is_shown() {
        // Catches a plot of our own subjects alone, where another cell has the peers as well.
        let book = book(Preset::Goals);
        let shape = book.headline().expect("a headline");
        let skip_list = book.best_skip_list(&shape, Workload::GetMany).expect("peers");
        assert_eq!(skip_list.workload, Workload::Get);
    }

    #[test]
    fn files_without_cells_are_refused() {
        // Catches an empty page that looks like a result.
        assert!(Book::new(vec![Document::new(None, 5)]).is_err());
    }
}
