//! The tools of Redis, where they are installed.

use std::process::{Command, Stdio};

use crate::support::server::Server;
use crate::support::{run_with, skipped};

/// Runs a tool on the server; returns `None` and prints a message if the tool is not installed.
fn tool(name: &str, server: &Server, args: &[&str], input: &str) -> Option<String> {
    if Command::new(name).arg("--version").stdout(Stdio::null()).status().is_err() {
        skipped(name, "it is not installed");
        return None;
    }
    let mut command = Command::new(name);
    command.args(["-h", "127.0.0.1", "-p", &server.address.port().to_string()]).args(args);
    Some(run_with(command, input.as_bytes()).text())
}

#[test]
fn redis_cli_drives_the_server() {
    // Catches replies that a client library accepts and redis-cli does not.
    let server = Server::new(&[]);
    for version in ["-2", "-3"] {
        let input =
            "set a 1\nincr a\nmget a nope\nmulti\nset b 2\nrange a c\nexec\nprefix b\nconfig get save\ndel a b\n";
        let Some(said) = tool("redis-cli", &server, &[version], input) else { return };
        let words: Vec<&str> = said.split_whitespace().collect();
        assert_eq!(words.join(" "), "OK 2 2 OK QUEUED QUEUED OK a 2 b 2 b 2 save 2", "{version}");
    }
    tool("redis-cli", &server, &["mset", "k1", "v", "k2", "v", "other", "v"], "");
    assert_eq!(tool("redis-cli", &server, &["--scan", "--pattern", "k*"], "").as_deref(), Some("k1\nk2\n"));
}

#[test]
fn redis_benchmark_runs_to_its_end() {
    // Catches a missing command that the tool needs, and a missing reply.
    let server = Server::new(&["--durability", "everysec"]);
    for pipeline in ["1", "16"] {
        let args = ["-t", "ping,set,get,incr,mset", "-c", "20", "-n", "2000", "-P", pipeline, "--csv"];
        let Some(said) = tool("redis-benchmark", &server, &args, "") else { return };
        for test in ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)"] {
            assert!(said.contains(&format!("\"{test}\"")), "{test}: {said}");
        }
    }
}
