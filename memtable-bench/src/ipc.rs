//! Runs a round in a process of its own. The process gets a line of JSON as its argument, and prints one as its answer.
//!
//! ```text
//! memtable-bench memtable-round {"subject":"memtable","workloads":["insert"],"shape":{"keys":"random",..}}
//! [{"workload":"insert","operations":2000,"ns":123456,"facts":{"own-overhead":31.2}},..]
//! ```
//!
//! A failed round ends with an exit code and a message on stderr.

use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use std::{env, io, thread};

use crate::round::{self, Request, Sample};
use crate::spec::{Cell, Subject};

/// The hidden command that runs a round.
pub(crate) const ROUND: &str = "memtable-round";

/// The reason why a round has no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChildError {
    #[error("did not end within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("{0}")]
    Failed(String),
}

/// Runs a round of `subject` in a process of its own.
pub(crate) fn run_in_process(cell: &Cell, subject: Subject) -> Result<Vec<Sample>, ChildError> {
    let request = Request { subject, workloads: cell.workloads.clone(), shape: cell.shape };
    let request = serde_json::to_string(&request).map_err(io::Error::from).map_err(failed)?;
    let mut command = Command::new(env::current_exe().map_err(failed)?);
    command.args([ROUND, &request]).stdin(Stdio::null());
    let answer = answer_of(&mut command, cell.shape.time_limit())?;
    decode(&answer).ok_or_else(|| ChildError::Failed(format!("expected samples, found {:?}", answer.trim())))
}

/// Runs the round that `request` describes in this process. Returns the answer.
pub(crate) fn answer(request: &str) -> Result<String, String> {
    let wrong = |error| format!("expected a request, found {request:?}: {error}");
    let request: Request = serde_json::from_str(request).map_err(wrong)?;
    serde_json::to_string(&round::run(&request)?).map_err(|error| error.to_string())
}

fn decode(answer: &str) -> Option<Vec<Sample>> {
    let samples: Vec<Sample> = serde_json::from_str(answer).ok()?;
    (!samples.is_empty() && samples.iter().all(|sample| sample.operations > 0)).then_some(samples)
}

/// Returns what `command` prints to stdout, if it exits with 0 within `limit`. A process that takes longer is killed.
fn answer_of(command: &mut Command, limit: Duration) -> Result<String, ChildError> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let pipes = (read(child.stdout.take()), read(child.stderr.take()));
    // The pipe ends with the process.
    let Ok(stdout) = pipes.0.recv_timeout(limit) else {
        child.kill().and_then(|()| child.wait()).map_err(failed)?;
        return Err(ChildError::TimedOut(limit));
    };
    let status = child.wait().map_err(failed)?;
    let stderr = pipes.1.recv().unwrap_or_default();
    if status.success() { Ok(stdout) } else { Err(ChildError::Failed(reason(status, &stderr))) }
}

fn failed(error: io::Error) -> ChildError {
    ChildError::Failed(format!("cannot run it: {error}"))
}

/// Reads a pipe to its end on a thread of its own, and sends the text.
fn read(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // After an error, the bytes read so far are the result.
        drop(pipe.map(|mut pipe| pipe.read_to_end(&mut bytes)));
        drop(send.send(String::from_utf8_lossy(&bytes).into_owned()));
    });
    receive
}

/// The way the process ended, and the most useful line of its stderr: a panic's message, or else the last line.
fn reason(status: ExitStatus, stderr: &str) -> String {
    let mut lines = stderr.lines().filter(|line| !line.trim().is_empty());
    let panic = lines.clone().skip_while(|line| !line.contains("panicked at")).nth(1);
    let line = panic.or_else(|| lines.next_back());
    line.map_or_else(|| status.to_string(), |line| format!("{status}: {}", line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_corrupted_process_may_print_is_no_answer() {
        // Catches a panic on the output of a subject that was corrupted, and a division by no operations.
        let right = r#"[{"workload":"get","operations":1,"ns":1}]"#;
        assert!(decode(right).is_some());
        assert!(
            ["", "[]", "{}", "nonsense", &right.replace(":1,", ":0,")].into_iter().all(|wrong| decode(wrong).is_none())
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_process_has_an_answer_or_a_reason_and_is_killed_when_it_never_ends() {
        // Catches stderr mixed into an answer, a crashed round counted as one without samples, a reason without the cause, and
        // a run that hangs with its subject.
        let shell = |script: &str, limit| {
            let ended = answer_of(Command::new("sh").args(["-c", script]).stdin(Stdio::null()), limit);
            ended.map_err(|error| error.to_string())
        };
        let panic = "echo \"'main' panicked at x.rs:1:1:\" >&2; echo no room >&2; echo note: run with >&2; exit 101";
        for (script, expected) in [
            ("echo noise >&2; echo result", Ok("result\n")),
            ("echo half; echo why >&2; exit 3", Err("exit status: 3: why")),
            (panic, Err("exit status: 101: no room")),
            ("kill -SEGV $$", Err("signal: 11 (SIGSEGV)")),
            // The process is stopped and continued, as by a terminal, which must not count as its end.
            (
                "(sleep 0.1; while kill -CONT $$; do sleep 0.01; done) >&- 2>&- & kill -STOP $$; echo result",
                Ok("result\n"),
            ),
        ] {
            let ended = shell(script, Duration::from_secs(3600));
            assert_eq!(ended.as_deref().map_err(String::as_str), expected);
        }
        assert_eq!(shell("exec sleep 36000", Duration::ZERO), Err("did not end within 0 s".into()));
    }
}
