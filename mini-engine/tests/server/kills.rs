//! The server is killed with SIGKILL while clients write. Whatever it had acknowledged is there afterwards, and transactions are there
//! as a whole.
//!
//! `KILL_SEED=n` repeats the choices of a run; `KILL_ROUNDS=n` makes it longer.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use mini_engine::Db;
use mini_engine::random::Random;
use redis::{Commands, RedisResult, pipe};

use crate::process::{Room, connect};

const ROUNDS: usize = 12;
const CLIENTS: usize = 6;
/// Acknowledgements of one client after which the kill comes, at most.
const LONGEST: usize = 300;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: expected a number")))
}

/// What a client knows of its writes.
#[derive(Clone, Copy, Default)]
struct Counted {
    /// The last write that was sent.
    sent: usize,
    /// The last one that was acknowledged.
    acknowledged: usize,
}

/// Writes until the server is gone: the numbers after `from`, in a pair of keys and a log; `on_ack` is told each acknowledgement.
fn write(address: SocketAddr, client: usize, from: usize, mut on_ack: impl FnMut(usize)) -> Counted {
    let mut counted = Counted { sent: from, acknowledged: from };
    let mut run = || -> RedisResult<()> {
        let mut db = connect(address, "");
        loop {
            let n = counted.sent + 1;
            counted.sent = n;
            if n.is_multiple_of(3) {
                // A pipeline: the last acknowledgement is the one that counts.
                pipe().set(format!("left {client}"), n).set(format!("right {client}"), n).query::<()>(&mut db)?;
            } else {
                pipe()
                    .atomic()
                    .set(format!("left {client}"), n)
                    .set(format!("right {client}"), n)
                    .query::<()>(&mut db)?;
            }
            db.set::<_, _, ()>(format!("log {client} {n:06}"), "x".repeat(n % 900))?;
            counted.acknowledged = n;
            on_ack(n);
        }
    };
    run().expect_err("it writes until the server is gone");
    counted
}

/// A number that the database holds.
fn held(db: &Db, key: &str) -> usize {
    let value = db.get(key).expect("get");
    value.map_or(0, |value| std::str::from_utf8(&value).expect("text").parse().expect("a number"))
}

fn check(db: &Db, client: usize, counted: Counted, context: &str) -> usize {
    let (left, right) = (held(db, &format!("left {client}")), held(db, &format!("right {client}")));
    let context = format!("{context}, client {client}: sent {}, acknowledged {}", counted.sent, counted.acknowledged);
    for found in [left, right] {
        assert!((counted.acknowledged..=counted.sent).contains(&found), "{context}, found {found}");
    }
    // Of a pipeline the first may be there alone; of a transaction none may.
    assert!(left == right || left.is_multiple_of(3), "{context}: part of a transaction, {left} and {right}");
    for n in 1..=counted.acknowledged {
        let value = db.get(format!("log {client} {n:06}")).expect("get");
        assert_eq!(value.map(|value| value.len()), Some(n % 900), "{context}: line {n}");
    }
    // The next round goes on behind it, and writes again what was sent in vain.
    counted.acknowledged
}

#[test]
fn every_acknowledged_write_survives_a_kill_under_load() {
    // Catches a reply that is sent before its write is in the log, and a transaction that is applied in part.
    let fresh = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64;
    let seed = number("KILL_SEED").unwrap_or_else(fresh);
    println!("KILL_SEED={seed}");
    let mut random = Random(seed);
    let rounds = number("KILL_ROUNDS").map_or(ROUNDS, |rounds| rounds as usize);
    let room = Room::new();
    let mut written = [0; CLIENTS];
    for round in 0..rounds {
        let durability = ["synced", "synced", "everysec", "buffered"][round % 4];
        // Memtables are so small that some are flushed.
        let server = room.server(&["--durability", durability, "--memtable-bytes", "64K"]);
        let (address, server) = (server.address, Mutex::new(server));
        let enough = 1 + random.index(LONGEST);
        let counted: Vec<Counted> = thread::scope(|threads| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    let (server, from) = (&server, written[client]);
                    threads.spawn(move || {
                        write(address, client, from, |n| {
                            if client == 0 && n == from + enough {
                                server.lock().expect("no panic").kill();
                            }
                        })
                    })
                })
                .collect();
            clients.into_iter().map(|client| client.join().expect("client")).collect()
        });
        let db = Db::open(room.database()).expect("a killed server leaves a sound database");
        for (client, counted) in counted.into_iter().enumerate() {
            written[client] = check(&db, client, counted, &format!("round {round}, {durability}"));
        }
        assert!(db.verify().expect("verify").problems.is_empty());
        db.close().expect("close");
    }
}
