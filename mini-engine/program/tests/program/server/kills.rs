//! The server is killed with SIGKILL while clients write, in several databases. Afterwards every acknowledged write is there, and a transaction is
//! there as a whole or not at all, with what it has read unchanged in between.
//!
//! `KILL_SEED=n` repeats the choices of a run; `KILL_ROUNDS=n` makes it longer.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;

use mini_engine::{Db, Keyspace};
use proof::Random;
use proof::environment::number;
use redis::{Commands, RedisResult, cmd, pipe};

use crate::support::server::{try_connect, until};
use crate::support::{Room, kill_seed};

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
fn held(db: &Keyspace, key: &str) -> usize {
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

/// The databases in which clients take numbers, two in each.
const DATABASES: usize = CLIENTS / 2;

/// What a client has achieved: the numbers whose taking was acknowledged, and how often another client was faster.
#[derive(Default)]
struct Taken {
    numbers: Vec<usize>,
    refused: usize,
}

/// Takes the numbers of a database one after the other, at most so many, until the server ends: in transactions that depend on the last number that
/// was taken. A number that is taken has a key that expires in a day, and has had one that has expired.
fn take(address: SocketAddr, client: usize, at_most: usize) -> Taken {
    let mut taken = Taken::default();
    let mut run = || -> RedisResult<()> {
        let mut db = try_connect(address, &(client % DATABASES).to_string())?;
        while taken.numbers.len() < at_most {
            cmd("WATCH").arg("count").query::<()>(&mut db)?;
            let n = db.get::<_, Option<usize>>("count")?.unwrap_or(0) + 1;
            let mut together = pipe();
            together.atomic().set("count", n);
            together.cmd("SET").arg(format!("expired {n:06}")).arg(client).arg("PX").arg(1);
            together.cmd("SET").arg(format!("taken {n:06}")).arg(client).arg("EX").arg(24 * 3600);
            match together.query::<Option<()>>(&mut db)? {
                Some(()) => taken.numbers.push(n),
                None => taken.refused += 1,
            }
        }
        Ok(())
    };
    // The server is gone at an error.
    run().ok();
    taken
}

/// Checks that each number was taken once, and by the client to which that was acknowledged. Returns how many were taken; `before`, after the round
/// before it.
fn check_taken(db: &Db, database: usize, acknowledged: &BTreeMap<usize, usize>, before: usize, context: &str) -> usize {
    let keyspace = match database {
        0 => Keyspace::clone(db),
        _ => db.keyspace(&database.to_string()).expect("a keyspace"),
    };
    let count = held(&keyspace, "count");
    let least = acknowledged.keys().next_back().copied().unwrap_or(0).max(before);
    // Each of the two clients may have had one transaction under way.
    assert!((least..=least + 2).contains(&count), "{context}, database {database}: {count} taken, {least} before");
    for n in 1..=count {
        let (client, expiry) = keyspace
            .get_with_expiry(format!("taken {n:06}"))
            .expect("get")
            .unwrap_or_else(|| panic!("{context}, database {database}: {n} of {count} is missing"));
        assert!(expiry.is_some(), "{context}: {n} does not expire");
        let client: usize = std::str::from_utf8(&client).expect("text").parse().expect("a number");
        assert!(client % DATABASES == database, "{context}: client {client} in database {database}");
        assert_eq!(*acknowledged.get(&n).unwrap_or(&client), client, "{context}: {n} was taken twice");
    }
    until(|| keyspace.prefix("expired").next().is_none());
    assert_eq!(keyspace.iter().count(), count + usize::from(count > 0), "{context}: part of a transaction");
    count
}

#[test]
fn acknowledged_transactions_of_every_database_survive_a_kill_and_depend_on_what_they_have_read() {
    // Catches an EXEC that is acknowledged before it is in the log, or applied in part; one that does not notice a change of a watched key; a key of one
    // database in another; and an expiry that a kill takes away, or that brings a key back.
    let mut random = Random(kill_seed());
    let rounds = number("KILL_ROUNDS").map_or(ROUNDS, |rounds| rounds as usize);
    let room = Room::new();
    let (mut acknowledged, mut counts, mut refused) = (vec![BTreeMap::new(); DATABASES], [0; DATABASES], 0);
    for round in 0..rounds {
        let durability = ["synced", "everysec", "buffered"][round % 3];
        let mut server = room.server(&["--durability", durability, "--memtable-bytes", "64K"]);
        let (address, at_most) = (server.address, 1 + random.index(LONGEST / 3));
        let all = thread::scope(|threads| {
            let others: Vec<_> =
                (1..CLIENTS).map(|client| threads.spawn(move || take(address, client, usize::MAX))).collect();
            // The others go on until the server is gone.
            let first = take(address, 0, at_most);
            server.kill();
            let others = others.into_iter().map(|client| client.join().expect("a client"));
            [first].into_iter().chain(others).collect::<Vec<_>>()
        });
        assert_eq!(all[0].numbers.len(), at_most, "the server served its client until it was killed");
        for (client, taken) in all.into_iter().enumerate() {
            refused += taken.refused;
            for n in taken.numbers {
                let earlier = acknowledged[client % DATABASES].insert(n, client);
                assert_eq!(earlier, None, "round {round}, {durability}: {n} was acknowledged twice");
            }
        }
        let db = Db::open(room.database()).expect("a killed server leaves a sound database");
        for (database, count) in counts.iter_mut().enumerate() {
            *count =
                check_taken(&db, database, &acknowledged[database], *count, &format!("round {round}, {durability}"));
        }
        assert!(db.verify().expect("verify").problems.is_empty());
        db.close().expect("close");
    }
    println!("{refused} transactions were refused");
    assert!(refused > 0, "no client has met another one");
}
