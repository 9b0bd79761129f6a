//! Carries out reads, and the proposals that a group has agreed on: it runs the same commands as a server of one node, on the database of a group.
//!
//! The result of an apply depends only on the database and the proposal. So its limits are constants ([`MAX_REQUEST_BYTES`]), its time is the instant
//! of the proposal, and it does not carry out commands that depend on other state (the texts of SCRIPT, cursors, other databases).
//!
//! A refused write changes nothing and has an error reply, as on any server. A failure of the engine, such as damage or a full disk, ends the apply,
//! because the other nodes do not have this failure.
//!
//! Clients' data is in a separate keyspace ([`KEYSPACE`]). So no key is reserved for the data that the state machine stores in the same database.

use std::time::SystemTime;

use mini_engine::{Db, Error, MAX_BATCH_RANGES, Result, WriteBatch};

use super::instant::{self, AppliedInstant};
use crate::commands::transaction::run_all;
use crate::commands::{self, Command, Scope};
use crate::groups::{Kind, Proposal, Replies, Request, Transaction, Watched, Write, encode, encode_watched};
use crate::protocol::cursors::ScanCursors;
use crate::protocol::reply::{Outcome, Refusal, Reply, Version};
use crate::protocol::request::Args;
use crate::session::run_keys;
use crate::settings::MAX_REQUEST_BYTES;
use crate::state::clock::since_1970;
use crate::state::context::{After, KeyContext};
use crate::state::databases::Database;
use crate::state::key_state::KeyState;
use crate::state::keyspace::Keyspace;
use crate::state::scripts::Scripts;

/// The keyspace of a group's database that holds the clients' data.
pub const KEYSPACE: &str = "0";

/// The maximum number of bytes that the writes of a proposal store and reply, unless it is a single write. They are in memory until the proposal is
/// applied.
const MAX_PROPOSAL_BYTES: usize = 64 << 20;

/// Carries out proposals and reads. Each state machine has one executor for its proposals, and each group has some for its reads.
///
/// Until it is dropped, it holds a handle of the database that it was given last.
pub struct Executor {
    instant: AppliedInstant,
    /// The instant of the last proposal; it may not be stored yet.
    latest: u64,
    state: Option<KeyState>,
}

impl Executor {
    /// Creates an executor for the group with this instant.
    pub fn new(instant: AppliedInstant) -> Self {
        Self { instant, latest: 0, state: None }
    }

    /// Whether the writes of a proposal depend on stored data; if not, the writes of consecutive proposals may share one batch. A proposal without
    /// writes counts as one that reads, so that it raises the instant at once.
    pub fn reads(proposal: &Proposal) -> bool {
        let is_blind = |write: &Write| match &write.0 {
            Kind::Request(request) => {
                let args = request.args();
                command(args).is_ok_and(|command| command.is_blind(args.len()))
            }
            Kind::Transaction(_) | Kind::Watch { .. } | Kind::Check => false,
        };
        proposal.writes.is_empty() || !proposal.writes.iter().all(is_blind)
    }

    /// Whether a write may add data: one of its commands does more than read and remove keys.
    pub fn grows(write: &Write) -> bool {
        let grows = |request: &Request| command(request.args()).is_ok_and(|command| command.grows(request.args()));
        match &write.0 {
            Kind::Request(request) => grows(request),
            Kind::Transaction(transaction) => transaction.requests.iter().any(grows),
            Kind::Watch { .. } | Kind::Check => false,
        }
    }

    /// Adds the writes of the proposal, a log entry of this term, and its instant to `batch`, and returns the replies. The group's instant is raised
    /// to that of the proposal now if the proposal [`reads`](Self::reads), and otherwise with the next proposal that does.
    ///
    /// # Errors
    /// Returns errors of the engine. Then the node must end: the other nodes do not have the same error.
    pub fn apply(&mut self, db: &Db, term: u64, proposal: &Proposal, batch: &mut WriteBatch) -> Result<Replies> {
        self.instant.recover(db)?;
        self.latest = self.latest.max(self.instant.millis()).max(proposal.at);
        if Self::reads(proposal) {
            // Everything before this proposal is stored. Otherwise entries might expire by an instant that is not stored yet: if the node were killed
            // now, it would apply them again, and find fewer keys than the other nodes.
            self.instant.raise(self.latest);
        }
        let mut keyspace = begin(db, instant::time(self.latest))?;
        let (state, mut used) = (self.state(db), 0);
        let replies = proposal.writes.iter().map(|write| apply(state, &mut keyspace, (write, term), &mut used));
        let replies = replies.collect::<Result<_>>()?;
        keyspace.add_to(batch)?;
        instant::store(self.latest, batch)?;
        Ok(Replies(replies))
    }

    /// The reply to a request that only reads, as bytes. The call may wait for the disk, and its time grows with the number of visited entries.
    ///
    /// # Errors
    /// [`Error::Closed`] if a snapshot has replaced the database. Other errors are returned as the reply.
    pub fn read(&mut self, cursors: &ScanCursors, db: &Db, request: &Request) -> Result<Vec<u8>> {
        let mut keyspace = begin(db, self.instant.system_time())?;
        let state = self.state(db);
        state.cursors = cursors.clone();
        let outcome = read(state, &mut keyspace, request);
        if let Err(refusal) = &outcome
            && let Some(Error::Closed) = refusal.cause()
        {
            return Err(Error::Closed);
        }
        Ok(encode(&outcome.unwrap_or_else(Refusal::into_reply), request.version))
    }

    /// The state on which commands depend, with `db` as the database. It is the same on every node, so users cannot configure it.
    fn state(&mut self, db: &Db) -> &mut KeyState {
        let state = self.state.get_or_insert_with(|| KeyState {
            db: db.clone(),
            request_bytes: MAX_REQUEST_BYTES,
            databases: 1,
            may_flush_all: false,
            cursors: ScanCursors::new(1),
            scripts: Scripts::default(),
        });
        state.db = db.clone();
        state
    }
}

/// The clients' keyspace at this instant.
fn begin(db: &Db, instant: SystemTime) -> Result<Keyspace> {
    Ok(Keyspace::at(Database { number: 0, stored: db.keyspace(KEYSPACE)? }, instant))
}

/// Runs a command over keys for a client that uses protocol `version`. No reply takes several steps, since the keyspace is made for several commands.
fn run(state: &mut KeyState, keyspace: &mut Keyspace, version: Version, command: &Command, args: Args<'_>) -> Outcome {
    let (listing, after) = (&mut None, &mut After::Nothing);
    run_keys(&mut KeyContext { state, version, listing, refusal: None, after }, keyspace, command, args)
}

/// The command of a request, if it is a command over keys.
fn command(args: Args<'_>) -> Result<&'static Command, Refusal> {
    let command = commands::find(args)?;
    check(command.scope() == Scope::Keys && !command.runs_at_once(), command).map(|()| command)
}

/// The command of a request, if a proposal may contain it.
fn command_of_proposal(args: Args<'_>) -> Result<&'static Command, Refusal> {
    let command = command(args)?;
    check(command.follows_from_keys(), command).map(|()| command)
}

fn check(is_right: bool, command: &Command) -> Result<(), Refusal> {
    is_right.then_some(()).ok_or_else(|| command.misplaced())
}

/// Carries out a write, and returns the bytes of its reply.
fn apply(
    state: &mut KeyState,
    keyspace: &mut Keyspace,
    (write, term): (&Write, u64),
    used: &mut usize,
) -> Result<Vec<u8>> {
    let mark = keyspace.begin();
    let (version, outcome) = match &write.0 {
        Kind::Request(request) => {
            let args = request.args();
            let version = request.version;
            (version, command_of_proposal(args).and_then(|command| run(state, keyspace, version, command, args)))
        }
        Kind::Transaction(transaction) => (transaction.version(), carry_out(state, keyspace, transaction, term)),
        Kind::Watch { keys, .. } => {
            let expiries = keys.iter().map(|key| expiry(keyspace, key)).collect::<Result<Vec<_>>>()?;
            return Ok(encode_watched(term, expiries.into_iter()));
        }
        Kind::Check => (Version::Resp2, Ok(Reply::OK)),
    };
    let reply = match outcome.and_then(|reply| check_room(keyspace, &reply, *used).map(|()| reply)) {
        Ok(reply) => {
            *used += keyspace.bytes() + reply.size();
            reply
        }
        Err(refusal) => {
            if let Some(error) = failure(&refusal) {
                return Err(error.clone());
            }
            keyspace.undo(mark);
            refusal.into_reply()
        }
    };
    Ok(encode(&reply, version))
}

fn read(state: &mut KeyState, keyspace: &mut Keyspace, request: &Request) -> Outcome {
    let command = command(request.args())?;
    check(!command.writes(), command)?;
    run(state, keyspace, request.version, command, request.args())
}

/// The expiry time of a key in milliseconds since 1970; 0 if it has none, or if the key is absent.
fn expiry(keyspace: &Keyspace, key: &[u8]) -> Result<u64> {
    let found = keyspace.get_with_expiry(key)?;
    Ok(found.and_then(|(_, at)| at).map_or(0, |at| since_1970(at).as_millis() as u64))
}

fn carry_out(state: &mut KeyState, keyspace: &mut Keyspace, transaction: &Transaction, term: u64) -> Outcome {
    let now = since_1970(keyspace.now()).as_millis() as u64;
    let has_changed = |watched: &Watched| watched.term != term || (1..=now).contains(&watched.expires_at);
    if transaction.is_changed || transaction.watched.iter().any(has_changed) {
        return Ok(Reply::NullArray);
    }
    let requests = transaction.requests.iter();
    let commands: Vec<&Command> =
        requests.clone().map(|request| command_of_proposal(request.args())).collect::<Result<_, _>>()?;
    let replies =
        run_all(state.request_bytes, keyspace, commands.into_iter().zip(requests), |keyspace, (command, request)| {
            let outcome = keyspace.attempt(|keyspace| run(state, keyspace, request.version, command, request.args()));
            match outcome {
                Err(refusal) if failure(&refusal).is_some() => Err(refusal),
                outcome => Ok(Some(outcome.unwrap_or_else(Refusal::into_reply))),
            }
        });
    replies.map(Reply::Array)
}

/// The engine's error, unless every node gets the same error.
fn failure(refusal: &Refusal) -> Option<&Error> {
    refusal.cause().filter(|error| !matches!(error, Error::InvalidArgument(_)))
}

/// Refuses a write if the earlier writes of the same proposal leave no room for it.
fn check_room(keyspace: &Keyspace, reply: &Reply, used: usize) -> Result<(), Refusal> {
    let is_too_long = used > 0 && used + keyspace.bytes() + reply.size() > MAX_PROPOSAL_BYTES;
    match is_too_long || keyspace.ranges_of_all() > MAX_BATCH_RANGES as usize {
        true => Err(Refusal::new("TRYAGAIN too much is written or read at once: nothing was done")),
        false => Ok(()),
    }
}
