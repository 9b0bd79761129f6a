//! Writes a run as JSON: where it comes from, what was asked, every round, and the figures.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::exchange::encode;
use super::figures::{Figure, Rounds};
use super::input::VALUE_LEN;
use super::plan::Plan;
use super::subjects::Subject;
use crate::random::SEED;
use crate::{host, origin};

/// The run as one JSON object.
pub(crate) fn document(plan: &Plan, results: &[(Subject, Rounds)], figures: &[Figure]) -> Value {
    json!({
        "benchmark": "memtable",
        "date": origin::now(),
        "commit": origin::commit(),
        "optimised": origin::OPTIMISED,
        "machine": {
            "cores": host::cores(),
            "model": host::model(),
            "os": std::env::consts::OS,
            "architecture": std::env::consts::ARCH,
        },
        "parameters": {
            "keys": plan.shape.keys.name(),
            "entries": plan.shape.entries,
            "threads": plan.shape.threads,
            "rounds": plan.rounds,
            "value_bytes": VALUE_LEN,
            "seed": SEED,
            "subjects": plan.subjects.iter().map(|subject| subject.name()).collect::<Vec<_>>(),
            "workloads": plan.workloads.iter().map(|workload| workload.name()).collect::<Vec<_>>(),
        },
        "rounds": rounds(results),
        "figures": figures.iter().map(figure).collect::<Vec<_>>(),
    })
}

/// Every round, in the order in which they ran.
fn rounds(results: &[(Subject, Rounds)]) -> Vec<Value> {
    let longest = results.iter().map(|(_, rounds)| rounds.len()).max().unwrap_or(0);
    let turn = |round: usize| {
        results.iter().filter_map(move |(subject, rounds)| {
            Some(match rounds.get(round)? {
                Ok(samples) => json!({ "round": round + 1, "subject": subject.name(), "samples": encode(samples) }),
                Err(reason) => json!({ "round": round + 1, "subject": subject.name(), "failed": reason }),
            })
        })
    };
    (0..longest).flat_map(turn).collect()
}

fn figure(figure: &Figure) -> Value {
    json!({
        "workload": figure.workload.name(),
        "subject": figure.subject.name(),
        "ns_per_operation": figure.nanos.map(|nanos| json!({
            "median": nanos.median,
            "min": nanos.min,
            "max": nanos.max,
        })),
        "times_best_skip_list_peer": figure.times_skip_list,
        "times_best_peer": figure.times_peer,
    })
}

/// Writes `document` to `path`, which holds either what it held or all of it, even if this process is stopped meanwhile.
pub(crate) fn write(document: &Value, path: &Path) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    fs::write(&unfinished, format!("{document:#}\n"))?;
    fs::rename(&unfinished, path)
}
