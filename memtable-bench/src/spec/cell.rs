//! One cell of a run: subjects that take turns at the same workloads on tables of one shape.

use super::shape::Shape;
use super::subject::Subject;
use super::workload::Workload;
use crate::text::name;

/// More than machines have. Each thread needs a stack.
const MOST_THREADS: usize = 1024;

/// See the file's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) shape: Shape,
    pub(crate) subjects: Vec<Subject>,
    pub(crate) workloads: Vec<Workload>,
}

impl Cell {
    /// The cell of this shape in which the named subjects do the named workloads. Where no subject is named, all take part
    /// that were built, can do one of the workloads and end in time; where no workload is named, all that the subjects can do.
    pub(crate) fn new(shape: Shape, subjects: &[Subject], workloads: &[Workload]) -> Self {
        let takes_part = |subject: &Subject| match subjects {
            [] => (workloads.is_empty() || subject.can_any(workloads)) && subject.is_measurable(&shape),
            named => named.contains(subject),
        };
        let subjects: Vec<_> = Subject::all().iter().copied().filter(takes_part).collect();
        let is_done = |workload: &Workload| match workloads {
            [] => subjects.iter().any(|subject| subject.can(*workload)),
            named => named.contains(workload),
        };
        let workloads = Workload::all().iter().copied().filter(is_done).collect();
        Self { shape, subjects, workloads }
    }

    /// Refuses what makes no sense, and what does not fit in `memory` bytes, if that is known.
    pub(crate) fn check(&self, memory: Option<u64>) -> Result<(), String> {
        let Shape { entries, threads, .. } = self.shape;
        for &subject in &self.subjects {
            let name = name(subject);
            if let Some(feature) = subject.missing_feature() {
                return Err(format!("subject {name} was not built: add --features {feature} to cargo's arguments"));
            }
            if !subject.can_any(&self.workloads) {
                return Err(format!("subject {name} can do none of the workloads"));
            }
            if !subject.is_measurable(&self.shape) {
                return Err(format!("{entries} entries are too many for subject {name}: its inserts take O(n)"));
            }
        }
        let is_undone = |workload: &&Workload| !self.subjects.iter().any(|subject| subject.can(**workload));
        if let Some(&workload) = self.workloads.iter().find(is_undone) {
            return Err(format!("none of the subjects can do workload {}", name(workload)));
        }
        let most = entries.min(MOST_THREADS);
        if threads > most {
            return Err(format!(
                "expected at most as many threads as entries, and {MOST_THREADS}: {most}, found {threads}"
            ));
        }
        // A system that does not tell still has no more than an allocation may be long.
        let available = memory.map_or(isize::MAX as u128, u128::from);
        let needed = self.shape.memory();
        if needed > available {
            let (needed, available) = (needed >> 20, available >> 20);
            return Err(format!(
                "{entries} entries do not fit in memory: a round needs up to {needed} MiB, available are {available} MiB"
            ));
        }
        Ok(())
    }
}
