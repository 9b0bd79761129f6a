//! The server is killed with SIGKILL while clients write, in several databases. Afterwards each database has every acknowledged write, and each
//! transaction whole or not at all. The keys that a transaction watched must not have changed between its read and its commit.
//!
//! `KILL_SEED=n` repeats the choices of a run; `KILL_ROUNDS=n` sets its number of rounds.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;

use mini_engine::{Db, Keyspace};
use proof::Random;
use proof::environment::number;
use redis::{Commands, Connection, RedisResult, cmd, pipe};

use crate::support::server::try_connect;
use crate::support::{Room, kill_seed, wait_for};

const ROUNDS: usize = 24;
const CLIENTS: usize = 6;
/// The databases, with two clients each.
const DATABASES: usize = CLIENTS / 2;
/// The most turns of one client before the kill.
const LONGEST: usize = 150;

/// A client, and the writes of all rounds that the server has acknowledged to it.
#[derive(Default)]
struct Client {
    number: usize,
    /// The last number that it wrote to keys of its own. The next one may have been sent, in this round or the one before.
    written: usize,
    /// The numbers of its database that it took.
    taken: Vec<usize>,
    /// Its transactions that failed because the other client of the database was faster.
    refused: usize,
}

impl Client {
    fn database(&self) -> usize {
        self.number % DATABASES
    }

    /// Writes until the server ends, for at most `at_most` turns. Returns the number of turns.
    fn run(&mut self, address: SocketAddr, at_most: usize) -> usize {
        let mut turns = 0;
        let mut run = || -> RedisResult<()> {
            // The server may be killed before this client connects.
            let mut db = try_connect(address, &self.database().to_string())?;
            while turns < at_most {
                self.write(&mut db)?;
                self.take(&mut db)?;
                turns += 1;
            }
            Ok(())
        };
        // An error means that the server was killed.
        run().ok();
        turns
    }

    /// Writes the next number to a pair of keys and a log.
    fn write(&mut self, db: &mut Connection) -> RedisResult<()> {
        let (client, n) = (self.number, self.written + 1);
        let mut together = pipe();
        // Every third write is a pipeline, of which the last acknowledgement counts.
        if !n.is_multiple_of(3) {
            together.atomic();
        }
        together.set(format!("left {client}"), n).set(format!("right {client}"), n).query::<()>(db)?;
        db.set::<_, _, ()>(format!("log {client} {n:06}"), "x".repeat(n % 900))?;
        self.written = n;
        Ok(())
    }

    /// Takes the number after the one that was taken last, by a transaction that depends on that one. A taken number has a key that expires in a day,
    /// and had one that has expired.
    fn take(&mut self, db: &mut Connection) -> RedisResult<()> {
        cmd("WATCH").arg("count").query::<()>(db)?;
        let n = db.get::<_, Option<usize>>("count")?.unwrap_or(0) + 1;
        let mut together = pipe();
        together.atomic().set("count", n);
        together.cmd("SET").arg(format!("expired {n:06}")).arg(self.number).arg("PX").arg(1);
        together.cmd("SET").arg(format!("taken {n:06}")).arg(self.number).arg("EX").arg(24 * 3600);
        match together.query::<Option<()>>(db)? {
            Some(()) => self.taken.push(n),
            None => self.refused += 1,
        }
        Ok(())
    }

    /// Checks the keys of its own.
    fn check(&self, keyspace: &Keyspace, context: &str) {
        let (client, acknowledged) = (self.number, self.written);
        let (left, right) = (held(keyspace, &format!("left {client}")), held(keyspace, &format!("right {client}")));
        let context = format!("{context}, client {client}: acknowledged {acknowledged}");
        for found in [left, right] {
            assert!((acknowledged..=acknowledged + 1).contains(&found), "{context}, found {found}");
        }
        // The first write of a pipeline may be stored without the second; a transaction must be whole.
        assert!(left == right || left.is_multiple_of(3), "{context}: part of a transaction, {left} and {right}");
        for n in 1..=acknowledged {
            let value = keyspace.get(format!("log {client} {n:06}")).expect("get");
            assert_eq!(value.map(|value| value.len()), Some(n % 900), "{context}: line {n}");
        }
    }
}

/// The number stored under `key`.
fn held(keyspace: &Keyspace, key: &str) -> usize {
    let value = keyspace.get(key).expect("get");
    value.map_or(0, |value| std::str::from_utf8(&value).expect("text").parse().expect("a number"))
}

/// Checks that each number of a database was taken once, and by the client that got the acknowledgement. Returns the number of taken ones; `before`
/// is that number after the last round.
fn check_taken(keyspace: &Keyspace, clients: &[&Client], before: usize, context: &str) -> usize {
    let mut acknowledged = BTreeMap::new();
    for client in clients {
        for &n in &client.taken {
            assert_eq!(acknowledged.insert(n, client.number), None, "{context}: {n} was acknowledged twice");
        }
    }
    let count = held(keyspace, "count");
    let least = acknowledged.keys().next_back().copied().unwrap_or(0).max(before);
    // Each of the clients may have had one unacknowledged transaction.
    assert!((least..=least + clients.len()).contains(&count), "{context}: {count} taken, {least} before");
    for n in 1..=count {
        let taken = keyspace.get_with_expiry(format!("taken {n:06}")).expect("get");
        let (taker, expiry) = taken.unwrap_or_else(|| panic!("{context}: {n} of {count} is missing"));
        assert!(expiry.is_some(), "{context}: {n} does not expire");
        let taker: usize = std::str::from_utf8(&taker).expect("text").parse().expect("a number");
        assert!(
            clients.iter().any(|client| client.number == taker),
            "{context}: client {taker} is in another database"
        );
        assert_eq!(*acknowledged.get(&n).unwrap_or(&taker), taker, "{context}: {n} was taken twice");
    }
    assert_eq!(keyspace.prefix("taken").count(), count, "{context}: part of a transaction");
    wait_for("the expired keys are gone", || keyspace.prefix("expired").next().is_none());
    count
}

#[test]
fn what_was_acknowledged_in_every_database_survives_a_kill_under_load() {
    // Catches a reply that is sent before its write is in the log, a transaction that is applied in part, and one that ignores a change of a watched
    // key. Also catches a key of one database in another, an expiry that is lost by a kill, and an expired key that comes back.
    let mut random = Random(kill_seed());
    let rounds = number("KILL_ROUNDS").map_or(ROUNDS, |rounds| rounds as usize);
    let room = Room::new();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|number| Client { number, ..Client::default() }).collect();
    let mut counts = [0; DATABASES];
    for round in 0..rounds {
        let durability = ["synced", "synced", "everysec", "buffered"][round % 4];
        // Memtables are so small that some are flushed.
        let mut server = room.server(&["--durability", durability, "--memtable-bytes", "64K"]);
        let (address, at_most) = (server.address, 1 + random.index(LONGEST));
        let turns = thread::scope(|threads| {
            let (first, others) = clients.split_first_mut().expect("clients");
            for other in others {
                threads.spawn(move || other.run(address, usize::MAX));
            }
            // The others write until the server is killed, so the kill must come even if the first client failed.
            let turns = first.run(address, at_most);
            server.kill();
            turns
        });
        assert_eq!(turns, at_most, "the server served its client until it was killed");
        let db = Db::open(room.database()).expect("a killed server leaves a sound database");
        for (database, count) in counts.iter_mut().enumerate() {
            let context = format!("round {round}, {durability}, database {database}");
            let keyspace = match database {
                0 => Keyspace::clone(&db),
                _ => db.keyspace(&database.to_string()).expect("a keyspace"),
            };
            let of_database: Vec<_> = clients.iter().filter(|client| client.database() == database).collect();
            of_database.iter().for_each(|client| client.check(&keyspace, &context));
            *count = check_taken(&keyspace, &of_database, *count, &context);
        }
        assert!(db.verify().expect("verify").problems.is_empty());
        db.close().expect("close");
    }
    let refused: usize = clients.iter().map(|client| client.refused).sum();
    println!("{refused} transactions were refused");
    assert!(refused > 0, "no client has met another one");
}
