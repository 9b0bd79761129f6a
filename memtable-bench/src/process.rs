//! Runs a child process to its end, whatever that end is: an exit, a signal, or the patience of its parent.

use std::fmt;
use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failed {
    /// It did not end within its limit.
    Overdue(Duration),
    /// Anything else, in a line.
    Because(String),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overdue(limit) => write!(f, "did not end within {} s", limit.as_secs()),
            Self::Because(reason) => f.write_str(reason),
        }
    }
}

/// What `command` prints to stdout, if it exits with 0 within `limit`; otherwise why not. The caller chooses its
/// stdin. A child that outlasts `limit` is killed.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<String, Failed> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| Failed::Because(format!("cannot start it: {error}")))?;
    let (ended, end) = mpsc::channel();
    let stdout = read_to_end(child.stdout.take(), Some(ended));
    let stderr = read_to_end(child.stderr.take(), None);
    // Stdout ends when the child does. It cannot have been closed earlier: nothing in a round does that.
    let overdue = end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
    let status =
        end_of(&mut child, overdue).map_err(|error| Failed::Because(format!("cannot learn how it ended: {error}")))?;
    let (stdout, stderr) = (text(stdout), text(stderr));
    if overdue {
        return Err(Failed::Overdue(limit));
    }
    if !status.success() {
        return Err(Failed::Because(reason(status, &stderr)));
    }
    Ok(stdout)
}

fn end_of(child: &mut Child, overdue: bool) -> io::Result<ExitStatus> {
    if overdue {
        child.kill()?;
    }
    child.wait()
}

/// Reads a pipe in a thread of its own, so that none of a child's two pipes can fill up and block it. At the pipe's end
/// `ended` is dropped, which wakes the one who waits.
fn read_to_end(
    pipe: Option<impl Read + Send + 'static>,
    ended: Option<mpsc::Sender<()>>,
) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What came before a failing read is still worth showing.
            pipe.read_to_end(&mut bytes).ok();
        }
        drop(ended);
        bytes
    })
}

fn text(reader: thread::JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned()
}

/// How it ended, and the line of its stderr that says most: that of a panic's message, or else the last one.
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

    fn shell(script: &str) -> Result<String, Failed> {
        run(Command::new("sh").args(["-c", script]).stdin(Stdio::null()), AN_HOUR)
    }

    #[test]
    fn stdout_of_a_child_that_exits_with_0_is_its_result() {
        // Catches stderr mixed into a result.
        assert_eq!(shell("echo noise >&2; echo result").as_deref(), Ok("result\n"));
    }

    #[test]
    fn a_child_that_fails_is_an_error_with_its_message() {
        // Catches a failed round counted as one without samples, and a reason that does not say why.
        assert_eq!(shell("echo half; echo why >&2; exit 3"), Err(Failed::Because("exit status: 3: why".into())));
        let panic =
            "echo \"thread 'main' panicked at x.rs:1:1:\" >&2; echo no room >&2; echo note: run with >&2; exit 101";
        assert_eq!(shell(panic), Err(Failed::Because("exit status: 101: no room".into())));
    }

    #[test]
    fn a_child_that_a_signal_ends_is_an_error() {
        // Catches a crashed subject taken for one that is done.
        let reason = shell("kill -SEGV $$").expect_err("killed").to_string();
        assert!(reason.starts_with("signal: 11"), "{reason}");
    }

    #[test]
    fn a_child_that_never_ends_is_killed() {
        // Catches a run that hangs with its subject. `cat` waits for its stdin, which stays open as long as it lives.
        let ended = run(Command::new("cat").stdin(Stdio::piped()), Duration::ZERO);
        assert_eq!(ended, Err(Failed::Overdue(Duration::ZERO)));
        assert_eq!(Failed::Overdue(AN_HOUR).to_string(), "did not end within 3600 s");
    }
}
