//! The context of a command: the server, the client, and the action after the reply.

use mini_engine::{Durability, Error, WriteBatch};

use super::clients::Record;
use super::databases::Database;
use super::job::Job;
use super::key_state::KeyState;
use super::keyspace::Keyspace;
use super::listing::Listing;
use super::shared::Shared;
use super::watched::Watched;
use crate::groups::Ask;
use crate::protocol::reply::{Outcome, Refusal, Reply, Version};
use crate::protocol::request::{Args, OwnedArgs};

/// An action that a command requests besides its reply.
pub(crate) enum After {
    Nothing,
    /// The request continues from there.
    Continue(Listing),
    /// The listing is the reply.
    Listed(Listing),
    Later(Job),
    /// The request has had no effect, and is carried out again after the wait.
    Hold(Wait),
    /// The reply is that of groups of a cluster.
    Ask(Ask),
    Close,
}

/// What a request waits for, while another thread waits for the disk.
#[derive(Debug)]
pub(crate) enum Wait {
    /// Room for a batch.
    Room(WriteBatch),
    /// A database, by its number, that does not exist yet.
    Database(usize),
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
    /// Refuses the number of a database that there cannot be.
    pub(crate) fn check_database(&self, number: usize) -> Result<(), Refusal> {
        match number < self.state.databases {
            true => Ok(()),
            false => Err(Refusal::new("ERR DB index is out of range")),
        }
    }

    /// Database `number`, unless it has to be created first: then `after` says so.
    pub(crate) fn open(&mut self, number: usize) -> Result<Option<Database>, Refusal> {
        self.check_database(number)?;
        let database = Database::open(&self.state.db, number)?;
        match (&database, self.refusal) {
            // It stays for the commit: what EXEC would do behind this command is not meant for the database before it.
            (None, Some(error)) => return Err(error.clone().into()),
            (None, None) => *self.after = After::Hold(Wait::Database(number)),
            (Some(_), _) => {}
        }
        Ok(database)
    }

    pub(crate) fn check_size(&self, reply: &Reply) -> Result<(), Refusal> {
        let most = self.state.request_bytes;
        // A value that fits into a request fits into a reply.
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

impl Context<'_> {
    /// The record of the client.
    pub(crate) fn record(&mut self) -> Option<&mut Record> {
        self.shared.clients.get_mut(self.client.id)
    }

    /// What commands over keys see of it.
    pub(crate) fn of_keys(&mut self) -> KeyContext<'_> {
        let Client { version, listing, refusal, .. } = &mut *self.client;
        let (state, after) = (&mut self.shared.keys, &mut self.after);
        KeyContext { state, version: *version, listing, refusal: refusal.as_ref(), after }
    }

    /// Makes `database` the one that the client has selected.
    pub(crate) fn use_database(&mut self, database: Database) {
        if let Some(record) = self.record() {
            record.database = database.number;
        }
        self.client.database = database;
    }

    /// Passes the writes in the keyspace to the engine, unless that would have to wait: then `after` says so.
    pub(crate) fn commit(&mut self, mut keyspace: Keyspace) -> Result<(), Error> {
        let [hits, misses] = keyspace.lookups();
        let batch = keyspace.take_batch()?;
        self.shared.counters.hits += hits;
        self.shared.counters.misses += misses;
        if batch.is_empty() {
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
            self.after = After::Hold(Wait::Room(batch));
            return Ok(());
        }
        if removes_ranges {
            let is_written = |number, key: &[u8]| keyspace.has_written(number, key);
            self.shared.clients.watched().for_each(|watched| watched.after_removal(&self.shared.keys.db, is_written));
        }
        self.shared.writes.note(batch.len(), written.as_ref().err());
        self.shared.is_unsynced |= written.is_ok();
        written.map(drop)
    }

    pub(crate) fn is_held(&self) -> bool {
        matches!(self.after, After::Hold(_))
    }
}

/// The function of a command. It answers or refuses; its writes to the keyspace are committed if it answers.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// Of a command over keys.
    Keys(fn(&mut KeyContext<'_>, &mut Keyspace, Args<'_>) -> Outcome),
    /// Of one that concerns the client or the server.
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
    /// The database that it has selected.
    pub(crate) database: Database,
    pub(crate) transaction: Option<Transaction>,
    /// The entries found so far by the current request, if it takes several steps.
    pub(crate) listing: Option<Listing>,
    /// The reason for which what its request waited for did not come.
    pub(crate) refusal: Option<Error>,
}

impl Client {
    /// Takes the transaction that a command ends. Without one, the command is refused, and nothing else ends.
    pub(crate) fn take_transaction(&mut self, command: &str) -> Result<Transaction, Refusal> {
        self.transaction.take().ok_or_else(|| Refusal::new(format!("ERR {command} without MULTI")))
    }

    /// A client that begins in `database`.
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
    /// Bytes of memory of the commands and their arguments.
    pub(crate) bytes: usize,
    /// Whether a command was refused.
    pub(crate) is_spoilt: bool,
}

/// A command that is carried out by EXEC.
pub(crate) struct Queued {
    pub(crate) run: Run,
    pub(crate) args: OwnedArgs,
    /// Its place in the table of commands, and its name.
    pub(crate) place: usize,
    pub(crate) name: &'static str,
}

impl Transaction {
    /// Refuses to carry it out if a command was refused.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        match self.is_spoilt {
            true => Err(Refusal::new("EXECABORT Transaction discarded because of previous errors.")),
            false => Ok(()),
        }
    }

    pub(crate) fn spoil(&mut self) {
        self.is_spoilt = true;
        // It will not be carried out, so its memory is freed at once.
        (self.commands, self.bytes) = (Vec::new(), 0);
    }

    pub(crate) fn size(&self) -> usize {
        self.bytes + (self.commands.capacity() - self.commands.len()) * size_of::<Queued>()
    }
}
