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

use serde_json::json;

use crate::process::{self, ChildError};
use crate::round::{self, Outcome, Request};
use crate::spec::{Cell, Subject};

/// The hidden command that runs a round.
pub(crate) const ROUND: &str = "memtable-round";

/// Runs a round of `subject` in a process of its own.
///
/// # Errors
/// Why there is no outcome.
pub(crate) fn run_in_process(cell: &Cell, subject: Subject) -> Result<Outcome, ChildError> {
    let program = env::current_exe().map_err(|error| ChildError::Failed(error.to_string()))?;
    let request = json!({ "subject": subject, "workloads": cell.workloads, "shape": cell.shape });
    let mut command = Command::new(program);
    command.args([ROUND, &request.to_string()]).stdin(Stdio::null());
    let answer = process::run(&mut command, cell.shape.time_limit())?;
    decode(&answer).ok_or_else(|| ChildError::Failed(format!("expected samples, found {:?}", answer.trim())))
}

/// Runs the round that `request` asks for in this process. Returns the answer.
pub(crate) fn answer(request: &str) -> Result<String, String> {
    let wrong = |error| format!("expected a request, found {request:?}: {error}");
    let request: Request = serde_json::from_str(request).map_err(wrong)?;
    serde_json::to_string(&round::run(request)?).map_err(|error| error.to_string())
}

fn decode(answer: &str) -> Option<Outcome> {
    let outcome: Outcome = serde_json::from_str(answer).ok()?;
    outcome.samples.iter().all(|sample| sample.operations > 0).then_some(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_corrupted_process_may_print_is_no_answer() {
        // Catches a panic on the bytes of a subject that ran wild, and a division by no operations.
        let answer =
            |samples: &str| decode(&format!(r#"{{"samples":[{samples}],"memory":{{"payload":1}}}}"#)).is_some();
        let right = r#"{"workload":"get","operations":1,"ns":1}"#;
        assert!(answer("") && answer(right) && !answer("{}") && !answer(&right.replace(":1,", ":0,")));
        assert!(["", "{}", "nonsense"].into_iter().all(|wrong| decode(wrong).is_none()));
    }
}
