//! One cell of a run: subjects that take turns at the same workloads on tables of the same shape.

use super::shape::Shape;
use super::subjects::Subject;
use super::workload::Workload;

/// More than machines have; each needs a stack.
const MOST_THREADS: usize = 1024;

/// See the file's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) shape: Shape,
    pub(crate) subjects: Vec<Subject>,
    pub(crate) workloads: Vec<Workload>,
}

impl Cell {
    /// The cell of this shape in which all that is named does all that is named. Where nothing is named, it is all that has
    /// something to do with the rest and does not take for ever over it.
    pub(crate) fn new(shape: Shape, subjects: &[Subject], workloads: &[Workload]) -> Self {
        let able = |subject: &Subject| subject.holds(&shape) && (workloads.is_empty() || can_any(*subject, workloads));
        let subjects = match subjects {
            [] => Subject::ALL.into_iter().filter(able).collect(),
            named => named.to_vec(),
        };
        let done = |workload: &Workload| subjects.iter().any(|subject| subject.can(*workload));
        let workloads = match workloads {
            [] => Workload::ALL.into_iter().filter(done).collect(),
            named => named.to_vec(),
        };
        Self { shape, subjects, workloads }
    }

    /// Refuses what cannot be meant or done with `memory` bytes, if that is known.
    pub(crate) fn check(&self, memory: Option<u64>) -> Result<(), String> {
        self.check_names().and_then(|()| self.check_threads()).and_then(|()| self.check_memory(memory))
    }

    fn check_names(&self) -> Result<(), String> {
        if let Some(twice) = repeated(&self.subjects) {
            return Err(format!("subject {} is named twice", twice.name()));
        }
        if let Some(twice) = repeated(&self.workloads) {
            return Err(format!("workload {} is named twice", twice.name()));
        }
        if let Some(idle) = self.subjects.iter().find(|subject| !can_any(**subject, &self.workloads)) {
            return Err(format!("subject {} can do none of the workloads", idle.name()));
        }
        if let Some(small) = self.subjects.iter().find(|subject| !subject.holds(&self.shape)) {
            let (entries, name) = (self.shape.entries, small.name());
            return Err(format!("{entries} entries are too many for subject {name}: its inserts take O(n)"));
        }
        let undone = |workload: &&Workload| !self.subjects.iter().any(|subject| subject.can(**workload));
        self.workloads
            .iter()
            .find(undone)
            .map_or(Ok(()), |workload| Err(format!("none of the subjects can do workload {}", workload.name())))
    }

    fn check_threads(&self) -> Result<(), String> {
        let Shape { entries, threads, .. } = self.shape;
        if threads > entries {
            return Err(format!("expected at most as many threads as entries, {entries}, found {threads}"));
        }
        if threads > MOST_THREADS {
            return Err(format!("expected at most {MOST_THREADS} threads, found {threads}"));
        }
        Ok(())
    }

    fn check_memory(&self, memory: Option<u64>) -> Result<(), String> {
        // A system that does not tell can still not have more than an allocation may be long.
        let available = memory.map_or(isize::MAX as u128, u128::from);
        let needed = self.shape.memory();
        if needed <= available {
            return Ok(());
        }
        Err(format!(
            "{} entries do not fit in memory: a round needs up to {} MiB, available are {} MiB",
            self.shape.entries,
            needed >> 20,
            available >> 20
        ))
    }
}

fn can_any(subject: Subject, workloads: &[Workload]) -> bool {
    workloads.iter().any(|&workload| subject.can(workload))
}

pub(super) fn repeated<T: PartialEq>(names: &[T]) -> Option<&T> {
    names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)).map(|(_, name)| name)
}
