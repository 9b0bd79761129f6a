//! The ways in which a server ends, and its contents after a restart.

use redis::{Commands, cmd};
use rustix::process::Signal;

use crate::support::server::{Server, info};
use crate::support::{Room, check_says, flip, wait_for};

#[test]
fn what_was_received_is_answered_before_a_signal_or_a_client_ends_the_server() {
    // Catches a server that drops requests that it has read, their replies, or data at a shutdown, and a SHUTDOWN that does not end the server.
    let room = Room::new();
    let requests = 1000;
    let replies = (1..=requests).map(|n| format!(":{n}\r\n")).collect::<String>();
    for (signal, durability) in [
        (Some(Signal::TERM), "synced"),
        (Some(Signal::INT), "buffered"),
        (None, "buffered"),
        (Some(Signal::TERM), "everysec"),
    ] {
        // Each turn has a sync; all turns fit into the server's time limit for a shutdown.
        let mut server = room.server(&["--durability", durability, "--max-pipeline", "16"]);
        let mut raw = server.raw();
        raw.send("INCR n\r\n".repeat(requests));
        // The first reply shows that all requests have arrived, because the server reads them at once.
        raw.expect(":1\r\n");
        let last = match signal {
            Some(signal) => {
                server.signal(signal);
                ""
            }
            None => {
                raw.send("SHUTDOWN bogus\r\nSHUTDOWN NOSAVE\r\n");
                "-ERR syntax error\r\n"
            }
        };
        let rest = String::from_utf8(raw.rest()).expect("text");
        assert_eq!(format!(":1\r\n{rest}"), format!("{replies}{last}"));
        let (status, said) = server.wait();
        assert!(status.success() && said.ends_with("ended; everything is written\n"), "{status} {said}");
        let stored = room.server(&[]).client().get_del::<_, usize>("n");
        assert_eq!(stored.expect("getdel"), requests);
    }
}

#[test]
fn a_database_or_a_port_that_is_taken_is_said() {
    // Catches a second server on one database, and an error that does not name the database.
    let room = Room::new();
    let server = room.server(&[]);
    // Commands that an operator can run meanwhile.
    let words = "LOCK is locked|next: |--wait|Meanwhile get, ttl, scan|mini-engine serve";
    room.refuses(4, &[("serve --listen 127.0.0.1:0", words)]);
    let (other, address) = (Room::new(), server.address.to_string());
    other.refuses(4, &[(&format!("serve --listen {address}"), &address)]);
    assert!(!other.database().exists());
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
}

#[test]
fn damage_is_in_the_log_once_for_its_place() {
    // Catches damage that is reported only to the client whose request finds it, and a client that can fill the server's log with messages.
    let room = Room::holding("k\tv\n");
    room.run("compact").text();
    flip(&room.file(".sst"), 0);
    let mut server = room.server(&[]);
    let mut raw = server.raw();
    raw.send("GET k\r\nGET k\r\nSHUTDOWN\r\n");
    let replies = String::from_utf8(raw.rest()).expect("text");
    assert_eq!(replies.matches("-IOERR corruption in ").count(), 2, "{replies}");
    let (status, said) = server.wait();
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("corruption in ")).collect();
    assert!(status.success() && lines.len() == 1, "{said}");
    check_says(lines[0], "ERROR|at offset 0: ");
}
