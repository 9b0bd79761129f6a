//! Runs a child process until it exits, a signal ends it, or its time limit passes.

use std::io::{self, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChildError {
    #[error("did not end within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("{0}")]
    Failed(String),
}

/// What `command` prints to stdout, if it exits with 0 within `limit`. The caller chooses its stdin. A child that takes
/// longer is killed.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<String, ChildError> {
    let failed = |error: io::Error| ChildError::Failed(format!("cannot run it: {error}"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    // A thread for each pipe, so that neither can fill up and block the child.
    let (send, printed) = mpsc::channel();
    thread::spawn(move || send.send(read_to_end(stdout)));
    let stderr = thread::spawn(move || read_to_end(stderr));
    // Stdout ends when the child does: nothing in a round closes it earlier.
    let printed = printed.recv_timeout(limit);
    let killed = if printed.is_err() { child.kill() } else { Ok(()) };
    let status = killed.and_then(|()| child.wait()).map_err(failed)?;
    match printed {
        Err(_) => Err(ChildError::TimedOut(limit)),
        Ok(stdout) if status.success() => Ok(stdout),
        Ok(_) => Err(ChildError::Failed(reason(status, &stderr.join().unwrap_or_default()))),
    }
}

/// Bytes that came before a failing read are still worth showing.
fn read_to_end(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How the child ended, and the line of its stderr that says most: a panic's message, or else the last line.
fn reason(status: ExitStatus, stderr: &str) -> String {
    let mut lines = stderr.lines().filter(|line| !line.trim().is_empty());
    let panic = lines.clone().skip_while(|line| !line.contains("panicked at")).nth(1);
    let line = panic.or_else(|| lines.next_back());
    line.map_or_else(|| status.to_string(), |line| format!("{status}: {}", line.trim()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_ends_has_a_result_or_a_reason() {
        // Catches stderr mixed into a result, a crashed round counted as one without samples, and a reason that does not say why.
        let shell = |script: &str| {
            let ended = run(Command::new("sh").args(["-c", script]).stdin(Stdio::null()), Duration::from_secs(3600));
            ended.map_err(|error| error.to_string())
        };
        assert_eq!(shell("echo noise >&2; echo result").as_deref(), Ok("result\n"));
        assert_eq!(shell("echo half; echo why >&2; exit 3"), Err("exit status: 3: why".into()));
        let panic = "echo \"'main' panicked at x.rs:1:1:\" >&2; echo no room >&2; echo note: run with >&2; exit 101";
        assert_eq!(shell(panic), Err("exit status: 101: no room".into()));
        assert!(shell("kill -SEGV $$").is_err_and(|reason| reason.starts_with("signal: 11")));
    }

    #[test]
    fn a_child_that_never_ends_is_killed() {
        // Catches a run that hangs with its subject. `cat` waits for its stdin, which stays open as long as it lives.
        let ended = run(Command::new("cat").stdin(Stdio::piped()), Duration::ZERO);
        assert_eq!(ended, Err(ChildError::TimedOut(Duration::ZERO)));
    }
}
