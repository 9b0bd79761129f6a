//! `serve` on a file system that is actually full.

use redis::{Commands, Connection, RedisError, cmd};
use rustix::process::Signal;

use super::{DISK, ENOUGH, key, value};
use crate::support::mount::Mount;
use crate::support::server::{Server, info};

fn set(client: &mut Connection, n: u64) -> Result<(), RedisError> {
    client.set(key(n), value(n))
}

/// Sets keys from `from` on until one is refused. Returns its number, and the reply to the client.
fn fill(client: &mut Connection, from: u64) -> (u64, RedisError) {
    let refused = (from..from + 1_000_000).find_map(|n| Some((n, set(client, n).err()?)));
    refused.expect("the disk is full before")
}

#[test]
fn a_server_on_a_full_disk_refuses_writes_goes_on_reading_ends_when_told_and_resumes() {
    // Catches a server that hangs, with all its clients, until it is killed.
    let name = "a_server_on_a_full_disk_refuses_writes_goes_on_reading_ends_when_told_and_resumes";
    let Some(mount) = Mount::new(DISK, name) else { return };
    let start = || Server::start(&mount.path("db"), &["--memtable-bytes", "1M"]);
    let mut server = start();
    let (mut client, mut other) = (server.client(), server.client());
    let is_full = |error: &RedisError| error.code() == Some("MISCONF");
    let (written, error) = fill(&mut client, 0);
    let said = error.to_string();
    assert!(is_full(&error) && said.contains("no space: could not ") && said.contains("No space left"), "{said}");
    assert_eq!(cmd("PING").query::<String>(&mut other).expect("others are served"), "PONG");
    assert_eq!(other.strlen::<_, usize>(key(written - 1)).expect("reads go on"), 400);
    assert!(!other.exists::<_, bool>(key(written)).expect("reads go on"));
    assert_eq!(info(&mut other, "writes", "aof_last_write_status"), "err");
    assert!(info(&mut other, "writes", "last_write_refusal").starts_with("could not "));

    mount.resize(DISK + (4 << 20));
    while let Err(error) = set(&mut client, written) {
        assert!(is_full(&error), "{error}");
    }
    // Fills the disk again.
    let (written, _) = fill(&mut client, written + 1);
    server.signal(Signal::TERM);
    drop(client);
    let (status, said) = server.wait();
    assert!(said.contains("writes are refused: could not ") && status.code().is_some(), "{status}: {said}");

    mount.resize(ENOUGH);
    let server = start();
    assert_eq!(cmd("DBSIZE").query::<u64>(&mut server.client()).expect("a number"), written);
}
