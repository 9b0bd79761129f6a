//! What the process of a round is told, as an argument, and what it answers: each a line of JSON.
//!
//! ```text
//! memtable-bench memtable-round {"subject":"memtable","workloads":["insert"],"shape":{"keys":"random",..}}
//! {"samples":[{"workload":"insert","operations":2000,"ns":123456},..],"memory":{"payload":232000,..}}
//! ```
//!
//! A round that goes wrong answers with its exit code and a message on stderr.

use std::env;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::process::{self, ChildError};
use crate::round::{self, Outcome};
use crate::spec::{Cell, Shape, Subject, Workload};

/// The hidden command that runs a round.
pub(crate) const ROUND: &str = "memtable-round";

/// One round of one subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Request {
    subject: Subject,
    workloads: Vec<Workload>,
    shape: Shape,
}

/// Runs a round of `subject` in a process of its own.
///
/// # Errors
/// Why there is no outcome.
pub(crate) fn run_in_process(cell: &Cell, subject: Subject) -> Result<Outcome, ChildError> {
    let program =
        env::current_exe().map_err(|error| ChildError::Failed(format!("cannot find this program: {error}")))?;
    let request = encode(&Request { subject, workloads: cell.workloads.clone(), shape: cell.shape });
    let mut command = Command::new(program);
    command.arg(ROUND).arg(request.map_err(ChildError::Failed)?).stdin(Stdio::null());
    let answer = process::run(&mut command, cell.shape.time_limit())?;
    decode(&answer).ok_or_else(|| ChildError::Failed(format!("expected samples, found {:?}", answer.trim())))
}

/// Runs the round that `request` asks for in this process. Returns the answer.
pub(crate) fn answer(request: &str) -> Result<String, String> {
    let Request { subject, workloads, shape } =
        serde_json::from_str(request).map_err(|error| format!("expected a request, found {request:?}: {error}"))?;
    encode(&round::run(subject, shape, &workloads)?)
}

fn encode(value: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(value).map_err(|error| format!("cannot encode: {error}"))
}

fn decode(answer: &str) -> Option<Outcome> {
    let outcome: Outcome = serde_json::from_str(answer).ok()?;
    outcome.samples.iter().all(|sample| sample.operations > 0).then_some(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeySet;
    use crate::round::{Memory, Sample};
    use crate::spec::Access;
    use crate::text::name;

    #[test]
    fn requests_and_answers_are_one_line_and_read_as_they_were_given() {
        // Catches a name or a unit that the two sides spell differently: the round would measure another table.
        let samples = Workload::all().iter().map(|&workload| Sample { workload, operations: 7, ns: 12_345 }).collect();
        let memory = Memory { payload: 1, resident: None, used: Some(3) };
        let outcome = Outcome { samples, memory, cas_failures: Some(0) };
        let answer = encode(&outcome).expect("an answer");
        assert_eq!((answer.lines().count(), decode(&answer)), (1, Some(outcome)));
        let (keys, access) = (KeySet::Paths, Access::Zipfian);
        let shape = Shape { keys, access, entries: 7, threads: 3, key_len: 64, value_len: 8 };
        let request = Request { subject: Subject::Vec, workloads: Workload::all().to_vec(), shape };
        assert_eq!(serde_json::from_str::<Request>(&encode(&request).expect("text")).expect("a request"), request);
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
    fn arguments_and_files_use_the_same_names() {
        // Catches files that call things by other names than arguments and tables do.
        fn agree<T: clap::ValueEnum + Serialize>() {
            for value in T::value_variants() {
                assert_eq!(serde_json::to_value(value).expect("a name"), name(value.clone()));
            }
        }
        agree::<Subject>();
        agree::<Workload>();
        agree::<KeySet>();
        agree::<Access>();
    }
}
