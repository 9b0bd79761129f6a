//! The operator's week of the book: every command of the page is carried out, and its outputs are those of the page.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::nodes::free_address;
use super::wait_for;
use crate::support::{Room, program, run_with, skipped};

/// The ports of the page are replaced by free ones.
const PORTS: [&str; 11] = ["7001", "7002", "7003", "7004", "7005", "17001", "17002", "17003", "17004", "17005", "9101"];

struct Week {
    room: Room,
    /// The processes of nodes, by their directories.
    nodes: BTreeMap<String, Child>,
}

impl Week {
    /// Carries out one line of a block. A node is a process of its own; a comment tells what happens to one.
    fn run(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["mini-engine", "serve", "--cluster", node, ..] => {
                let mut command = self.shell(line.strip_prefix("mini-engine").expect("its name"), "exec \"$PROGRAM\"");
                let log = fs::File::options().create(true).append(true).open(self.room.path(&format!("{node}.log")));
                command.stdin(Stdio::null()).stdout(log.expect("a log"));
                assert!(self.nodes.insert(node.into(), command.spawn().expect("spawn")).is_none(), "{node} runs");
                // A command may come before the node listens; then it fails, and is repeated.
                String::new()
            }
            ["#", "kill", "-9", node] => self.end(node, Signal::KILL),
            ["#", "kill", node] => self.end(node, Signal::TERM),
            ["mini-engine", ..] => self.said(line.strip_prefix("mini-engine").expect("its name"), "\"$PROGRAM\""),
            _ => self.said(line, ""),
        }
    }

    fn shell(&self, line: &str, before: &str) -> Command {
        let mut command = Command::new("sh");
        let program = program().get_program().to_owned();
        command.arg("-c").arg(format!("{before}{line} 2>&1")).current_dir(self.room.path("")).env("PROGRAM", program);
        command
    }

    fn said(&self, line: &str, before: &str) -> String {
        let ran = run_with(self.shell(line, before), b"");
        String::from_utf8(ran.stdout).expect("text")
    }

    fn end(&mut self, node: &str, signal: Signal) -> String {
        let mut process = self.nodes.remove(node).expect("it runs");
        kill_process(Pid::from_child(&process), signal).expect("signal");
        wait_for("the end of a node", || process.try_wait().expect("wait").is_some());
        String::new()
    }
}

impl Drop for Week {
    fn drop(&mut self) {
        for (node, mut process) in std::mem::take(&mut self.nodes) {
            process.kill().ok();
            process.wait().ok();
            if std::thread::panicking() {
                println!("{node}: {}", fs::read_to_string(self.room.path(&format!("{node}.log"))).unwrap_or_default());
            }
        }
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
    if Command::new("redis-cli").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skipped("the_week_goes_as_the_page_says", "redis-cli is not installed");
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/cluster-week.md");
    let mut page = fs::read_to_string(page).expect("the page");
    for port in PORTS {
        let free = free_address().port();
        page = page
            .replace(&format!(":{port}"), &format!(":{free}"))
            .replace(&format!("-p {port}"), &format!("-p {free}"));
    }
    let mut week = Week { room: Room::new(), nodes: BTreeMap::new() };
    let mut last = (String::new(), String::new());
    let mut blocks = 0;
    for block in page.split("\n```").skip(1) {
        if let Some(lines) = block.strip_prefix("sh\n") {
            for line in lines.replace("\\\n", "").lines() {
                last = (line.to_owned(), week.run(line));
            }
        } else if let Some(expected) = block.strip_prefix("text\n") {
            blocks += 1;
            let (line, first) = last.clone();
            let mut said = first.clone();
            // A reader, too, would repeat a command while the nodes elect a leader.
            let mut tries = 0;
            wait_for(&format!("after `{line}`:\n{expected}\nThe first output was:\n{first}"), || {
                if tries > 0 {
                    said = week.run(&line);
                }
                tries += 1;
                is_said(expected, &said)
            });
        }
    }
    assert!(blocks > 8, "the page has only {blocks} outputs");
}
