//! The tools of Redis, where they are installed.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::process::{Room, Server};

/// Runs a tool on the server; `None`, and a word about it, where it is not installed.
fn tool(name: &str, server: &Server, args: &[&str], input: &str) -> Option<String> {
    let port = server.address.port().to_string();
    let mut command = Command::new(name);
    command.args(["-h", "127.0.0.1", "-p", &port]).args(args);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        writeln!(std::io::stderr(), "\nSKIPPED: {name} is not installed\n").expect("stderr");
        return None;
    };
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("write");
    let output = child.wait_with_output().expect("wait");
    assert!(output.status.success(), "{name} {args:?}: {output:?}");
    Some(String::from_utf8(output.stdout).expect("text"))
}

#[test]
fn redis_cli_drives_the_server() {
    // Catches what a client library forgives and the original does not.
    let room = Room::new();
    let server = room.server(&[]);
    for version in ["-2", "-3"] {
        let input =
            "set a 1\nincr a\nmget a nope\nmulti\nset b 2\nrange a c\nexec\nprefix b\nconfig get save\ndel a b\n";
        let Some(said) = tool("redis-cli", &server, &[version], input) else { return };
        let words: Vec<&str> = said.split_whitespace().collect();
        assert_eq!(words.join(" "), "OK 2 2 OK QUEUED QUEUED OK a 2 b 2 b 2 save 2", "{version}");
    }
    tool("redis-cli", &server, &["mset", "k1", "v", "k2", "v", "other", "v"], "");
    assert_eq!(tool("redis-cli", &server, &["--scan", "--pattern", "k*"], "").as_deref(), Some("k1\nk2\n"));
    server.end();
}

#[test]
fn redis_benchmark_runs_to_its_end() {
    // Catches a command that it needs, and a reply that it waits for in vain.
    let room = Room::new();
    let server = room.server(&["--durability", "everysec"]);
    for pipeline in ["1", "16"] {
        let args = ["-t", "ping,set,get,incr,mset", "-c", "20", "-n", "2000", "-P", pipeline, "--csv"];
        let Some(said) = tool("redis-benchmark", &server, &args, "") else { return };
        for test in ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)"] {
            assert!(said.contains(&format!("\"{test}\"")), "{test}: {said}");
        }
    }
    server.end();
}
