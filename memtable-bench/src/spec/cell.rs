//! One cell of a run: subjects that take turns at the same workloads on tables of one shape.

use serde::{Deserialize, Serialize};

use super::shape::Shape;
use super::subject::Subject;
use super::workload::Workload;
use crate::text::name;

/// The most threads: more than machines have processors. Each thread needs a stack.
const MOST_THREADS: usize = 1024;

/// A cell: see the file's header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) shape: Shape,
    pub(crate) subjects: Vec<Subject>,
    pub(crate) workloads: Vec<Workload>,
}

impl Cell {
    /// The cell of this shape in which `subjects` do `workloads`. Without named subjects, all take part that can do one of the
    /// workloads within the time limit. Without named workloads, the cell has all that the subjects can do.
    pub(crate) fn new(shape: Shape, subjects: &[Subject], workloads: &[Workload]) -> Self {
        let takes_part = |subject: &Subject| match subjects {
            [] => (workloads.is_empty() || subject.can_any(workloads)) && subject.is_quick_enough(&shape),
            named => named.contains(subject),
        };
        let subjects: Vec<_> = Subject::of(shape.store).filter(takes_part).collect();
        let is_done = |workload: &Workload| match workloads {
            [] => subjects.iter().any(|subject| subject.can(*workload)),
            named => named.contains(workload),
        };
        let workloads = Workload::of(shape.store).filter(is_done).collect();
        Self { shape, subjects, workloads }
    }

    /// Keeps only the subjects in `named`; if that is empty, only the subjects of this build.
    pub(crate) fn narrow(&mut self, named: &[Subject]) {
        self.subjects.retain(|of| if named.is_empty() { of.missing_feature().is_none() } else { named.contains(of) });
        self.workloads.retain(|&workload| self.subjects.iter().any(|subject| subject.can(workload)));
    }

    /// Adds the subjects and workloads of another cell of the same shape. Neither cell is empty.
    pub(crate) fn absorb(&mut self, other: &Self) {
        let subjects = [&self.subjects[..], &other.subjects].concat();
        *self = Self::new(self.shape, &subjects, &[&self.workloads[..], &other.workloads].concat());
    }

    /// Refuses contradictory cells, and cells that do not fit in `memory` bytes, if that is known.
    pub(crate) fn check(&self, memory: Option<u64>) -> Result<(), String> {
        let Shape { entries, threads, .. } = self.shape;
        let refuse = |is_wrong: bool, why: String| if is_wrong { Err(why) } else { Ok(()) };
        let kind = if self.shape.store.is_table() { "tables" } else { "engines" };
        refuse(self.subjects.is_empty(), format!("none of the subjects is one of {kind}"))?;
        refuse(self.workloads.is_empty(), format!("none of the workloads is one of {kind}"))?;
        for &subject in &self.subjects {
            let name = name(subject);
            if let Some(feature) = subject.missing_feature() {
                return Err(format!("subject {name} was not built: add --features {feature} to cargo's arguments"));
            }
            refuse(!subject.can_any(&self.workloads), format!("subject {name} can do none of the workloads"))?;
            let too_many = format!("{entries} entries are too many for subject {name}: its inserts take O(n)");
            refuse(!subject.is_quick_enough(&self.shape), too_many)?;
        }
        for &workload in &self.workloads {
            let is_done = self.subjects.iter().any(|subject| subject.can(workload));
            refuse(!is_done, format!("none of the subjects can do workload {}", name(workload)))?;
            let one = format!("workload {} takes one thread, found {threads}", name(workload));
            refuse(threads > 1 && !workload.takes_threads(), one)?;
        }
        let most = entries.min(MOST_THREADS);
        let expected = format!("expected at most as many threads as entries, and {MOST_THREADS}: {most}");
        refuse(threads > most, format!("{expected}, found {threads}"))?;
        // If the available memory is unknown, the bound is the largest possible allocation.
        let available = memory.map_or(isize::MAX as u128, u128::from);
        // The workload insert-latency needs a table of its own.
        let others = u128::from(self.workloads.contains(&Workload::InsertLatency));
        let needed = self.shape.memory() + others * self.shape.table_memory();
        let amounts = format!("a round needs up to {} MiB, available are {} MiB", needed >> 20, available >> 20);
        refuse(needed > available, format!("{entries} entries do not fit in memory: {amounts}"))
    }
}
