//! The clients' operations with their results and times: a line of JSON for each operation, which `mini-engine/cluster/check` reads.
//!
//! `CLUSTER_HISTORY=DIR` keeps the histories: one file for each round.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use serde_json::json;

/// An operation on one key, whose values are numbers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Get,
    Set(i64),
    Incr,
    Del,
}

impl Op {
    /// The name of its command.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Set(_) => "set",
            Self::Incr => "incr",
            Self::Del => "del",
        }
    }
}

/// The outcome of an operation, as far as the client knows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// The value that GET found, or the number that the other commands replied.
    Returned(Option<i64>),
    /// The operation may have taken effect, or may take effect later.
    Unknown,
}

/// The history of a round.
pub(super) struct History {
    begun: Instant,
    file: Option<Mutex<BufWriter<File>>>,
}

impl History {
    pub(super) fn new(name: &str) -> Self {
        let file = std::env::var_os("CLUSTER_HISTORY").map(|directory| {
            fs::create_dir_all(&directory).expect("a directory");
            let path = PathBuf::from(directory).join(format!("{name}.jsonl"));
            Mutex::new(BufWriter::new(File::create(path).expect("a file")))
        });
        Self { begun: Instant::now(), file }
    }

    /// Nanoseconds since the round began.
    pub(super) fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// Records an operation that began at `call` and ended now with `outcome`.
    pub(super) fn record(&self, client: usize, key: &str, op: Op, call: u64, outcome: Outcome) {
        let Some(file) = &self.file else { return };
        let mut line = json!({ "client": client, "op": op.name(), "key": key, "call": call });
        if let Op::Set(value) = op {
            line["value"] = json!(value);
        }
        if let Outcome::Returned(result) = outcome {
            line["return"] = json!(self.now());
            line["result"] = json!(result);
        }
        writeln!(file.lock().expect("a file"), "{line}").expect("write");
    }

    /// Writes the last lines.
    pub(super) fn end(self) {
        self.file.into_iter().for_each(|file| file.lock().expect("a file").flush().expect("write"));
    }
}
