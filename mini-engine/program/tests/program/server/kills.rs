//! The server is killed with SIGKILL while clients write. Afterwards every acknowledged write is there, and a transaction is there as a whole or
//! not at all.
//!
//! `KILL_SEED=n` repeats the choices of a run; `KILL_ROUNDS=n` makes it longer.

use std::net::SocketAddr;
use std::thread;

use mini_engine::Db;
use mini_engine::random::Random;
use redis::{Commands, RedisResult, pipe};

use crate::support::server::try_connect;
use crate::support::{Room, kill_seed, number};

const ROUNDS: usize = 12;
const CLIENTS: usize = 6;
/// Acknowledgements of one client after which the kill comes, at most.
const LONGEST: usize = 300;

/// Writes the numbers after `from` up to `last`, in a pair of keys and a log, unless the server ends before. Returns the last acknowledged number;
/// the next one may have been sent, in this round or the one before.
fn write(address: SocketAddr, client: usize, from: usize, last: usize) -> usize {
    let mut acknowledged = from;
    let mut run = || -> RedisResult<()> {
        // The server may be gone before this client is there.
        let mut db = try_connect(address, "")?;
        while acknowledged < last {
            let n = acknowledged + 1;
            let mut together = pipe();
            // Every third is a pipeline: the last acknowledgement is the one that counts.
            if !n.is_multiple_of(3) {
                together.atomic();
            }
            together.set(format!("left {client}"), n).set(format!("right {client}"), n).query::<()>(&mut db)?;
            db.set::<_, _, ()>(format!("log {client} {n:06}"), "x".repeat(n % 900))?;
            acknowledged = n;
        }
        Ok(())
    };
    // The server is gone at an error.
    run().ok();
    acknowledged
}

/// A number that the database holds.
fn held(db: &Db, key: &str) -> usize {
    let value = db.get(key).expect("get");
    value.map_or(0, |value| std::str::from_utf8(&value).expect("text").parse().expect("a number"))
}

fn check(db: &Db, client: usize, acknowledged: usize, context: &str) {
    let (left, right) = (held(db, &format!("left {client}")), held(db, &format!("right {client}")));
    let context = format!("{context}, client {client}: acknowledged {acknowledged}");
    for found in [left, right] {
        assert!((acknowledged..=acknowledged + 1).contains(&found), "{context}, found {found}");
    }
    // The first write of a pipeline may be there alone; no write of a transaction may.
    assert!(left == right || left.is_multiple_of(3), "{context}: part of a transaction, {left} and {right}");
    for n in 1..=acknowledged {
        let value = db.get(format!("log {client} {n:06}")).expect("get");
        assert_eq!(value.map(|value| value.len()), Some(n % 900), "{context}: line {n}");
    }
}

#[test]
fn every_acknowledged_write_survives_a_kill_under_load() {
    // Catches a reply that is sent before its write is in the log, and a transaction that is applied in part.
    let mut random = Random(kill_seed());
    let rounds = number("KILL_ROUNDS").map_or(ROUNDS, |rounds| rounds as usize);
    let room = Room::new();
    let mut written = [0; CLIENTS];
    for round in 0..rounds {
        let durability = ["synced", "synced", "everysec", "buffered"][round % 4];
        // Memtables are so small that some are flushed.
        let mut server = room.server(&["--durability", durability, "--memtable-bytes", "64K"]);
        let (address, last) = (server.address, written[0] + 1 + random.index(LONGEST));
        thread::scope(|threads| {
            let (first, others) = written.split_first_mut().expect("clients");
            for (other, acknowledged) in others.iter_mut().enumerate() {
                threads.spawn(move || *acknowledged = write(address, other + 1, *acknowledged, usize::MAX));
            }
            // The others write until the server is gone, so the kill comes whatever ended the first client.
            *first = write(address, 0, *first, last);
            server.kill();
        });
        assert_eq!(written[0], last, "the server served its client until it was killed");
        let db = Db::open(room.database()).expect("a killed server leaves a sound database");
        // The next round continues after the acknowledged numbers, and writes again those that were sent in vain.
        for (client, &acknowledged) in written.iter().enumerate() {
            check(&db, client, acknowledged, &format!("round {round}, {durability}"));
        }
        assert!(db.verify().expect("verify").problems.is_empty());
        db.close().expect("close");
    }
}
