//! The operator's week of the book: every command of the page is carried out, and its outputs are those of the page.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use proof::free_address;
use rustix::process::Signal;

use super::nodes::Process;
use crate::support::{Room, program, run_with, skipped, wait_for};

/// The ports of the page are replaced by free ones.
const PORTS: [&str; 11] = ["7001", "7002", "7003", "7004", "7005", "17001", "17002", "17003", "17004", "17005", "9101"];

struct Week {
    room: Room,
    /// The processes of nodes, by their directories.
    nodes: BTreeMap<String, Process>,
}

impl Week {
    /// Carries out one line of a block: a command, the start of a node, or a comment that ends one. Returns whether it succeeded, and its output.
    fn run(&mut self, line: &str) -> (bool, String) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["mini-engine", "serve", "--cluster", node, ..] => {
                let process = Process::start(self.shell(line), self.room.path(&format!("{node}.log")));
                assert!(self.nodes.insert(node.into(), process).is_none(), "{node} runs");
                // A command may come before the node listens; then it fails, and is repeated.
                (true, String::new())
            }
            ["#", "kill", .., node] => {
                let signal = if words.contains(&"-9") { Signal::KILL } else { Signal::TERM };
                let status = self.nodes.remove(node).expect("it runs").end(signal);
                (status.success() || signal == Signal::KILL, String::new())
            }
            _ => {
                let ran = run_with(self.shell(line), b"");
                (ran.code == Some(0), String::from_utf8(ran.stdout).expect("text"))
            }
        }
    }

    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        let line = line.strip_prefix("mini-engine").map_or(line.to_owned(), |rest| format!("\"$PROGRAM\"{rest}"));
        command.arg("-c").arg(format!("exec {line} 2>&1")).current_dir(self.room.path(""));
        command.env("PROGRAM", program().get_program());
        command
    }
}

/// Whether each line of `page`, in this order, is a line of `said`, but for the width of columns. `..` in a line stands for anything.
fn is_said(page: &str, said: &str) -> bool {
    let of_one_width = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut said = said.lines().map(of_one_width);
    page.lines().map(of_one_width).all(|line| {
        let parts: Vec<&str> = line.split("..").collect();
        said.any(|said| {
            let said = said.as_str();
            let in_order = parts.iter().try_fold(said, |rest, part| Some(&rest[rest.find(part)? + part.len()..]));
            said.starts_with(parts[0]) && in_order.is_some_and(|rest| rest.is_empty() || parts.last() == Some(&""))
        })
    })
}

#[test]
fn the_week_goes_as_the_page_says() {
    // Catches a step of the page that does not work, or that shows something else.
    let has_client = Command::new("redis-cli").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !has_client {
        skipped("the clients of the week", "redis-cli is not installed");
    }
    let is_left_out = |line: &str| line.starts_with("redis-cli") && !has_client;
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/cluster-week.md");
    let mut page = fs::read_to_string(page).expect("the page");
    for port in PORTS {
        let free = free_address().port();
        page = page
            .replace(&format!(":{port}"), &format!(":{free}"))
            .replace(&format!("-p {port}"), &format!("-p {free}"));
    }
    let mut week = Week { room: Room::new(), nodes: BTreeMap::new() };
    let (mut last, mut ran) = (String::new(), (true, String::new()));
    let mut blocks = 0;
    for block in page.split("\n```").skip(1) {
        if let Some(lines) = block.strip_prefix("sh\n") {
            for line in lines.replace("\\\n", "").lines() {
                assert!(ran.0, "`{last}` failed:\n{}", ran.1);
                last = line.to_owned();
                ran = if is_left_out(line) { (true, String::new()) } else { week.run(line) };
            }
        } else if let Some(expected) = block.strip_prefix("text\n").filter(|_| !is_left_out(&last)) {
            blocks += 1;
            // A reader, too, would repeat a command while the nodes elect a leader.
            let mut tries = 0;
            wait_for(&format!("after `{last}`:\n{expected}\nThe first output was:\n{}", ran.1), || {
                if tries > 0 {
                    ran = week.run(&last);
                }
                tries += 1;
                ran.0 && is_said(expected, &ran.1)
            });
        }
    }
    assert!(ran.0, "`{last}` failed:\n{}", ran.1);
    assert!(blocks > 8, "the page has only {blocks} outputs");
}
