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
        let takes_part = |subject: &Subject| {
            let able = workloads.is_empty() || subject.can_any(workloads);
            able && subject.holds(&shape) && subject.missing_feature().is_none()
        };
        let subjects = match subjects {
            [] => Subject::all().iter().copied().filter(takes_part).collect(),
            named => named.to_vec(),
        };
        let done = |workload: &Workload| subjects.iter().any(|subject| subject.can(*workload));
        let workloads = match workloads {
            [] => Workload::all().iter().copied().filter(done).collect(),
            named => named.to_vec(),
        };
        Self { shape, subjects, workloads }
    }

    /// Refuses what makes no sense, and what does not fit in `memory` bytes, if that is known.
    pub(crate) fn check(&self, memory: Option<u64>) -> Result<(), String> {
        self.check_names()?;
        let Shape { entries, threads, .. } = self.shape;
        if threads > entries {
            return Err(format!("expected at most as many threads as entries, {entries}, found {threads}"));
        }
        if threads > MOST_THREADS {
            return Err(format!("expected at most {MOST_THREADS} threads, found {threads}"));
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

    fn check_names(&self) -> Result<(), String> {
        if let Some(&twice) = repeated(&self.subjects) {
            return Err(format!("subject {} is named twice", name(twice)));
        }
        if let Some(&twice) = repeated(&self.workloads) {
            return Err(format!("workload {} is named twice", name(twice)));
        }
        for &subject in &self.subjects {
            let (entries, name) = (self.shape.entries, name(subject));
            if let Some(feature) = subject.missing_feature() {
                return Err(format!("subject {name} was not built: add --features {feature} to cargo's arguments"));
            }
            if !subject.can_any(&self.workloads) {
                return Err(format!("subject {name} can do none of the workloads"));
            }
            if !subject.holds(&self.shape) {
                return Err(format!("{entries} entries are too many for subject {name}: its inserts take O(n)"));
            }
        }
        let undone = |workload: &&Workload| !self.subjects.iter().any(|subject| subject.can(**workload));
        match self.workloads.iter().find(undone) {
            Some(&workload) => Err(format!("none of the subjects can do workload {}", name(workload))),
            None => Ok(()),
        }
    }
}

/// The first item that comes a second time.
pub(crate) fn repeated<T: PartialEq>(items: &[T]) -> Option<&T> {
    items.iter().enumerate().find(|(index, item)| items[..*index].contains(item)).map(|(_, item)| item)
}
