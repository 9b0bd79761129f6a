//! Clients that work on a cluster under faults. Each client counts its acknowledged writes on keys of its own, and takes part in the history of
//! shared keys.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use proof::Random;
use redis::{Value, from_redis_value};

use super::client::{Client, Failure};
use super::history::{History, Op, Outcome};

pub(super) const CLIENTS: usize = 8;
/// The number of clients that only read: the first at any node, the other at the leader, so that it stays with a deposed one.
const READERS: usize = 2;
/// The time that a client waits for a reply.
const PATIENCE: Duration = Duration::from_secs(2);
/// The number of shared keys at one time, and the operations on them until new keys replace them: the check of a long history takes long.
const SHARED_KEYS: usize = 3;
const OPERATIONS: usize = 150;

/// The shared state of the clients of a round.
pub(super) struct Load {
    pub(super) round: usize,
    pub(super) nodes: Vec<SocketAddr>,
    pub(super) history: History,
    pub(super) stop: AtomicBool,
    /// Writes that were acknowledged.
    pub(super) acknowledged: AtomicU64,
    /// Writes whose outcome is unknown.
    pub(super) unknown: AtomicU64,
    /// Operations on shared keys.
    operations: AtomicUsize,
}

impl Load {
    pub(super) fn new(round: usize, nodes: Vec<SocketAddr>) -> Self {
        Self {
            round,
            nodes,
            history: History::new(&format!("round-{round:04}")),
            stop: AtomicBool::new(false),
            acknowledged: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            operations: AtomicUsize::new(0),
        }
    }

    /// All shared keys so far.
    pub(super) fn shared_keys(&self) -> impl Iterator<Item = String> {
        let generations = self.operations.load(Ordering::Relaxed).div_ceil(OPERATIONS);
        let round = self.round;
        (0..generations).flat_map(move |generation| (0..SHARED_KEYS).map(move |key| shared_key(round, generation, key)))
    }

    /// Runs one operation on a shared key, and records it, unless no node has accepted it.
    pub(super) fn operate(&self, client: &mut Client, name: usize, key: &str, op: Op) -> Option<Outcome> {
        let call = self.history.now();
        let replied = match op {
            Op::Set(value) => client.call(&[op.name(), key, &value.to_string()]),
            _ => client.call(&[op.name(), key]),
        };
        let outcome = match replied {
            Ok(Value::Okay) => Outcome::Returned(None),
            Ok(reply) => Outcome::Returned(from_redis_value(reply).expect("a number")),
            Err(Failure::NotDone(_)) => return None,
            Err(Failure::Unknown(_)) => Outcome::Unknown,
        };
        self.history.record(name, key, op, call, outcome);
        Some(outcome)
    }

    fn count(&self, is_acknowledged: bool) {
        let counter = if is_acknowledged { &self.acknowledged } else { &self.unknown };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

fn shared_key(round: usize, generation: usize, key: usize) -> String {
    format!("shared {round} {generation} {key}")
}

/// A client, which works in all rounds.
pub(super) struct Worker {
    number: usize,
    random: Random,
    /// Increments of its counter: the acknowledged ones, and those of unknown outcome.
    acknowledged: i64,
    unknown: i64,
    /// The numbers of the keys that it wrote, each with its number as value: the last one, and the acknowledged ones.
    last: u64,
    pub(super) written: Vec<u64>,
    /// The acknowledged keys of earlier rounds.
    pub(super) earlier: usize,
}

impl Worker {
    pub(super) fn new(number: usize, seed: u64) -> Self {
        let random = Random(seed.wrapping_add(number as u64));
        Self { number, random, acknowledged: 0, unknown: 0, last: 0, written: Vec::new(), earlier: 0 }
    }

    pub(super) fn counter(&self) -> String {
        format!("counter {}", self.number)
    }

    /// The key that expires.
    pub(super) fn brief(&self) -> String {
        format!("brief {}", self.number)
    }

    pub(super) fn key(&self, number: u64) -> String {
        format!("line {} {number:06}", self.number)
    }

    /// The possible values of the counter.
    pub(super) fn counted(&self) -> RangeInclusive<i64> {
        self.acknowledged..=self.acknowledged + self.unknown
    }

    /// Works until the load is stopped.
    pub(super) fn run(&mut self, load: &Load) {
        let mut client = Client::new(load.nodes.clone(), self.number, PATIENCE);
        client.reads_anywhere = self.number == 0;
        while !load.stop.load(Ordering::Relaxed) {
            if client.reads_anywhere {
                client.at = load.nodes[self.random.index(load.nodes.len())];
            }
            match self.random.index(8) {
                _ if self.number < READERS => self.share(load, &mut client),
                0 | 1 => self.count(load, &mut client),
                2 => self.write(load, &mut client),
                3 => self.expire(&mut client),
                _ => self.share(load, &mut client),
            }
            thread::sleep(Duration::from_micros(self.random.index(2000) as u64));
        }
    }

    fn count(&mut self, load: &Load, client: &mut Client) {
        match client.call(&["INCR", &self.counter()]) {
            Ok(reply) => {
                let least = self.acknowledged + 1;
                let found: i64 = from_redis_value(reply).expect("a number");
                let range = least..=least + self.unknown;
                assert!(range.contains(&found), "client {}: expected {range:?}, found {found}", self.number);
                self.acknowledged += 1;
                load.count(true);
            }
            Err(Failure::Unknown(_)) => {
                self.unknown += 1;
                load.count(false);
            }
            Err(Failure::NotDone(_)) => {}
        }
    }

    fn write(&mut self, load: &Load, client: &mut Client) {
        // Numbers are not reused: a write of unknown outcome may take effect later.
        self.last += 1;
        match client.call(&["SET", &self.key(self.last), &self.last.to_string()]) {
            Ok(_) => {
                self.written.push(self.last);
                load.count(true);
            }
            Err(Failure::Unknown(_)) => load.count(false),
            Err(Failure::NotDone(_)) => {}
        }
    }

    /// Increments a key that expires repeatedly: if it expires at another log entry on one node, that node's count differs for ever.
    fn expire(&mut self, client: &mut Client) {
        let (key, millis) = (self.brief(), (1 + self.random.index(40)).to_string());
        let request = if self.random.index(4) == 0 { vec!["PEXPIRE", &key, &millis] } else { vec!["INCR", &key] };
        // Any reply is allowed: only a difference between the contents of the nodes is a fault.
        drop(client.call(&request));
    }

    fn share(&mut self, load: &Load, client: &mut Client) {
        let number = load.operations.fetch_add(1, Ordering::Relaxed);
        let key = shared_key(load.round, number / OPERATIONS, self.random.index(SHARED_KEYS));
        let op = match self.random.index(20) {
            _ if self.number < READERS => Op::Get,
            0..8 => Op::Get,
            // The values are far apart, so that increments of one value do not reach the next.
            8..13 => Op::Set(number as i64 * 1000),
            13..18 => Op::Incr,
            _ => Op::Del,
        };
        let outcome = load.operate(client, self.number, &key, op);
        if let (Some(outcome), Op::Set(_) | Op::Incr | Op::Del) = (outcome, op) {
            load.count(matches!(outcome, Outcome::Returned(_)));
        }
    }
}
