//! Runs a child process until it exits, a signal ends it, or its time limit passes.

use std::io::{self, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
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
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| ChildError::Failed(format!("{what}: {error}"))
    };
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(failed("cannot start it"))?;
    let (ended, end) = mpsc::channel();
    let stdout = read_to_end(child.stdout.take(), Some(ended));
    let stderr = read_to_end(child.stderr.take(), None);
    // Stdout ends when the child does: nothing in a round closes it earlier.
    let timed_out = end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
    let killed = if timed_out { child.kill() } else { Ok(()) };
    let status = killed.and_then(|()| child.wait()).map_err(failed("cannot learn how it ended"))?;
    let (stdout, stderr) = (text(stdout), text(stderr));
    match (timed_out, status.success()) {
        (true, _) => Err(ChildError::TimedOut(limit)),
        (false, true) => Ok(stdout),
        (false, false) => Err(ChildError::Failed(reason(status, &stderr))),
    }
}

/// Reads a pipe in a thread of its own, so that neither of a child's two pipes can fill up and block it. At the pipe's end
/// `ended` is dropped, which wakes the waiting parent.
fn read_to_end(pipe: Option<impl Read + Send + 'static>, ended: Option<mpsc::Sender<()>>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // Bytes that came before a failing read are still worth showing.
            pipe.read_to_end(&mut bytes).ok();
        }
        drop(ended);
        bytes
    })
}

fn text(reader: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned()
}

/// How the child ended, and the line of its stderr that says most: a panic's message, or else the last line.
fn reason(status: ExitStatus, stderr: &str) -> String {
    let mut lines = stderr.lines().filter(|line| !line.trim().is_empty());
    let panic = lines.clone().skip_while(|line| !line.contains("panicked at")).nth(1);
    match panic.or_else(|| lines.next_back()) {
        Some(line) => format!("{status}: {}", line.trim()),
        None => status.to_string(),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const AN_HOUR: Duration = Duration::from_secs(3600);

    fn shell(script: &str) -> Result<String, ChildError> {
        run(Command::new("sh").args(["-c", script]).stdin(Stdio::null()), AN_HOUR)
    }

    #[test]
    fn stdout_of_a_child_that_exits_with_0_is_its_result() {
        // Catches stderr mixed into a result.
        assert_eq!(shell("echo noise >&2; echo result").as_deref(), Ok("result\n"));
    }

    #[test]
    fn a_child_that_fails_is_an_error_with_its_message() {
        // Catches a failed or crashed round counted as one without samples, and a reason that does not say why.
        assert_eq!(shell("echo half; echo why >&2; exit 3"), Err(ChildError::Failed("exit status: 3: why".into())));
        let panic =
            "echo \"thread 'main' panicked at x.rs:1:1:\" >&2; echo no room >&2; echo note: run with >&2; exit 101";
        assert_eq!(shell(panic), Err(ChildError::Failed("exit status: 101: no room".into())));
        let reason = shell("kill -SEGV $$").expect_err("killed").to_string();
        assert!(reason.starts_with("signal: 11"), "{reason}");
    }

    #[test]
    fn a_child_that_never_ends_is_killed() {
        // Catches a run that hangs with its subject. `cat` waits for its stdin, which stays open as long as it lives.
        let ended = run(Command::new("cat").stdin(Stdio::piped()), Duration::ZERO);
        assert_eq!(ended, Err(ChildError::TimedOut(Duration::ZERO)));
        assert_eq!(ChildError::TimedOut(AN_HOUR).to_string(), "did not end within 3600 s");
    }
}
