//! The context of a command: the server, the client, and the action that follows the command.

use mini_engine::{Durability, Error, WriteBatch};

use super::clients::Record;
use super::databases::Database;
use super::job::Job;
use super::key_state::KeyState;
use super::keyspace::Keyspace;
use super::listing::Listing;
use super::shared::Shared;
use super::watched::Watched;
use crate::groups::GroupRequests;
use crate::protocol::reply::{Outcome, Refusal, Reply, Version};
use crate::protocol::request::{Args, OwnedArgs};

/// An action that a command requests, other than its reply.
pub(crate) enum After {
    Nothing,
    /// The request continues at this point of the listing in a later step.
    Continue(Listing),
    /// The reply is this listing.
    Listed(Listing),
    /// The reply is the result of this work.
    Later(Work),
    /// The request has had no effect; it is carried out again after this work.
    Hold(Work),
    Close,
}

/// Work of other threads, for which a request waits.
#[derive(Debug)]
pub(crate) enum Work {
    Job(Job),
    /// The groups of a cluster carry out these requests.
    Groups(GroupRequests),
    /// A thread waits until there is room for this batch.
    Room(WriteBatch),
}

/// The context of a command over keys.
pub(crate) struct KeyContext<'a> {
    pub(crate) state: &'a mut KeyState,
    pub(crate) version: Version,
    /// See [`Client`].
    pub(crate) listing: &'a mut Option<Listing>,
    pub(crate) refusal: Option<&'a Error>,
    pub(crate) after: &'a mut After,
}

impl KeyContext<'_> {
    /// Refuses a number of a database that is not configured.
    pub(crate) fn check_database(&self, number: usize) -> Result<(), Refusal> {
        match number < self.state.databases {
            true => Ok(()),
            false => Err(Refusal::new("ERR DB index is out of range")),
        }
    }

    /// Opens database `number`; returns `None` and sets `after` if the database must be created first.
    pub(crate) fn open(&mut self, number: usize) -> Result<Option<Database>, Refusal> {
        self.check_database(number)?;
        let database = Database::open(&self.state.db, number)?;
        match (&database, self.refusal) {
            // The error stays until the commit, so that EXEC does not run later commands in the wrong database.
            (None, Some(error)) => return Err(error.clone().into()),
            (None, None) => *self.after = After::Hold(Work::Job(Job::Create(number))),
            (Some(_), _) => {}
        }
        Ok(database)
    }

    pub(crate) fn check_size(&self, reply: &Reply) -> Result<(), Refusal> {
        let most = self.state.request_bytes;
        // A value that fits into a request must fit into a reply.
        if reply.size() <= most + 64 {
            return Ok(());
        }
        Err(Refusal::new(format!("ERR the reply is longer than {most} bytes: nothing was done")))
    }
}

/// The context of a command that concerns the client or the server.
pub(crate) struct Context<'a> {
    pub(crate) shared: &'a mut Shared,
    pub(crate) client: &'a mut Client,
    pub(crate) after: After,
}

impl<'a> Context<'a> {
    pub(crate) fn new(shared: &'a mut Shared, client: &'a mut Client) -> Self {
        Self { shared, client, after: After::Nothing }
    }

    /// The record of the client.
    pub(crate) fn record(&mut self) -> Option<&mut Record> {
        self.shared.clients.get_mut(self.client.id)
    }

    /// The part of the context that commands over keys use.
    pub(crate) fn of_keys(&mut self) -> KeyContext<'_> {
        let Client { version, listing, refusal, .. } = &mut *self.client;
        let (state, after) = (&mut self.shared.keys, &mut self.after);
        KeyContext { state, version: *version, listing, refusal: refusal.as_ref(), after }
    }

    /// Makes `database` the client's selected database.
    pub(crate) fn use_database(&mut self, database: Database) {
        if let Some(record) = self.record() {
            record.database = database.number;
        }
        self.client.database = database;
    }

    /// Passes the writes in the keyspace to the engine, unless this would have to wait: then sets `after`.
    pub(crate) fn commit(&mut self, mut keyspace: Keyspace) -> Result<(), Error> {
        let lookups = keyspace.lookups();
        let batch = keyspace.take_batch()?;
        if batch.is_empty() {
            self.count_lookups(lookups);
            return Ok(());
        }
        let removes_ranges = keyspace.ranges() > 0;
        if removes_ranges {
            self.shared.clients.watched().for_each(Watched::before_removal);
        }
        let written = match self.client.refusal.take() {
            Some(error) => Err(error),
            None => self.shared.keys.db.try_write(&batch, Durability::Buffered),
        };
        if let Ok(None) = written {
            self.after = After::Hold(Work::Room(batch));
            return Ok(());
        }
        self.count_lookups(lookups);
        if removes_ranges {
            let is_written = |number, key: &[u8]| keyspace.has_written(number, key);
            self.shared.clients.watched().for_each(|watched| watched.after_removal(&self.shared.keys.db, is_written));
        }
        // The requests of a pipeline count one by one, although the batch of one that reads has one operation for each key.
        let operations = batch.len().max(keyspace.writes());
        self.shared.counters.writes.note(operations, written.as_ref().err());
        self.shared.syncs.is_unsynced |= written.is_ok();
        written.map(drop)
    }

    fn count_lookups(&mut self, [hits, misses]: [u64; 2]) {
        self.shared.counters.hits += hits;
        self.shared.counters.misses += misses;
    }

    pub(crate) fn is_held(&self) -> bool {
        matches!(self.after, After::Hold(_))
    }
}

/// The function of a command. The function returns a reply or a refusal; its writes to the keyspace are committed if it returns a reply.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// For a command over keys.
    Keys(fn(&mut KeyContext<'_>, &mut Keyspace, Args<'_>) -> Outcome),
    /// For a command that concerns the client or the server.
    Server(fn(&mut Context<'_>, &mut Keyspace, Args<'_>) -> Outcome),
}

impl Run {
    pub(crate) fn call(self, context: &mut Context<'_>, keyspace: &mut Keyspace, args: Args<'_>) -> Outcome {
        match self {
            Self::Keys(run) => run(&mut context.of_keys(), keyspace, args),
            Self::Server(run) => run(context, keyspace, args),
        }
    }
}

/// The state of a client.
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) version: Version,
    pub(crate) is_authenticated: bool,
    /// The selected database.
    pub(crate) database: Database,
    pub(crate) transaction: Option<Transaction>,
    /// The entries found so far by the current request, if it takes several steps.
    pub(crate) listing: Option<Listing>,
    /// The reason why the event for which its request waited did not happen.
    pub(crate) refusal: Option<Error>,
}

impl Client {
    /// Takes the transaction, which this command ends. If there is none, the command is refused, and nothing else changes.
    pub(crate) fn take_transaction(&mut self, command: &str) -> Result<Transaction, Refusal> {
        self.transaction.take().ok_or_else(|| Refusal::new(format!("ERR {command} without MULTI")))
    }

    /// A client whose selected database is `database`.
    pub(crate) fn new(id: u64, database: Database, is_authenticated: bool) -> Self {
        Self {
            id,
            version: Version::default(),
            is_authenticated,
            database,
            transaction: None,
            listing: None,
            refusal: None,
        }
    }
}

/// The commands that MULTI has queued.
#[derive(Default)]
pub(crate) struct Transaction {
    pub(crate) commands: Vec<Queued>,
    /// The memory of the commands and their arguments, in bytes.
    pub(crate) bytes: usize,
    /// Whether a command was refused when it was queued.
    pub(crate) is_spoilt: bool,
}

/// A queued command, which EXEC carries out.
pub(crate) struct Queued {
    pub(crate) run: Run,
    pub(crate) args: OwnedArgs,
    /// The command's index in the table of commands, and its name.
    pub(crate) place: usize,
    pub(crate) name: &'static str,
}

impl Transaction {
    /// Refuses to carry the transaction out if a command was refused.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        match self.is_spoilt {
            true => Err(Refusal::new("EXECABORT Transaction discarded because of previous errors.")),
            false => Ok(()),
        }
    }

    pub(crate) fn spoil(&mut self) {
        self.is_spoilt = true;
        // The transaction will not be carried out, so its memory is freed at once.
        (self.commands, self.bytes) = (Vec::new(), 0);
    }

    pub(crate) fn size(&self) -> usize {
        self.bytes + (self.commands.capacity() - self.commands.len()) * size_of::<Queued>()
    }
}
