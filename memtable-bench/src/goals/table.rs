//! The goals as data. A new goal is a name in [`GOALS`] and rows in [`rows`]; the cells to measure follow from the rows.

use crate::keys::KeySet;
use crate::spec::Subject::{
    Btreemap, Fastskip, FastskipBatch, FastskipPublished, Memtable, MemtableBatch, Vec as Appended,
};
use crate::spec::Workload::{FrozenScan, Get, GetMany, Insert, Miss, Mixed, Reverse, Scan, SeekOne, Sort};
use crate::spec::{Access, Cell, Role, Shape, Subject, Workload};

/// The goals' names, and what each asks for in a few words.
pub(crate) const GOALS: [(&str, &str); 10] = [
    ("M1", "random inserts, one by one"),
    ("M2", "random inserts in batches"),
    ("M3", "tables of 100K"),
    ("M4", "inserts in order"),
    ("M5", "lookups"),
    ("M6", "scans, forward, back and frozen"),
    ("M7", "two threads on two cores"),
    ("M8", "memory"),
    ("M9", "paths and skewed access"),
    ("M10", "small tables, 4 and 8 threads"),
];

/// One line of the goals: a check for each workload and subject that can do it.
pub(super) struct Row {
    pub(super) goal: &'static str,
    pub(super) subjects: Vec<Subject>,
    pub(super) workloads: Vec<Workload>,
    pub(super) shape: Shape,
    pub(super) measure: Measure,
    pub(super) bound: Bound,
}

/// What is measured. Every check compares medians of one run.
#[derive(Clone, Copy)]
pub(super) enum Measure {
    /// How many times as fast as the fastest skip-list peer in the same cell.
    ToSkipLists,
    /// How many times as fast as all of these together.
    FasterThan(&'static [Base], &'static str),
    /// The time divided by that of this.
    TimeIn(Base, &'static str),
    /// The rate divided by that of one thread.
    ToOneThread,
    Nanoseconds,
    /// Bytes an entry beyond key and value.
    Overhead,
}

/// What a check compares with. `None` is the subject or the workload of the check itself.
pub(super) type Base = (Option<Subject>, Option<Workload>);

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

use Bound::{AtLeast, AtMost};
use Measure::{FasterThan, Nanoseconds, Overhead, TimeIn, ToOneThread, ToSkipLists};

const ONE_BY_ONE: &[Subject] = &[Fastskip, Memtable];
const BATCHED: &[Subject] = &[FastskipBatch, MemtableBatch];
const OWN: &[Subject] = &[Fastskip, FastskipBatch, Memtable, MemtableBatch];

const RANDOM: Shape = Shape::new(KeySet::Random, 3_000_000);
const IN_ORDER: Shape = Shape::new(KeySet::Sequential, 3_000_000);
const PATHS: Shape = Shape::new(KeySet::Paths, 3_000_000);
const ZIPFIAN: Shape = Shape { access: Access::Zipfian, ..RANDOM };
const SMALL: Shape = Shape::new(KeySet::Random, 100_000);
const OF_MEMORY: Shape = Shape::new(KeySet::Random, 1_000_000);
/// 64 MiB at 16 + 100 bytes and 28 beyond them.
const OF_64_MIB: Shape = Shape::new(KeySet::Random, 466_000);

const SORTED_VEC: Measure =
    FasterThan(&[(Some(Appended), Some(Insert)), (Some(Appended), Some(Sort))], "appending to a Vec and sorting it");
const TREE: Measure = FasterThan(&[(Some(Btreemap), None)], "a BTreeMap behind an RwLock");
const APPENDING: Measure = TimeIn((Some(Appended), None), "appending to a Vec");
const FORWARD: Measure = TimeIn((None, Some(Scan)), "a scan forward");
const PUBLISHED: Measure = FasterThan(&[(Some(FastskipPublished), None)], "fastskip 0.1.1");

/// Every goal's rows. On paths and with skewed access, ratios may be 20 % lower than on random keys.
#[rustfmt::skip]
pub(super) fn rows() -> Vec<Row> {
    let row = |goal, subjects: &[Subject], workloads: &[Workload], shape, measure, bound| {
        Row { goal, subjects: subjects.to_vec(), workloads: workloads.to_vec(), shape, measure, bound }
    };
    let mut rows = vec![
        row("M1", ONE_BY_ONE, &[Insert], RANDOM, ToSkipLists, AtLeast(2.5)),
        row("M2", BATCHED, &[Insert], RANDOM, ToSkipLists, AtLeast(6.0)),
        row("M2", BATCHED, &[Insert], RANDOM, SORTED_VEC, AtLeast(1.0)),
        row("M3", ONE_BY_ONE, &[Insert], SMALL, ToSkipLists, AtLeast(1.8)),
        row("M3", ONE_BY_ONE, &[Insert], SMALL, TREE, AtLeast(1.0)),
        row("M4", ONE_BY_ONE, &[Insert], IN_ORDER, APPENDING, AtMost(0.55)),
        row("M5", ONE_BY_ONE, &[Get, Miss], RANDOM, ToSkipLists, AtLeast(2.0)),
        row("M5", BATCHED, &[GetMany], RANDOM, ToSkipLists, AtLeast(5.0)),
        row("M6", ONE_BY_ONE, &[Scan], RANDOM, ToSkipLists, AtLeast(3.0)),
        row("M6", ONE_BY_ONE, &[FrozenScan], OF_64_MIB, Nanoseconds, AtMost(40.0)),
        row("M6", ONE_BY_ONE, &[Reverse], RANDOM, FORWARD, AtMost(2.0)),
        row("M7", OWN, &[Insert, Get, GetMany, Miss, Scan, Mixed], RANDOM.threads(2), ToOneThread, AtLeast(1.6)),
        row("M7", OWN, &[Insert], SMALL.threads(2), ToOneThread, AtLeast(1.6)),
        row("M7", OWN, &[Insert], IN_ORDER.threads(2), ToOneThread, AtLeast(1.6)),
        row("M8", &[Memtable], &[Insert], OF_MEMORY, Overhead, AtMost(30.0)),
        row("M8", &[Fastskip], &[Insert], OF_MEMORY, Overhead, AtMost(38.0)),
        row("M9", ONE_BY_ONE, &[Insert], PATHS, ToSkipLists, AtLeast(2.0)),
        row("M9", ONE_BY_ONE, &[Get, Miss], PATHS, ToSkipLists, AtLeast(1.6)),
        row("M9", BATCHED, &[GetMany], PATHS, ToSkipLists, AtLeast(4.0)),
        row("M9", ONE_BY_ONE, &[Get], ZIPFIAN, ToSkipLists, AtLeast(1.6)),
        row("M9", BATCHED, &[GetMany], ZIPFIAN, ToSkipLists, AtLeast(4.0)),
    ];
    rows.extend(published().iter().map(|cell| row("M10", ONE_BY_ONE, &cell.workloads, cell.shape, PUBLISHED, AtLeast(1.0))));
    rows
}

/// The tables of the published crate's own benches: 10,000 entries on each thread, and seeks in tables of 1,000 and 10,000.
/// Values have 12 bytes there. M10 asks for them.
pub(crate) fn published() -> Vec<Cell> {
    let cell = |keys, entries, threads, workloads: &[Workload]| {
        let shape = Shape { key_len: 64, value_len: 12, ..Shape::new(keys, entries) };
        Cell::new(shape.threads(threads), &[], workloads)
    };
    let keys = [KeySet::Sequential, KeySet::Random];
    let alone =
        keys.map(|keys| [cell(keys, 1000, 1, &[SeekOne]), cell(keys, 10_000, 1, &[Insert, Get, Miss, SeekOne])]);
    let together = [4, 8].map(|threads| keys.map(|keys| cell(keys, 10_000 * threads, threads, &[Insert])));
    [alone, together].concat().concat()
}

/// The cells that the goals need. Rows of one shape share a cell.
pub(crate) fn cells() -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for row in rows().iter().filter(|row| row.goal != "M10") {
        let (mut subjects, mut workloads) = (row.subjects.clone(), row.workloads.clone());
        let mut shapes = vec![row.shape];
        let bases: &[Base] = match &row.measure {
            FasterThan(bases, _) => bases,
            TimeIn(base, _) => std::slice::from_ref(base),
            _ => &[],
        };
        subjects.extend(bases.iter().filter_map(|base| base.0));
        workloads.extend(bases.iter().filter_map(|base| base.1));
        match row.measure {
            ToSkipLists => {
                subjects.extend(Subject::all().iter().filter(|subject| is_peer(**subject, &row.shape)));
                workloads.extend(row.workloads.iter().map(|workload| workload.of_peers()));
            }
            ToOneThread => shapes.insert(0, row.shape.threads(1)),
            _ => {}
        }
        shapes.into_iter().for_each(|shape| {
            merge(&mut cells, Cell { shape, subjects: subjects.clone(), workloads: workloads.clone() })
        });
    }
    cells.extend(published());
    cells
}

fn is_peer(subject: Subject, shape: &Shape) -> bool {
    subject.role() == Role::SkipListPeer && subject.holds(shape) && subject.missing_feature().is_none()
}

/// Adds what `new` asks for to the cell of its shape.
fn merge(cells: &mut Vec<Cell>, new: Cell) {
    let index = cells.iter().position(|cell| cell.shape == new.shape).unwrap_or_else(|| {
        cells.push(Cell { subjects: Vec::new(), workloads: Vec::new(), ..new });
        cells.len() - 1
    });
    let Cell { subjects, workloads, .. } = &mut cells[index];
    let all = |subject: &Subject| subjects.contains(subject) || new.subjects.contains(subject);
    *subjects = Subject::all().iter().copied().filter(all).collect();
    let all = |workload: &Workload| workloads.contains(workload) || new.workloads.contains(workload);
    *workloads = Workload::all().iter().copied().filter(all).collect();
}
