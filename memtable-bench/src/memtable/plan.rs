//! What a run will do. Whatever cannot be meant or cannot be done is refused here, before anything runs.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use super::arguments::MemtableArgs;
use super::cell::{Cell, repeated};
use super::shape::Shape;
use super::subjects::Subject;
use crate::failure::Failure;

/// A run that can be done.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) preset: Option<&'static str>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) rounds: u32,
    pub(crate) json: Option<PathBuf>,
}

impl Plan {
    /// The run that `args` ask for, on a machine with `memory` bytes available, if it tells.
    pub(crate) fn new(args: &MemtableArgs, memory: Option<u64>) -> Result<Self, Failure> {
        let cells = match args.preset {
            Some(preset) => narrowed(preset.cells(), &args.subjects)?,
            None => matrix(args)?,
        };
        let plan = Self {
            preset: args.preset.map(|preset| preset.name()),
            cells: at_most(cells, args.at_most),
            rounds: args.rounds,
            json: args.json.clone(),
        };
        plan.check(memory)?;
        Ok(plan)
    }

    /// Refuses what cannot be done.
    pub(crate) fn check(&self, memory: Option<u64>) -> Result<(), Failure> {
        self.cells.iter().try_for_each(|cell| cell.check(memory))?;
        Ok(self.json.as_deref().map_or(Ok(()), can_write)?)
    }

    /// How often a subject is run.
    pub(crate) fn turns(&self) -> u64 {
        self.cells.iter().map(|cell| cell.subjects.len() as u64).sum::<u64>() * u64::from(self.rounds)
    }
}

/// Every combination of what the arguments name.
fn matrix(args: &MemtableArgs) -> Result<Vec<Cell>, String> {
    refuse_twice("--keys", &args.keys.iter().map(|keys| keys.name()).collect::<Vec<_>>())?;
    refuse_twice("--access", &args.access.iter().map(|access| access.name()).collect::<Vec<_>>())?;
    refuse_twice("--entries", &args.entries())?;
    refuse_twice("--threads", &args.threads)?;
    refuse_twice("--value-len", &args.value_len)?;
    let mut cells = Vec::new();
    for &keys in &args.keys {
        for &access in &args.access {
            for &value_len in &args.value_len {
                for entries in args.entries() {
                    for threads in &args.threads {
                        let (entries, threads) = (entries.get(), threads.get());
                        let (key_len, value_len) = (args.key_len as usize, value_len as usize);
                        let shape = Shape { keys, access, entries, threads, key_len, value_len };
                        cells.push(Cell::new(shape, &args.subjects, &args.workloads));
                    }
                }
            }
        }
    }
    Ok(cells)
}

/// A preset's cells with no other subjects than `subjects`, if any are named.
fn narrowed(cells: Vec<Cell>, subjects: &[Subject]) -> Result<Vec<Cell>, String> {
    if subjects.is_empty() {
        return Ok(cells);
    }
    refuse_twice("--subjects", &subjects.iter().map(|subject| subject.name()).collect::<Vec<_>>())?;
    let left = |mut cell: Cell| {
        cell.subjects.retain(|subject| subjects.contains(subject));
        cell.workloads.retain(|&workload| cell.subjects.iter().any(|subject| subject.can(workload)));
        (!cell.subjects.is_empty()).then_some(cell)
    };
    let cells: Vec<_> = cells.into_iter().filter_map(left).collect();
    if cells.is_empty() { Err("the preset has none of the subjects".into()) } else { Ok(cells) }
}

/// Cells that become the same are measured once.
fn at_most(cells: Vec<Cell>, most: Option<NonZeroUsize>) -> Vec<Cell> {
    let mut small: Vec<Cell> = Vec::new();
    for mut cell in cells {
        cell.shape.entries = most.map_or(cell.shape.entries, |most| most.get().min(cell.shape.entries));
        if !small.contains(&cell) {
            small.push(cell);
        }
    }
    small
}

fn refuse_twice<T: PartialEq + std::fmt::Display>(argument: &str, values: &[T]) -> Result<(), String> {
    repeated(values).map_or(Ok(()), |twice| Err(format!("{argument} names {twice} twice")))
}

/// Better to learn now than after an hour that the result cannot be written.
fn can_write(path: &Path) -> Result<(), String> {
    let directory = match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => ".".as_ref(),
    };
    if path.is_dir() {
        return Err(format!("cannot write {}: it is a directory", path.display()));
    }
    if !directory.is_dir() {
        return Err(format!("cannot write {}: {} is not a directory", path.display(), directory.display()));
    }
    Ok(())
}

impl From<String> for Failure {
    fn from(refusal: String) -> Self {
        Self::Usage(refusal)
    }
}

#[cfg(test)]
mod tests;
