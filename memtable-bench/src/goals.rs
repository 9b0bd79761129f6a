//! The project's goals for its tables, M1 to M10: the cells that they need, and what a run says of each.
//!
//! Every check compares medians of one run. A ratio to the fastest skip-list peer takes what that peer did in the same cell.

use std::fmt::{self, Display};

use crate::keys::KeySet;
use crate::memtable::Subject::{
    Btreemap, Fastskip, FastskipBatch, FastskipPublished, Memtable, MemtableBatch, Vec as Appended,
};
use crate::memtable::Workload::{FrozenScan, Get, GetMany, Insert, Miss, Mixed, Reverse, Scan, Sort};
use crate::memtable::{Access, Cell, KEY_LEN, Measured, Role, Shape, Subject, Workload, published, shape};
use crate::numbers::short;

const LARGE: usize = 3_000_000;
const SMALL: usize = 100_000;
const OF_MEMORY: usize = 1_000_000;
/// 64 MiB at 16 + 100 bytes and 28 beyond them.
const OF_64_MIB: usize = 466_000;

const ONE_BY_ONE: [Subject; 2] = [Fastskip, Memtable];
const BATCHED: [Subject; 2] = [FastskipBatch, MemtableBatch];
/// Within 20 % of the ratios asked for on random keys.
const WITHIN: f64 = 0.8;

/// One thing that a goal asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Check {
    pub(crate) goal: &'static str,
    pub(crate) what: String,
    pub(crate) bound: Bound,
    pub(crate) unit: Unit,
    /// `None` if the run has not what it takes.
    pub(crate) measured: Option<f64>,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Times,
    Nanoseconds,
    Bytes,
}

impl Unit {
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::Times => format!("{value:.2}x"),
            Self::Nanoseconds => format!("{value:.1} ns"),
            Self::Bytes => format!("{value:.1} B"),
        }
    }
}

impl Check {
    pub(crate) fn is_met(&self) -> Option<bool> {
        let measured = self.measured?;
        Some(match self.bound {
            Bound::AtLeast(least) => measured >= least,
            Bound::AtMost(most) => measured <= most,
        })
    }

    /// What was asked for.
    pub(crate) fn wanted(&self) -> String {
        match self.bound {
            Bound::AtLeast(least) => format!("≥ {}", self.unit.show(least)),
            Bound::AtMost(most) => format!("≤ {}", self.unit.show(most)),
        }
    }

    /// By how much it is better (above 0) or worse (below 0) than asked for, in per cent of that.
    pub(crate) fn margin(&self) -> Option<f64> {
        let measured = self.measured?;
        Some(match self.bound {
            Bound::AtLeast(least) => (measured / least - 1.0) * 100.0,
            Bound::AtMost(most) => (1.0 - measured / most) * 100.0,
        })
    }
}

/// What goals need, and no more.
pub(crate) fn cells() -> Vec<Cell> {
    let mut cells = vec![
        against_skip_lists(
            shape(KeySet::Random, LARGE),
            &[&ONE_BY_ONE[..], &BATCHED, &[Appended]].concat(),
            &[Insert, Sort, Get, GetMany, Miss, Scan, Reverse],
        ),
        against_skip_lists(shape(KeySet::Random, SMALL), &[&ONE_BY_ONE[..], &[Btreemap]].concat(), &[Insert]),
        Cell::new(shape(KeySet::Sequential, LARGE), &[&ONE_BY_ONE[..], &[Appended]].concat(), &[Insert]),
        Cell::new(shape(KeySet::Random, OF_64_MIB), &ONE_BY_ONE, &[FrozenScan]),
        Cell::new(shape(KeySet::Random, OF_MEMORY), &ONE_BY_ONE, &[Insert]),
        against_skip_lists(shape(KeySet::Paths, LARGE), &[ONE_BY_ONE, BATCHED].concat(), &[Insert, Get, GetMany, Miss]),
        against_skip_lists(zipfian(), &[ONE_BY_ONE, BATCHED].concat(), &[Get, GetMany]),
    ];
    cells.extend(scaling_cells());
    cells.extend(published());
    cells
}

fn zipfian() -> Shape {
    Shape { access: Access::Zipfian, ..shape(KeySet::Random, LARGE) }
}

/// The subjects named, and every skip list among the peers.
fn against_skip_lists(shape: Shape, subjects: &[Subject], workloads: &[Workload]) -> Cell {
    let is_peer = |subject: &Subject| subject.role() == Role::SkipListPeer && subject.holds(&shape);
    let peers = Subject::ALL.into_iter().filter(is_peer);
    Cell::new(shape, &[subjects, &peers.collect::<Vec<_>>()].concat(), workloads)
}

/// Each on one thread and on two.
fn scaling_cells() -> Vec<Cell> {
    let of = |keys, entries, workloads: &[Workload]| {
        let able = [ONE_BY_ONE, BATCHED].concat().into_iter().filter(|s| workloads.iter().any(|&w| s.can(w)));
        let able: Vec<_> = able.collect();
        [1, 2].map(|threads| Cell::new(Shape { threads, ..shape(keys, entries) }, &able, workloads))
    };
    [
        of(KeySet::Random, LARGE, &[Insert, Get, GetMany, Miss, Scan, Mixed]),
        of(KeySet::Random, SMALL, &[Insert]),
        of(KeySet::Sequential, LARGE, &[Insert]),
    ]
    .concat()
}

/// What `run` says of every goal.
pub(crate) fn checks(run: &[Measured]) -> Vec<Check> {
    let run = Run(run);
    let random = shape(KeySet::Random, LARGE);
    let mut checks = Vec::new();
    checks.extend(ONE_BY_ONE.map(|subject| run.skip_lists("M1", random, subject, Insert, 2.5)));
    checks.extend(BATCHED.map(|subject| run.skip_lists("M2", random, subject, Insert, 6.0)));
    checks.extend(BATCHED.map(|subject| run.appended_and_sorted(random, subject)));
    checks.extend(run.small_tables());
    checks.extend(ONE_BY_ONE.map(|subject| run.against_append(subject)));
    checks.extend(ONE_BY_ONE.map(|subject| run.skip_lists("M5", random, subject, Get, 2.0)));
    checks.extend(ONE_BY_ONE.map(|subject| run.skip_lists("M5", random, subject, Miss, 2.0)));
    checks.extend(BATCHED.map(|subject| run.skip_lists("M5", random, subject, GetMany, 5.0)));
    checks.extend(run.scans(random));
    checks.extend(run.scaling());
    checks.extend(run.memory());
    let paths = shape(KeySet::Paths, LARGE);
    checks.extend(ONE_BY_ONE.map(|subject| run.skip_lists("M9", paths, subject, Insert, 2.5 * WITHIN)));
    for shape in [paths, zipfian()] {
        checks.extend(ONE_BY_ONE.map(|subject| run.skip_lists("M9", shape, subject, Get, 2.0 * WITHIN)));
        checks.extend(BATCHED.map(|subject| run.skip_lists("M9", shape, subject, GetMany, 5.0 * WITHIN)));
    }
    checks.extend(ONE_BY_ONE.map(|subject| run.skip_lists("M9", paths, subject, Miss, 2.0 * WITHIN)));
    checks.extend(run.published_tables());
    checks
}

struct Run<'a>(&'a [Measured]);

impl Run<'_> {
    /// The first thing that a cell of this shape says.
    fn first<T>(&self, shape: Shape, say: impl Fn(&Measured) -> Option<T>) -> Option<T> {
        self.0.iter().filter(|cell| cell.shape == shape).find_map(say)
    }

    fn nanos(&self, shape: Shape, subject: Subject, workload: Workload) -> Option<f64> {
        self.first(shape, |cell| cell.nanos(subject, workload))
    }

    fn skip_lists(&self, goal: &'static str, shape: Shape, subject: Subject, workload: Workload, least: f64) -> Check {
        let measured = self.first(shape, |cell| cell.figure(subject, workload)?.times_best_skip_list_peer);
        let what = format!("{}, {}: to the fastest skip-list peer", does(subject, workload), brief(&shape));
        Check { goal, what, bound: Bound::AtLeast(least), unit: Unit::Times, measured }
    }

    fn appended_and_sorted(&self, shape: Shape, subject: Subject) -> Check {
        let measured = self.first(shape, |cell| {
            Some((cell.nanos(Appended, Insert)? + cell.nanos(Appended, Sort)?) / cell.nanos(subject, Insert)?)
        });
        let what = format!("{}, {}: to appending to a Vec and sorting it", does(subject, Insert), brief(&shape));
        Check { goal: "M2", what, bound: Bound::AtLeast(1.0), unit: Unit::Times, measured }
    }

    fn small_tables(&self) -> Vec<Check> {
        let shape = shape(KeySet::Random, SMALL);
        let to_tree = |subject| {
            let ratio = |cell: &Measured| Some(cell.nanos(Btreemap, Insert)? / cell.nanos(subject, Insert)?);
            let what = format!("{}, {}: to a BTreeMap behind an RwLock", does(subject, Insert), brief(&shape));
            let (bound, unit) = (Bound::AtLeast(1.0), Unit::Times);
            Check { goal: "M3", what, bound, unit, measured: self.first(shape, ratio) }
        };
        let to_lists = ONE_BY_ONE.map(|subject| self.skip_lists("M3", shape, subject, Insert, 1.8));
        to_lists.into_iter().chain(ONE_BY_ONE.map(to_tree)).collect()
    }

    fn against_append(&self, subject: Subject) -> Check {
        let shape = shape(KeySet::Sequential, LARGE);
        let ratio = |cell: &Measured| Some(cell.nanos(subject, Insert)? / cell.nanos(Appended, Insert)?);
        let what = format!("{}, {}: time in that of appending to a Vec", does(subject, Insert), brief(&shape));
        Check { goal: "M4", what, bound: Bound::AtMost(0.55), unit: Unit::Times, measured: self.first(shape, ratio) }
    }

    fn scans(&self, random: Shape) -> Vec<Check> {
        let of = |subject| {
            let frozen = shape(KeySet::Random, OF_64_MIB);
            let back = |cell: &Measured| Some(cell.nanos(subject, Reverse)? / cell.nanos(subject, Scan)?);
            [
                self.skip_lists("M6", random, subject, Scan, 3.0),
                Check {
                    goal: "M6",
                    what: format!("{}, {}: an entry of 64 MiB", does(subject, FrozenScan), brief(&frozen)),
                    bound: Bound::AtMost(40.0),
                    unit: Unit::Nanoseconds,
                    measured: self.nanos(frozen, subject, FrozenScan),
                },
                Check {
                    goal: "M6",
                    what: format!("{}, {}: time in that of a scan forward", does(subject, Reverse), brief(&random)),
                    bound: Bound::AtMost(2.0),
                    unit: Unit::Times,
                    measured: self.first(random, back),
                },
            ]
        };
        ONE_BY_ONE.map(of).concat()
    }

    fn scaling(&self) -> Vec<Check> {
        let cells = scaling_cells();
        let mut checks = Vec::new();
        for cell in cells.iter().filter(|cell| cell.shape.threads == 2) {
            for &workload in &cell.workloads {
                let able = cell.subjects.iter().filter(|subject| subject.can(workload));
                checks.extend(able.map(|&subject| self.two_threads(cell.shape, subject, workload)));
            }
        }
        checks
    }

    fn two_threads(&self, two: Shape, subject: Subject, workload: Workload) -> Check {
        let one = Shape { threads: 1, ..two };
        let alone = self.nanos(one, subject, workload);
        let measured = alone.zip(self.nanos(two, subject, workload)).map(|(alone, both)| alone / both);
        let what = format!("{}, {}: rate in that of one thread", does(subject, workload), brief(&two));
        Check { goal: "M7", what, bound: Bound::AtLeast(1.6), unit: Unit::Times, measured }
    }

    fn memory(&self) -> Vec<Check> {
        let shape = shape(KeySet::Random, OF_MEMORY);
        let of = |(subject, most)| {
            let overhead =
                |cell: &Measured| cell.memory.iter().find(|overhead| overhead.subject == subject)?.own_account;
            Check {
                goal: "M8",
                what: format!("{}, {}: beyond key and value", subject.name(), brief(&shape)),
                bound: Bound::AtMost(most),
                unit: Unit::Bytes,
                measured: self.first(shape, overhead),
            }
        };
        [(Memtable, 30.0), (Fastskip, 38.0)].map(of).to_vec()
    }

    fn published_tables(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        for Cell { shape, workloads, .. } in published() {
            for workload in workloads {
                checks.extend(ONE_BY_ONE.map(|subject| {
                    let ratio = |cell: &Measured| {
                        Some(cell.nanos(FastskipPublished, workload)? / cell.nanos(subject, workload)?)
                    };
                    let what = format!("{}, {}: to fastskip 0.1.1", does(subject, workload), brief(&shape));
                    let measured = self.first(shape, ratio);
                    Check { goal: "M10", what, bound: Bound::AtLeast(1.0), unit: Unit::Times, measured }
                }));
            }
        }
        checks
    }
}

fn does(subject: Subject, workload: Workload) -> String {
    format!("{} {}", subject.name(), workload.name())
}

fn brief(shape: &Shape) -> String {
    let Shape { keys, access, entries, threads, key_len, .. } = shape;
    let mut brief = format!("{} {}", keys.name(), short(*entries));
    if keys.has_one_length() && *key_len != KEY_LEN {
        brief += &format!(" of {key_len} B");
    }
    if *access == Access::Zipfian {
        brief += ", zipfian";
    }
    if *threads > 1 {
        brief += &format!(", {threads} threads");
    }
    brief
}

/// The goals' names, in their order.
pub(crate) const GOALS: [&str; 10] = ["M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8", "M9", "M10"];

/// What a goal came to: met if all its checks are, missed if one is, `None` if nothing is missed and something not measured.
pub(crate) fn verdict(goal: &str, checks: &[Check]) -> Option<bool> {
    let of_goal = checks.iter().filter(|check| check.goal == goal).map(Check::is_met);
    let (mut all, mut any) = (true, false);
    for met in of_goal {
        any = true;
        match met {
            Some(false) => return Some(false),
            Some(true) => {}
            None => all = false,
        }
    }
    (all && any).then_some(true)
}

/// Every goal with its checks, as text.
pub(crate) struct Summary<'a>(pub(crate) &'a [Measured]);

impl Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checks = checks(self.0);
        for goal in GOALS {
            writeln!(f, "\n{goal}: {}", word(verdict(goal, &checks)))?;
            for check in checks.iter().filter(|check| check.goal == goal) {
                let measured = check.measured.map_or_else(|| "-".into(), |measured| check.unit.show(measured));
                let margin = check.margin().map_or_else(String::new, |margin| format!("{margin:+.0} %"));
                let (wanted, met) = (check.wanted(), word(check.is_met()));
                writeln!(f, "  {met:<12} {measured:>9} {wanted:>11} {margin:>7}  {}", check.what)?;
            }
        }
        Ok(())
    }
}

/// A verdict in words.
pub(crate) fn word(met: Option<bool>) -> &'static str {
    match met {
        Some(true) => "met",
        Some(false) => "missed",
        None => "not measured",
    }
}

#[cfg(test)]
mod tests;
