//! Nodes without a log: what is proposed is applied.

mod alone;
mod classes;
mod conversations;
mod power;
mod proposals;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mini_engine::{Db, Durability, WriteBatch};
use proof::Clock;
use proof::disk::MemFs;

use super::*;
use crate::settings::Settings;

/// An instant long ago: a command that asked the system for the time would do something else.
const LONG_AGO: u64 = 1_000_000_000_000;

/// The key of [`Node::applied`], in the keyspace that clients do not see.
const APPLIED: &str = "applied";

/// A node of a cluster with one group, unless it has been told otherwise.
struct Node {
    mem: MemFs,
    /// Its time is the applied instant, as in a cluster; checked after each proposal.
    clock: Clock,
    db: Db,
    instant: AppliedInstant,
    /// The greatest instant of any proposal.
    latest: u64,
    /// The number of proposals, which is stored with each as a cluster stores its place in the log.
    applied: u64,
    executor: Executor,
    front: Front,
}

impl Node {
    fn new() -> Self {
        Self::with(1, Settings::default())
    }

    fn with(groups: u16, settings: Settings) -> Self {
        Self::open(MemFs::default(), groups, settings)
    }

    fn open(mem: MemFs, groups: u16, settings: Settings) -> Self {
        let clock = Clock::at(SystemTime::UNIX_EPOCH);
        let builder = Db::builder("/db").memtable_bytes(1 << 20).file_system(Arc::new(mem.clone()));
        let db = builder.time_source(clock.source()).open().expect("open");
        let instant = AppliedInstant::default();
        let front = Front::new(settings, groups, ("127.0.0.1".to_owned(), 7001), db.clone());
        instant.recover(&db).expect("a sound database");
        clock.set(instant.system_time());
        let applied = db.get(APPLIED).expect("a sound database");
        let applied = applied.map_or(0, |bytes| u64::from_le_bytes((*bytes).try_into().expect("8 bytes")));
        Self {
            mem,
            clock,
            db,
            executor: Executor::new(instant.clone()),
            latest: instant.millis(),
            applied,
            instant,
            front,
        }
    }

    /// The same node after its process was killed.
    fn restarted(self) -> Self {
        let mem = self.mem.clone();
        drop(self);
        Self::open(mem, 1, Settings::default())
    }

    /// Applies a proposal, and returns its replies.
    fn propose(&mut self, at: u64, writes: Vec<Write>) -> Vec<String> {
        let (proposal, mut batch) = (sent(&Proposal { at, writes }), WriteBatch::new());
        let before = self.latest;
        self.latest = before.max(at);
        let raised = if Executor::reads(&proposal) { self.latest } else { before };
        // Before the apply reads.
        self.clock.set(SystemTime::UNIX_EPOCH + Duration::from_millis(raised));
        let replies = self.executor.apply(&self.db, &proposal, &mut batch).expect("a sound disk");
        assert_eq!(self.clock.now(), self.instant.system_time());
        self.applied += 1;
        batch.insert(APPLIED, self.applied.to_le_bytes()).expect("small");
        self.db.write(batch, Durability::Buffered).expect("a sound disk");
        replies.0.iter().map(|reply| shown(reply)).collect()
    }

    /// Proposes requests together. Each is a line of words.
    fn write(&mut self, at: u64, requests: &[&str]) -> Vec<String> {
        self.propose(at, requests.iter().map(|line| request(line).into()).collect())
    }

    fn read(&self, line: &str) -> String {
        let mut out = Vec::new();
        let read = Executor::new(self.instant.clone()).read(&self.front, &self.db, &request(line), &mut out);
        read.expect("a sound disk");
        shown(&out)
    }

    /// All that the clients have stored, with the times at which it expires.
    fn contents(&self) -> Vec<(String, String, Option<SystemTime>)> {
        let stored = self.db.keyspace(KEYSPACE).expect("a sound disk");
        let keys: Vec<_> = stored.iter().map(|entry| entry.expect("a sound disk").0).collect();
        let entry = |key: &mini_engine::Slice| {
            let (value, expiry) = stored.get_with_expiry(key).expect("a sound disk").expect("it was there");
            (shown(key), shown(&value), expiry)
        };
        keys.iter().map(entry).collect()
    }
}

fn request(line: &str) -> Request {
    Request::new(line.split_ascii_whitespace())
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().replace("\r\n", " ")
}

/// What comes out of the log.
fn sent(proposal: &Proposal) -> Proposal {
    let bytes = postcard::to_stdvec(proposal).expect("encoded");
    postcard::from_bytes(&bytes).expect("decoded")
}

/// A client of a node.
struct Client {
    conversation: Conversation,
}

impl Client {
    fn new(node: &Node) -> Self {
        let addresses = ["127.0.0.1:50000", "127.0.0.1:7001"].map(str::to_owned);
        Self { conversation: Conversation::new(&node.front, addresses) }
    }

    /// The next thing to do for a request, and the reply if it was answered.
    fn next(&mut self, node: &Node, line: &str) -> (Next, String) {
        self.next_at(node, line, &|_, _| None)
    }

    fn next_at(&mut self, node: &Node, line: &str, redirect: Redirect<'_>) -> (Next, String) {
        let end = if line.starts_with('*') { "" } else { "\r\n" };
        let (input, mut out) = (format!("{line}{end}"), Vec::new());
        let (len, next) = self.conversation.next(&node.front, input.as_bytes(), redirect, &mut out);
        assert_eq!(len, input.len(), "{line}");
        (next, shown(&out))
    }

    /// Does what the node has to do for a request, at `at`. Returns its reply.
    fn say(&mut self, node: &mut Node, at: u64, line: &str) -> String {
        match self.next(node, line) {
            (Next::Answered | Next::Close, reply) => reply,
            (Next::Write { write, .. }, _) => node.propose(at, vec![write]).remove(0),
            (Next::Read { request, .. }, _) => {
                let mut out = Vec::new();
                node.executor.read(&node.front, &node.db, &request, &mut out).expect("a sound disk");
                shown(&out)
            }
            (Next::Watch { keys, .. }, _) => {
                let (watched, mut out) = (node.executor.watch(&node.db, &keys).expect("a sound disk"), Vec::new());
                self.conversation.watch(watched, &mut out);
                shown(&out)
            }
            (next @ (Next::Incomplete | Next::Cluster(_)), _) => panic!("{line}: {next:?}"),
        }
    }

    /// Sends each line of `request => reply | request => reply`, and compares the replies.
    #[track_caller]
    fn talk(&mut self, node: &mut Node, session: &str) {
        for exchange in session.split(['|', '\n']) {
            let (line, expected) = exchange.split_once("=>").expect("a request and its reply");
            assert_eq!(self.say(node, LONG_AGO, line.trim()), expected.trim(), "{line}");
        }
    }
}
