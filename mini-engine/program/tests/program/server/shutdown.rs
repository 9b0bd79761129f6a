//! The ways in which a server ends, and its contents after a restart.

use std::io::Read;

use redis::{Commands, cmd};
use rustix::process::Signal;

use crate::support::server::{Server, info};
use crate::support::{Room, flip, wait_for};

#[test]
fn what_was_received_is_answered_before_the_end() {
    // Catches a server that drops requests that it has read, or their replies, at a shutdown.
    let room = Room::new();
    for (signal, durability) in [(Signal::TERM, "synced"), (Signal::INT, "buffered"), (Signal::TERM, "everysec")] {
        // Each turn has a sync; all turns fit into the server's time limit for a shutdown.
        let server = room.server(&["--durability", durability, "--max-pipeline", "16"]);
        let mut raw = server.raw();
        let requests = 1000;
        raw.send("INCR n\r\n".repeat(requests));
        // The first reply shows that all requests have arrived, because the server reads them at once.
        let mut first = [0; 4];
        raw.0.read_exact(&mut first).expect("a reply");
        server.signal(signal);
        let replies = String::from_utf8([&first[..], &raw.rest()].concat()).expect("text");
        assert_eq!(replies, (1..=requests).map(|n| format!(":{n}\r\n")).collect::<String>());
        let (status, said) = server.wait();
        assert!(status.success() && said.ends_with("ended; everything is written\n"), "{status} {said}");
        let server = room.server(&[]);
        assert_eq!(server.client().get_del::<_, usize>("n").expect("getdel"), requests);
        server.end();
    }
}

#[test]
fn a_client_may_end_the_server() {
    // Catches a SHUTDOWN that does not end the server, or loses data.
    let room = Room::new();
    let server = room.server(&["--durability", "buffered"]);
    let mut raw = server.raw();
    raw.send("SET k v\r\nSHUTDOWN bogus\r\nSHUTDOWN NOSAVE\r\n");
    assert_eq!(raw.rest(), b"+OK\r\n-ERR syntax error\r\n");
    let (status, said) = server.wait();
    assert!(status.success(), "{status} {said}");
    let db = mini_engine::Db::open(room.database()).expect("open");
    assert_eq!(db.get("k").expect("get").as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_database_or_a_port_that_is_taken_is_said() {
    // Catches a second server on one database, and an error that does not name the database.
    let room = Room::new();
    let server = room.server(&[]);
    // Commands that an operator can run meanwhile.
    let words = "LOCK is locked|next: |--wait|Meanwhile get, ttl, scan|mini-engine serve";
    let other = Room::new();
    room.refuses(4, &[("serve --listen 127.0.0.1:0", words)]);
    let address = server.address.to_string();
    other.refuses(4, &[(&format!("serve --listen {address}"), &address)]);
    assert!(!other.database().exists());
    server.end();
}

#[test]
fn a_checkpoint_is_made_beside_the_clients() {
    // Catches a BGSAVE that never ends, whose copy lacks earlier acknowledged writes, or whose copy is inside the database.
    let room = Room::new();
    let server = Server::start(&room.path("db/"), &["--durability", "buffered"]);
    let mut db = server.client();
    db.set::<_, _, ()>("k", "v").expect("set");
    cmd("BGSAVE").query::<()>(&mut db).expect("bgsave");
    wait_for("the checkpoint is made", || info(&mut db, "persistence", "rdb_bgsave_in_progress") == "0");
    let copy = mini_engine::Db::open(room.path("db.checkpoints/checkpoint-000001")).expect("a checkpoint");
    assert_eq!(copy.get("k").expect("get").as_deref(), Some(&b"v"[..]));
    drop(db);
    server.end();
}

#[test]
fn damage_is_in_the_log_once_for_its_place() {
    // Catches damage that is reported only to the client whose request finds it, and a client that can fill the server's log with messages.
    let room = Room::holding("k\tv\n");
    room.run("compact").text();
    flip(&room.file(".sst"), 0);
    let server = room.server(&[]);
    let mut raw = server.raw();
    raw.send("GET k\r\nGET k\r\nSHUTDOWN\r\n");
    let replies = String::from_utf8(raw.rest()).expect("text");
    assert_eq!(replies.matches("-IOERR corruption in ").count(), 2, "{replies}");
    let (status, said) = server.wait();
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("corruption in ")).collect();
    assert!(
        status.success() && lines.len() == 1 && lines[0].contains("ERROR") && lines[0].contains("at offset 0: "),
        "{said}"
    );
}
