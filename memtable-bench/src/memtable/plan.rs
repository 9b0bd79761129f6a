//! What a run will do. Whatever cannot be meant or cannot be done is refused here, before anything runs.

use std::path::PathBuf;
use std::time::Duration;

use super::arguments::MemtableArgs;
use super::input::VALUE_LEN;
use super::subjects::Subject;
use super::workload::Workload;
use crate::failure::Failure;
use crate::keys::KeySet;

/// More than machines have; each needs a stack.
const MOST_THREADS: usize = 1024;
/// What the greediest table takes beyond an entry's key and value, in bytes: two boxes, links, and what allocators round up.
const TABLE_OVERHEAD: u128 = 160;

/// What every round of a run has in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) keys: KeySet,
    pub(crate) entries: usize,
    pub(crate) threads: usize,
}

impl Shape {
    /// An estimate from above of what a round needs, in bytes.
    fn memory(&self) -> u128 {
        let key = self.keys.longest() as u128;
        let table = key + VALUE_LEN as u128 + TABLE_OVERHEAD;
        // The keys to store, those to look up, each with where it ends; and the order to compare with.
        let input = 2 * (key + 8) + 8;
        (table + input) * self.entries as u128
    }

    /// When to give a round up for hung: about a hundred times what the slowest subject needs.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(60) + Duration::from_micros(500).saturating_mul(self.entries.try_into().unwrap_or(u32::MAX))
    }
}

/// A run that can be done.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) shape: Shape,
    pub(crate) subjects: Vec<Subject>,
    pub(crate) workloads: Vec<Workload>,
    pub(crate) rounds: u32,
    pub(crate) json: Option<PathBuf>,
}

impl Plan {
    /// The run that `args` ask for, on a machine with `memory` bytes available, if it tells.
    pub(crate) fn new(args: &MemtableArgs, memory: Option<u64>) -> Result<Self, Failure> {
        let shape = Shape { keys: args.keys, entries: args.entries().get(), threads: args.threads.get() };
        let plan = Self {
            shape,
            subjects: subjects(args),
            workloads: workloads(args),
            rounds: args.rounds,
            json: args.json.clone(),
        };
        plan.check_names().and_then(|()| plan.check_threads()).and_then(|()| plan.check_memory(memory))?;
        plan.check_json()?;
        Ok(plan)
    }

    fn check_names(&self) -> Result<(), String> {
        if let Some(twice) = repeated(&self.subjects) {
            return Err(format!("subject {} is named twice", twice.name()));
        }
        if let Some(twice) = repeated(&self.workloads) {
            return Err(format!("workload {} is named twice", twice.name()));
        }
        let idle = |subject: &&Subject| !self.workloads.iter().any(|&workload| subject.can(workload));
        if let Some(idle) = self.subjects.iter().find(idle) {
            return Err(format!("subject {} can do none of the workloads", idle.name()));
        }
        let undone = |workload: &&Workload| !self.subjects.iter().any(|subject| subject.can(**workload));
        self.workloads
            .iter()
            .find(undone)
            .map_or(Ok(()), |workload| Err(format!("none of the subjects can do workload {}", workload.name())))
    }

    fn check_threads(&self) -> Result<(), String> {
        let Shape { entries, threads, .. } = self.shape;
        match threads.min(entries) {
            most if most < threads => {
                Err(format!("expected at most as many threads as entries, {entries}, found {threads}"))
            }
            _ if threads > MOST_THREADS => Err(format!("expected at most {MOST_THREADS} threads, found {threads}")),
            _ => Ok(()),
        }
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

    /// Better to learn now than after an hour that the result cannot be written.
    fn check_json(&self) -> Result<(), String> {
        let Some(path) = &self.json else { return Ok(()) };
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
}

impl From<String> for Failure {
    fn from(refusal: String) -> Self {
        Self::Usage(refusal)
    }
}

/// Those that are named, or else all that have something to do.
fn subjects(args: &MemtableArgs) -> Vec<Subject> {
    if !args.subjects.is_empty() {
        return args.subjects.clone();
    }
    let workloads = workloads(args);
    Subject::ALL.into_iter().filter(|subject| workloads.iter().any(|&workload| subject.can(workload))).collect()
}

/// Those that are named, or else all that one of the subjects can do, in the order in which rounds do them.
fn workloads(args: &MemtableArgs) -> Vec<Workload> {
    let named: &[Workload] = &args.workloads;
    if !named.is_empty() {
        return named.to_vec();
    }
    let subjects: &[Subject] = if args.subjects.is_empty() { &Subject::ALL } else { &args.subjects };
    let can = |workload: &Workload| subjects.iter().any(|subject| subject.can(*workload));
    Workload::ALL.into_iter().filter(can).collect()
}

fn repeated<T: PartialEq>(names: &[T]) -> Option<&T> {
    names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    const GIB: u64 = 1 << 30;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        args: MemtableArgs,
    }

    fn plan(line: &str, memory: Option<u64>) -> Result<Plan, String> {
        let args = CommandLine::try_parse_from(format!("bench {line}").split_whitespace());
        Plan::new(&args.map_err(|error| error.to_string())?.args, memory).map_err(|failure| failure.to_string())
    }

    #[track_caller]
    fn refused(line: &str, expected: &str) {
        let refusal = plan(line, Some(8 * GIB)).expect_err(line);
        assert!(refusal.contains(expected), "{line}: {refusal}");
    }

    #[test]
    fn everything_is_measured_unless_arguments_say_otherwise() {
        // Catches defaults that leave a subject out, and --quick that overrules what is asked for.
        let all = plan("", Some(8 * GIB)).expect("a plan");
        assert_eq!((&all.subjects[..], &all.workloads[..]), (&Subject::ALL[..], &Workload::ALL[..]));
        assert_eq!((all.shape, all.rounds), (Shape { keys: KeySet::Random, entries: 3_000_000, threads: 1 }, 5));
        assert_eq!(plan("--quick", None).map(|plan| plan.shape.entries), Ok(100_000));
        assert_eq!(plan("--quick --entries 2K", None).map(|plan| plan.shape.entries), Ok(2000));
    }

    #[test]
    fn what_is_not_named_is_what_the_named_can_do() {
        // Catches default subjects without work, and default workloads that nobody does.
        let searched = plan("--workloads get,reverse", None).expect("a plan").subjects;
        assert!(!searched.contains(&Subject::Vec) && searched.contains(&Subject::FastskipPublished));
        let appended = plan("--subjects vec", None).expect("a plan").workloads;
        assert_eq!(appended, [Workload::Insert, Workload::Sort]);
    }

    #[test]
    fn names_that_are_unknown_repeated_or_idle_are_refused() {
        // Catches a typing error that silently leaves a subject out.
        refused("--subjects fastskip,skl", "invalid value 'skl'");
        refused("--workloads delete", "invalid value 'delete'");
        refused("--keys urls", "invalid value 'urls'");
        refused("--subjects vec,vec", "subject vec is named twice");
        refused("--workloads get,scan,get", "workload get is named twice");
        refused("--subjects memtable,vec --workloads get", "subject vec can do none of the workloads");
        refused("--subjects memtable --workloads get,sort", "none of the subjects can do workload sort");
    }

    #[test]
    fn numbers_without_meaning_are_refused() {
        // Catches a run without rounds, which would print an empty table.
        refused("--rounds 0", "0 is not in 1..");
        refused("--entries 0", "expected at least 1, found 0");
        refused("--threads 0", "--threads");
        refused("--threads 11 --entries 10", "expected at most as many threads as entries, 10, found 11");
        refused("--threads 2000", "expected at most 1024 threads, found 2000");
    }

    #[test]
    fn sizes_that_do_not_fit_in_memory_are_refused() {
        // Catches a machine that swaps, or kills the bench, an hour later; also where the estimate itself overflows.
        refused("--entries 1000M", "do not fit in memory: a round needs up to");
        refused(&format!("--entries {}", usize::MAX), "do not fit in memory");
        assert!(plan(&format!("--entries {}", usize::MAX), None).is_err());
        assert!(plan("--entries 10M --keys paths", Some(16 * GIB)).is_ok());
        assert!(plan("--entries 10M --keys paths", Some(GIB)).is_err());
    }

    #[test]
    fn a_file_that_cannot_be_written_is_refused() {
        // Catches a result that is lost after the run.
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path().display();
        refused(&format!("--json {directory}"), "it is a directory");
        refused(&format!("--json {directory}/no/out.json"), "is not a directory");
        assert!(plan(&format!("--json {directory}/out.json"), None).is_ok());
        assert!(plan("--json out.json", None).is_ok());
    }
}
