//! A database that has filled its disk is emptied and filled again, by clients of `serve` and by commands, with kills in between.
//!
//! `FULL_DISK_ROUNDS=200` is the setting of campaigns; `FULL_DISK_SEED=n` repeats a run.

use std::collections::BTreeMap;
use std::time::Instant;

use proof::Random;
use proof::environment::number;
use redis::{Commands, Connection, RedisError, cmd};

use super::{key, value};
use crate::support::mount::Mount;
use crate::support::server::Server;
use crate::support::{PATIENCE, Room, check_says, wait_for};

const DISK: u64 = 32 << 20;
const ROUNDS: u64 = 10;
/// A lower bound for the bytes of values that fit onto the disk after a removal of all others; far more do fit.
const AT_LEAST: usize = 1 << 20;

struct Emptied {
    random: Random,
    mount: Mount,
    context: String,
    /// The length of the value of each key.
    model: BTreeMap<u64, usize>,
    next: u64,
}

impl Emptied {
    fn start(&mut self) -> (Server, Connection) {
        let memtable = ["64M", "1M", "4M"][self.random.index(3)];
        let durability = ["synced", "buffered"][self.random.index(2)];
        let args = ["--memtable-bytes", memtable, "--durability", durability, "--allow-flushall"];
        let server = Server::start(&self.mount.path("db"), &args);
        let mut client = server.client();
        let found: u64 = cmd("DBSIZE").query(&mut client).expect("a number");
        assert_eq!(found, self.model.len() as u64, "{}: keys", self.context);
        for (&n, &len) in self.model.iter().step_by(17) {
            assert_eq!(client.strlen::<_, usize>(key(n)).expect("a number"), len, "{}: {n}", self.context);
        }
        (server, client)
    }

    fn set(&mut self, client: &mut Connection) -> Result<usize, RedisError> {
        let value = value(self.next).repeat([1, 5, 40][self.random.index(3)]);
        client.set::<_, _, ()>(key(self.next), &value)?;
        self.model.insert(self.next, value.len());
        self.next += 1;
        Ok(value.len())
    }

    /// Sets keys until one is refused and at least [`AT_LEAST`] bytes are stored. Earlier refusals are tolerated, because compactions that free
    /// the space of removed keys may lag behind the writes. Returns the number of bytes.
    fn fill(&mut self, client: &mut Connection) -> usize {
        let (mut bytes, mut refused_since) = (0, None);
        loop {
            match self.set(client) {
                Ok(len) => (bytes, refused_since) = (bytes + len, None),
                Err(error) => {
                    let said = error.to_string();
                    assert_eq!(error.code(), Some("MISCONF"), "{}: {said}", self.context);
                    if bytes > AT_LEAST {
                        return bytes;
                    }
                    let since = *refused_since.get_or_insert_with(Instant::now);
                    assert!(since.elapsed() < PATIENCE, "{}: only {bytes} bytes: {said}", self.context);
                }
            }
        }
    }

    fn remove(&mut self, client: &mut Connection) {
        // All keys, one in each call; nine of ten keys, twenty in each call; or all keys by one request.
        let (chosen, in_call): (Vec<u64>, usize) = match self.random.index(4) {
            0 => (self.model.keys().copied().collect(), 1),
            1 => (self.model.keys().copied().filter(|n| n % 10 > 0).collect(), 20),
            all => {
                let request = if all == 2 { cmd("FLUSHALL") } else { cmd("DELPREFIX").arg("0").clone() };
                request.query::<()>(client).unwrap_or_else(|error| panic!("{}: refused: {error}", self.context));
                return self.model.clear();
            }
        };
        for gone in chosen.chunks(in_call) {
            let removed = client.del::<_, usize>(gone.iter().map(|&n| key(n)).collect::<Vec<_>>());
            assert_eq!(removed, Ok(gone.len()), "{}: {gone:?}", self.context);
            for n in gone {
                self.model.remove(n);
            }
        }
    }

    /// Checks the commands on the full database, while no server has it open.
    fn commands(&self) {
        println!("{}: commands", self.context);
        let (room, other_disk) = (Room::within(self.mount.path(".")), Room::new());
        room.run(&format!("checkpoint '{}'", other_disk.path("copy").display())).ended(0);
        for line in ["delete 'no such key'", "compact", "verify", "stats"] {
            let ran = room.run(line);
            assert!(matches!(ran.code, Some(0 | 1)), "{line}: {ran:?}");
        }
        let put = room.run(&format!("put 'too much' {}", "v".repeat(100_000)));
        if put.code == Some(4) {
            check_says(&put.stderr, "next: make space");
        } else {
            room.run("delete 'too much'").ended(0);
        }
    }
}

#[test]
fn a_database_that_fills_its_disk_is_emptied_and_filled_again_over_kills() {
    // Catches a removal, start, compaction or checkpoint that is refused because the disk is full, and space that removals do not free.
    let name = "a_database_that_fills_its_disk_is_emptied_and_filled_again_over_kills";
    let Some(mount) = Mount::new(DISK, name) else { return };
    let (seed, rounds) = (number("FULL_DISK_SEED").unwrap_or(7), number("FULL_DISK_ROUNDS").unwrap_or(ROUNDS));
    let (model, random) = (BTreeMap::new(), Random(seed));
    let mut disk = Emptied { random, mount, context: String::new(), model, next: 0 };
    for round in 0..rounds {
        disk.context = format!("FULL_DISK_SEED={seed}, round {round}");
        let (mut server, mut client) = disk.start();
        let bytes = disk.fill(&mut client);
        println!("round {round}: {bytes} bytes in {} keys", disk.model.len());
        if disk.random.one_in(2) {
            server.kill();
            if disk.random.one_in(2) {
                disk.commands();
            }
            (server, client) = disk.start();
        }
        disk.remove(&mut client);
        if disk.random.one_in(2) {
            server.kill();
            (server, client) = disk.start();
        }
        wait_for("there is room", || disk.set(&mut client).is_ok());
        if disk.random.one_in(2) {
            server.kill();
        }
    }
}
