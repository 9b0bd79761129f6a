//! The goals as data: `goals.json` holds them, and the cells to measure follow from it. A shape's fields that it does not name are
//! those of three million entries on one thread.

use std::slice::from_ref;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::spec::{Cell, Role, Shape, Subject, Workload};

/// Every goal, in order.
pub(crate) static GOALS: LazyLock<Vec<Goal>> =
    LazyLock::new(|| serde_json::from_str(include_str!("goals.json")).expect("tests have read it"));

#[derive(Deserialize)]
pub(crate) struct Goal {
    pub(crate) name: String,
    /// In a few words.
    pub(crate) asks: String,
    pub(super) rows: Vec<Row>,
}

/// Checks for each shape, workload and subject that can do it. Two threads store keys in order in ranges of their own.
#[derive(Deserialize)]
pub(super) struct Row {
    pub(super) subjects: Vec<Subject>,
    pub(super) workloads: Vec<Workload>,
    pub(super) shapes: Vec<Shape>,
    pub(super) checks: Vec<(Measure, Bound)>,
}

/// What is measured. Every check compares medians of one run.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Measure {
    /// How many times as fast as the fastest skip-list peer in the same cell.
    TimesSkipLists,
    /// How many times as fast as this.
    Times(Base),
    /// The time divided by that of all of these together.
    TimeIn(Vec<Base>),
    /// The rate divided by that of one thread.
    TimesOneThread,
}

/// What a check compares with. `None` is the subject of the check itself, or its workload as peers do it.
pub(super) type Base = (Option<Subject>, Option<Workload>);

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Measure {
    pub(super) fn bases(&self) -> &[Base] {
        match self {
            Self::Times(base) => from_ref(base),
            Self::TimeIn(bases) => bases,
            _ => &[],
        }
    }
}

/// The tables of the published crate's own benches, where values have 12 bytes: the last goal asks for them. All subjects take
/// part.
pub(crate) fn published() -> Vec<Cell> {
    let cell = |row: &Row, shape: &Shape| Cell::new(*shape, &[], &row.workloads);
    let rows = GOALS.last().into_iter().flat_map(|goal| &goal.rows);
    rows.flat_map(|row| row.shapes.iter().map(move |shape| cell(row, shape))).collect()
}

/// The cells that the goals need. Rows of one shape share a cell.
pub(crate) fn cells() -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for row in GOALS[..GOALS.len() - 1].iter().flat_map(|goal| &goal.rows) {
        for ((measure, _), &shape) in row.checks.iter().flat_map(|check| row.shapes.iter().map(move |of| (check, of))) {
            let is_peer = |subject: &&Subject| subject.role() == Role::SkipListPeer && subject.is_measurable(&shape);
            let peers = Subject::all().iter().filter(|_| matches!(measure, Measure::TimesSkipLists)).filter(is_peer);
            let bases = || measure.bases().iter();
            let subjects = row.subjects.iter().copied().chain(bases().filter_map(|base| base.0)).chain(peers.copied());
            let subjects: Vec<_> = subjects.collect();
            let of_peers = row.workloads.iter().flat_map(|workload| [*workload, workload.of_peers()]);
            let workloads: Vec<_> = of_peers.chain(bases().filter_map(|base| base.1)).collect();
            let alone = matches!(measure, Measure::TimesOneThread).then(|| shape.threads(1));
            for shape in alone.into_iter().chain([shape]) {
                match cells.iter_mut().find(|cell| cell.shape == shape) {
                    Some(cell) => {
                        cell.subjects.extend(&subjects);
                        cell.workloads.extend(&workloads);
                    }
                    None => cells.push(Cell { shape, subjects: subjects.clone(), workloads: workloads.clone() }),
                }
            }
        }
    }
    let all = cells.iter().map(|Cell { shape, subjects, workloads }| Cell::new(*shape, subjects, workloads));
    all.chain(published()).collect()
}
