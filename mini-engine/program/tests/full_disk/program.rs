//! The program on a small disk, for the tests of its commands.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

pub(crate) const DISK: u64 = 12 << 20;
/// Room for all that the tests write.
pub(crate) const ENOUGH: u64 = 256 << 20;
/// After which a silent process has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn program(command: &str, db: &Path, args: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_mini-engine"));
    program.arg(command).arg(db).args(["--memtable-bytes", "1M"]).args(args);
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    program
}

/// A value that no compression makes shorter than half.
pub(crate) fn value(n: u64) -> String {
    (0..25).map(|part| format!("{:016x}", (n * 25 + part).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect()
}

/// What a process has left that has to end by itself.
pub(crate) fn in_time(child: Child) -> Output {
    let pid = Pid::from_child(&child);
    let (ended, has_ended) = mpsc::channel();
    thread::spawn(move || ended.send(child.wait_with_output().expect("wait")));
    has_ended.recv_timeout(PATIENCE).unwrap_or_else(|error| {
        kill_process(pid, Signal::KILL).ok();
        panic!("it does not end: {error}")
    })
}
