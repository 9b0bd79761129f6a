//! What a round's process is told, as arguments, and what it answers, as one line of JSON.
//!
//! ```text
//! {"samples":[{"workload":"insert","operations":2000,"ns":123456},..]}
//! ```
//!
//! A round that goes wrong answers with its exit code and a message on stderr.

use std::env;
use std::num::NonZeroUsize;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::plan::{Plan, Shape};
use super::round::Sample;
use super::subjects::Subject;
use super::workload::Workload;
use crate::keys::KeySet;
use crate::process;

/// The hidden command that runs a round.
pub(crate) const ROUND: &str = "memtable-round";

/// One round of one subject.
#[derive(Debug, Args)]
pub(crate) struct RoundArgs {
    #[arg(long, value_enum)]
    pub(super) subject: Subject,
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) workloads: Vec<Workload>,
    #[arg(long, value_enum)]
    keys: KeySet,
    #[arg(long)]
    entries: NonZeroUsize,
    #[arg(long)]
    threads: NonZeroUsize,
}

impl RoundArgs {
    pub(super) fn shape(&self) -> Shape {
        Shape { keys: self.keys, entries: self.entries.get(), threads: self.threads.get() }
    }
}

/// Runs a round of `subject` in a process of its own.
///
/// # Errors
/// Why there are no samples.
pub(crate) fn run_in_process(plan: &Plan, subject: Subject) -> Result<Vec<Sample>, String> {
    let program = env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let workloads: Vec<_> = plan.workloads.iter().map(|workload| workload.name()).collect();
    let mut command = Command::new(program);
    command
        .arg(ROUND)
        .args(["--subject", subject.name(), "--keys", plan.shape.keys.name(), "--workloads", &workloads.join(",")])
        .args(["--entries", &plan.shape.entries.to_string(), "--threads", &plan.shape.threads.to_string()])
        .stdin(Stdio::null());
    let answer = process::run(&mut command, plan.shape.patience())?;
    decode(&answer).ok_or_else(|| format!("expected samples, found {:?}", answer.trim()))
}

/// The samples as a JSON array.
pub(crate) fn encode(samples: &[Sample]) -> Value {
    let sample = |sample: &Sample| {
        let ns = u64::try_from(sample.time.as_nanos()).unwrap_or(u64::MAX);
        json!({ "workload": sample.workload.name(), "operations": sample.operations, "ns": ns })
    };
    samples.iter().map(sample).collect()
}

/// The line that answers.
pub(crate) fn answer(samples: &[Sample]) -> String {
    json!({ "samples": encode(samples) }).to_string()
}

fn decode(answer: &str) -> Option<Vec<Sample>> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    let sample = |sample: &Value| {
        Some(Sample {
            workload: Workload::named(sample.get("workload")?.as_str()?)?,
            operations: sample.get("operations")?.as_u64().filter(|&operations| operations > 0)?,
            time: Duration::from_nanos(sample.get("ns")?.as_u64()?),
        })
    };
    answer.get("samples")?.as_array()?.iter().map(sample).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_was_given() {
        // Catches a name or a unit that the two sides spell differently.
        let samples =
            Workload::ALL.map(|workload| Sample { workload, operations: 7, time: Duration::from_nanos(12_345) });
        let answer = answer(&samples);
        assert_eq!((answer.lines().count(), decode(&answer)), (1, Some(samples.to_vec())));
    }

    #[test]
    fn what_a_corrupted_process_may_print_is_no_answer() {
        // Catches a panic on the bytes of a subject that ran wild, and a division by no operations.
        let sample = r#"{"workload":"get","operations":0,"ns":1}"#;
        for wrong in ["", "{}", "nonsense", r#"{"samples":[{}]}"#, &format!(r#"{{"samples":[{sample}]}}"#)] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn names_are_those_that_arguments_have() {
        // Catches a round that refuses its own arguments.
        use clap::ValueEnum;
        for subject in Subject::ALL {
            assert_eq!(Subject::from_str(subject.name(), false), Ok(subject));
        }
        for workload in Workload::ALL {
            assert_eq!(Workload::from_str(workload.name(), false), Ok(workload));
        }
        for keys in KeySet::value_variants() {
            assert_eq!(KeySet::from_str(keys.name(), false), Ok(*keys));
        }
    }
}
