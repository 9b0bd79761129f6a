//! Nodes without a log: proposals are applied directly.

mod alone;
mod classes;
mod conversations;
mod power;
mod proposals;

use std::cell::{RefCell, RefMut};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use mini_engine::{Db, Durability, WriteBatch};
use proof::Clock;
use proof::disk::MemFs;

use super::*;
use crate::groups::GroupReplies;
use crate::protocol::output::Output;
use crate::session::tests::exchanges;
use crate::session::{Session, Step};
use crate::settings::Settings;
use crate::state::context::Work;
use crate::state::shared::Shared;

/// An instant long ago: a command that used the system's time would behave differently.
const LONG_AGO: u64 = 1_000_000_000_000;

/// The key of [`Node::applied`], in the keyspace that clients do not see.
const APPLIED: &str = "applied";

/// A node of a cluster with one group, unless the test changes this.
struct Node {
    mem: MemFs,
    /// The database's clock, which is the applied instant, as in a cluster; checked after each proposal.
    clock: Clock,
    db: Db,
    instant: AppliedInstant,
    /// The greatest instant of any proposal.
    latest: u64,
    /// The number of proposals; each proposal stores it, as a cluster stores its position in the log.
    applied: u64,
    executor: Executor,
    watches: Watches,
    /// The term of the proposals.
    term: u64,
    shared: RefCell<Shared>,
    redirect: Arc<Mutex<Redirect>>,
}

/// The function behind [`Cluster::redirect`].
type Redirect = fn(u16, Access) -> Option<String>;

/// The groups, as the interface that a client's session uses.
struct TestGroups {
    is_one_group: bool,
    redirect: Arc<Mutex<Redirect>>,
    db: Db,
}

impl Cluster for TestGroups {
    fn is_one_group(&self) -> bool {
        self.is_one_group
    }

    fn redirect(&self, slot: u16, access: Access) -> Option<String> {
        let redirect = *self.redirect.lock().expect("no panic");
        redirect(slot, access)
    }

    fn begin(&self, _: GroupRequests, _: ReplySender) {
        unreachable!("there is no event loop");
    }

    fn gauges(&self) -> Vec<Gauge> {
        Vec::new()
    }

    fn cluster(&self, request: &Request) -> Reply {
        Reply::count(request.parts().len())
    }

    fn standing(&self) -> Standing {
        let leader = Some(("10.0.0.7".to_owned(), 7002));
        Standing { followers: None, leader, is_leader_heard: true, clock_ahead: -3_600_000, lacks_room: true }
    }

    fn db(&self) -> Db {
        self.db.clone()
    }
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
        let redirect: Arc<Mutex<Redirect>> = Arc::new(Mutex::new(|_, _| None));
        let mut shared = Shared::new(db.clone(), settings.in_cluster(), 1);
        shared.cluster =
            Some(Box::new(TestGroups { is_one_group: groups == 1, redirect: Arc::clone(&redirect), db: db.clone() }));
        shared.port = 7001;
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
            watches: Watches::default(),
            term: 1,
            shared: shared.into(),
            redirect,
        }
    }

    /// The same node after its process was killed and started again.
    fn restarted(self) -> Self {
        let mem = self.mem.clone();
        drop(self);
        Self::open(mem, 1, Settings::default())
    }

    /// Applies a proposal, and returns the replies.
    fn propose(&mut self, at: u64, writes: Vec<Write>) -> Vec<String> {
        self.replies(at, writes).iter().map(|reply| shown(reply)).collect()
    }

    fn replies(&mut self, at: u64, mut writes: Vec<Write>) -> GroupReplies {
        writes.iter_mut().for_each(|write| self.watches.note(write));
        let (proposal, mut batch) = (sent(&Proposal { at, writes }), WriteBatch::new());
        let before = self.latest;
        self.latest = before.max(at);
        let raised = if Executor::reads(&proposal) { self.latest } else { before };
        // Set before the apply reads the clock.
        self.clock.set(SystemTime::UNIX_EPOCH + Duration::from_millis(raised));
        let replies = self.executor.apply(&self.db, self.term, &proposal, &mut batch).expect("a sound disk");
        assert_eq!(self.clock.now(), self.instant.system_time());
        self.applied += 1;
        batch.insert(APPLIED, self.applied.to_le_bytes()).expect("small");
        self.db.write(batch, Durability::Buffered).expect("a sound disk");
        replies.0
    }

    /// Proposes requests together. Each request is a line of words.
    fn write(&mut self, at: u64, requests: &[&str]) -> Vec<String> {
        self.propose(at, requests.iter().map(|line| request(line).into()).collect())
    }

    fn read(&self, line: &str) -> String {
        let cursors = self.shared().keys.cursors.clone();
        shown(&self.read_request(&cursors, &request(line)))
    }

    fn read_request(&self, cursors: &ScanCursors, request: &Request) -> Vec<u8> {
        Executor::new(self.instant.clone()).read(cursors, &self.db, request).expect("a sound disk")
    }

    fn shared(&self) -> RefMut<'_, Shared> {
        self.shared.borrow_mut()
    }

    /// Carries out the requests that a session has passed on.
    fn carry_out(&mut self, at: u64, requests: GroupRequests) -> GroupReplies {
        match requests {
            GroupRequests::Writes(writes) => self.replies(at, writes.into_iter().map(|(_, write)| write).collect()),
            GroupRequests::Reads { requests, cursors, .. } => {
                let read = |(_, request): &(u16, Request)| self.read_request(&cursors, request);
                requests.iter().map(read).collect()
            }
        }
    }

    /// All keys and values that clients have stored, with their expiry times.
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

/// A line as input, or the bytes of a request.
fn input(line: &str) -> String {
    format!("{line}{}", if line.starts_with('*') { "" } else { "\r\n" })
}

fn bytes_of(output: &Output) -> Vec<u8> {
    let mut bytes = Vec::new();
    output.copy_into(&mut bytes);
    bytes
}

fn sent_to(output: &Output) -> String {
    shown(&bytes_of(output))
}

/// The proposal after it was encoded and decoded, as in a log.
fn sent(proposal: &Proposal) -> Proposal {
    let bytes = postcard::to_stdvec(proposal).expect("encoded");
    postcard::from_bytes(&bytes).expect("decoded")
}

/// A client of a node.
struct Client {
    session: Session,
}

impl Client {
    fn new(node: &Node) -> Self {
        Self { session: Session::new(&mut node.shared()) }
    }

    fn step(&mut self, node: &Node, input: &[u8], output: &mut Output) -> Step {
        self.session.step(&mut node.shared(), input, 100, output)
    }

    /// The next step of a request, and the reply if there is one.
    fn next(&mut self, node: &Node, line: &str) -> (Step, String) {
        let mut output = Output::default();
        let step = self.step(node, input(line).as_bytes(), &mut output);
        (step, sent_to(&output))
    }

    /// The write of a request that is passed on to a group.
    fn next_write(&mut self, node: &Node, line: &str) -> Write {
        let (Step::Later(0, Work::Groups(GroupRequests::Writes(mut writes))), _) = self.next(node, line) else {
            panic!("{line}: a write")
        };
        writes.remove(0).1
    }

    fn next_at(&mut self, node: &Node, line: &str, redirect: Redirect) -> (Step, String) {
        *node.redirect.lock().expect("no panic") = redirect;
        self.next(node, line)
    }

    /// Sends a request, carries it out on the node at `at`, and returns the reply.
    fn say(&mut self, node: &mut Node, at: u64, line: &str) -> String {
        shown(&self.exchange(node, at, input(line).as_bytes()))
    }

    /// Sends requests together, and carries them out on the node. Returns the replies.
    fn exchange(&mut self, node: &mut Node, at: u64, input: &[u8]) -> Vec<u8> {
        let (mut output, mut begin) = (Output::default(), 0);
        while begin < input.len() {
            match self.step(node, &input[begin..], &mut output) {
                Step::Done { len, .. } | Step::Empty(len) => begin += len,
                Step::Later(0, Work::Groups(requests)) => {
                    let replies = node.carry_out(at, requests);
                    let requests = (&input[begin..], &mut output);
                    begin += self.session.answered(&mut node.shared(), requests, replies);
                }
                Step::Close => break,
                step => panic!("{step:?}"),
            }
        }
        bytes_of(&output)
    }

    /// Sends each request of [`exchanges`], and compares the replies.
    #[track_caller]
    fn talk(&mut self, node: &mut Node, session: &str) {
        for (line, expected) in exchanges(session) {
            assert_eq!(self.say(node, LONG_AGO, line), expected, "{line}");
        }
    }
}
