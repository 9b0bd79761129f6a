//! What a round's process is told, as arguments, and what it answers, as one line of JSON.
//!
//! ```text
//! {"samples":[{"workload":"insert","operations":2000,"ns":123456},..],"memory":{"payload":232000,..}}
//! ```
//!
//! A round that goes wrong answers with its exit code and a message on stderr.

use std::env;
use std::process::{Command, Stdio};

use clap::Args;

use super::cell::Cell;
use super::round::Outcome;
use super::shape::Shape;
use super::subjects::Subject;
use super::workload::Workload;
use crate::process::{self, Failed};

/// The hidden command that runs a round.
pub(crate) const ROUND: &str = "memtable-round";

/// One round of one subject.
#[derive(Debug, Args)]
pub(crate) struct RoundArgs {
    #[arg(long, value_enum)]
    pub(super) subject: Subject,
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) workloads: Vec<Workload>,
    #[command(flatten)]
    pub(super) shape: Shape,
}

/// Runs a round of `subject` in a process of its own.
///
/// # Errors
/// Why there is no outcome.
pub(crate) fn run_in_process(cell: &Cell, subject: Subject) -> Result<Outcome, Failed> {
    let program = env::current_exe().map_err(|error| Failed::Because(format!("cannot find this program: {error}")))?;
    let workloads: Vec<_> = cell.workloads.iter().map(|workload| workload.name()).collect();
    let mut command = Command::new(program);
    command
        .arg(ROUND)
        .args(["--subject", subject.name(), "--workloads", &workloads.join(",")])
        .args(cell.shape.arguments())
        .stdin(Stdio::null());
    let answer = process::run(&mut command, cell.shape.patience())?;
    decode(&answer).ok_or_else(|| Failed::Because(format!("expected samples, found {:?}", answer.trim())))
}

/// The line that answers.
pub(crate) fn answer(outcome: &Outcome) -> Result<String, String> {
    serde_json::to_string(outcome).map_err(|error| format!("cannot answer: {error}"))
}

fn decode(answer: &str) -> Option<Outcome> {
    let outcome: Outcome = serde_json::from_str(answer).ok()?;
    outcome.samples.iter().all(|sample| sample.operations > 0).then_some(outcome)
}

#[cfg(test)]
mod tests {
    use super::super::round::{Memory, Sample};
    use super::super::shape::Access;
    use super::*;
    use crate::keys::KeySet;

    #[test]
    fn an_answer_is_read_as_it_was_given() {
        // Catches a name or a unit that the two sides spell differently.
        let samples = Workload::ALL.map(|workload| Sample { workload, operations: 7, ns: 12_345 }).to_vec();
        let memory = Memory { payload: 1, resident: None, used: Some(3) };
        let outcome = Outcome { samples, memory, cas_failures: Some(0) };
        let answer = answer(&outcome).expect("an answer");
        assert_eq!((answer.lines().count(), decode(&answer)), (1, Some(outcome)));
    }

    #[test]
    fn what_a_corrupted_process_may_print_is_no_answer() {
        // Catches a panic on the bytes of a subject that ran wild, and a division by no operations.
        let memory = r#""memory":{"payload":1}"#;
        let sample = r#"{"workload":"get","operations":0,"ns":1}"#;
        for wrong in ["", "{}", "nonsense", &format!(r#"{{"samples":[{{}}],{memory}}}"#)] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
        assert_eq!(decode(&format!(r#"{{"samples":[{sample}],{memory}}}"#)), None);
        assert!(decode(&format!(r#"{{"samples":[],{memory}}}"#)).is_some());
    }

    #[test]
    fn names_are_those_that_arguments_and_files_have() {
        // Catches a round that refuses its own arguments, and files that call things by other names than the tables do.
        use clap::ValueEnum;
        fn agrees<T: ValueEnum + PartialEq + std::fmt::Debug + serde::Serialize>(name: &str, value: &T) {
            assert_eq!(T::from_str(name, false).as_ref(), Ok(value));
            assert_eq!(serde_json::to_value(value).expect("a name"), name);
        }
        Subject::ALL.iter().for_each(|subject| agrees(subject.name(), subject));
        Workload::ALL.iter().for_each(|workload| agrees(workload.name(), workload));
        KeySet::value_variants().iter().for_each(|keys| agrees(keys.name(), keys));
        Access::value_variants().iter().for_each(|access| agrees(access.name(), access));
        assert_eq!(Subject::value_variants(), Subject::ALL);
        assert_eq!(Workload::value_variants(), Workload::ALL);
    }

    #[test]
    fn a_shape_is_understood_as_it_was_said() {
        // Catches an argument that is left out: the round would measure another table.
        use clap::Parser;
        #[derive(Parser)]
        struct CommandLine {
            #[command(flatten)]
            shape: Shape,
        }
        let (keys, access) = (KeySet::Paths, Access::Zipfian);
        let shape = Shape { keys, access, entries: 7, threads: 3, key_len: 64, value_len: 8 };
        let said = [vec!["round".to_owned()], shape.arguments()].concat();
        assert_eq!(CommandLine::try_parse_from(said).expect("understood").shape, shape);
    }
}
