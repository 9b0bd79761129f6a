//! The server is killed with SIGKILL while clients write, in several databases. Afterwards the database has every acknowledged write, and each
//! transaction whole or not at all. The keys that a transaction watched must not have changed between its read and its commit.
//!
//! `KILL_SEED=n` repeats the choices of a run; `KILL_ROUNDS=n` sets its number of rounds.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;

use mini_engine::{Db, Keyspace};
use proof::Random;
use proof::environment::number;
use redis::{Commands, RedisResult, cmd, pipe};

use crate::support::server::try_connect;
use crate::support::{Room, kill_seed, wait_for};

const ROUNDS: usize = 12;
const CLIENTS: usize = 6;
/// The most acknowledgements of one client before the kill.
const LONGEST: usize = 300;

/// Writes the numbers after `from` up to `last`, each to a pair of keys and a log, unless the server ends before. Returns the last acknowledged
/// number. The next number may have been sent, in this round or the one before.
fn write(address: SocketAddr, client: usize, from: usize, last: usize) -> usize {
    let mut acknowledged = from;
    let mut run = || -> RedisResult<()> {
        // The server may be killed before this client connects.
        let mut db = try_connect(address, "")?;
        while acknowledged < last {
            let n = acknowledged + 1;
            let mut together = pipe();
            // Every third write is a pipeline, of which the last acknowledgement counts.
            if !n.is_multiple_of(3) {
                together.atomic();
            }
            together.set(format!("left {client}"), n).set(format!("right {client}"), n).query::<()>(&mut db)?;
            db.set::<_, _, ()>(format!("log {client} {n:06}"), "x".repeat(n % 900))?;
            acknowledged = n;
        }
        Ok(())
    };
    // An error means that the server was killed.
    run().ok();
    acknowledged
}

/// The number stored under `key`.
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
    // The first write of a pipeline may be stored without the second; a transaction must be whole.
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
            // The others write until the server is killed, so the kill must come even if the first client failed.
            *first = write(address, 0, *first, last);
            server.kill();
        });
        assert_eq!(written[0], last, "the server served its client until it was killed");
        let db = Db::open(room.database()).expect("a killed server leaves a sound database");
        // The next round continues after the acknowledged numbers, and repeats the writes that were not acknowledged.
        for (client, &acknowledged) in written.iter().enumerate() {
            check(&db, client, acknowledged, &format!("round {round}, {durability}"));
        }
        assert!(db.verify().expect("verify").problems.is_empty());
        db.close().expect("close");
    }
}

/// The databases in which clients take numbers, two in each.
const DATABASES: usize = CLIENTS / 2;

/// The results of a client: the acknowledged numbers, and the transactions that failed because another client was faster.
#[derive(Default)]
struct Taken {
    numbers: Vec<usize>,
    refused: usize,
}

/// Takes the numbers of a database one after the other, at most `at_most`, until the server ends. Each transaction depends on the last taken
/// number. A taken number has a key that expires in a day, and had one that has expired.
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
    // An error means that the server was killed.
    run().ok();
    taken
}

/// Checks that each number was taken once, and by the client that got the acknowledgement. Returns the number of taken ones; `before` is that
/// number after the last round.
fn check_taken(db: &Db, database: usize, acknowledged: &BTreeMap<usize, usize>, before: usize, context: &str) -> usize {
    let keyspace = match database {
        0 => Keyspace::clone(db),
        _ => db.keyspace(&database.to_string()).expect("a keyspace"),
    };
    let count = held(&keyspace, "count");
    let least = acknowledged.keys().next_back().copied().unwrap_or(0).max(before);
    // Each of the two clients may have had one unacknowledged transaction.
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
    wait_for("the expired keys are gone", || keyspace.prefix("expired").next().is_none());
    assert_eq!(keyspace.iter().count(), count + usize::from(count > 0), "{context}: part of a transaction");
    count
}

#[test]
fn acknowledged_transactions_of_every_database_survive_a_kill_and_depend_on_what_they_have_read() {
    // Catches an EXEC that is acknowledged before it is in the log, that is applied in part, or that ignores a change of a watched key. Also catches
    // a key of one database in another, an expiry that is lost by a kill, and an expired key that comes back.
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
            // The others go on until the server is killed.
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
