//! The context of a command: the server, the client, and the action after the reply.

use mini_engine::{Durability, Error, WriteBatch};

use super::clients::Record;
use super::job::Job;
use super::keyspace::Keyspace;
use super::listing::Listing;
use super::shared::Shared;
use crate::protocol::reply::{Refusal, Reply, Version};
use crate::protocol::request::{Args, OwnedArgs};

/// An action that a command requests besides its reply.
pub(crate) enum After {
    Nothing,
    /// The request continues from there.
    Continue(Listing),
    /// The listing is the reply.
    Listed(Listing),
    Later(Job),
    /// The request is carried out again when there is room for its writes.
    Hold(WriteBatch),
    Close,
}

/// The context of a command.
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

    /// Passes the writes in the keyspace to the engine, unless that would have to wait: then `after` says so.
    pub(crate) fn commit(&mut self, keyspace: Keyspace<'_>) -> Result<(), Error> {
        let batch = keyspace.into_batch();
        if batch.is_empty() {
            return Ok(());
        }
        let written = match self.client.refusal.take() {
            Some(error) => Err(error),
            None => self.shared.db.try_write(&batch, Durability::Buffered),
        };
        if let Ok(None) = written {
            self.after = After::Hold(batch);
            return Ok(());
        }
        self.shared.writes.note(batch.len(), written.as_ref().err());
        self.shared.is_unsynced |= written.is_ok();
        written.map(drop)
    }

    pub(crate) fn is_held(&self) -> bool {
        matches!(self.after, After::Hold(_))
    }

    pub(crate) fn check_size(&self, reply: &Reply) -> Result<(), Refusal> {
        let most = self.shared.settings.limits.request_bytes;
        // A value that fits into a request fits into a reply.
        if reply.size() <= most + 64 {
            return Ok(());
        }
        Err(Refusal::new(format!("ERR the reply is longer than {most} bytes: nothing was done")))
    }
}

/// The function of a command. It answers or refuses; its writes to the keyspace are committed if it answers.
pub(crate) type Run = fn(&mut Context<'_>, &mut Keyspace<'_>, Args<'_>) -> Result<Reply, Refusal>;

/// The state of a client.
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) version: Version,
    pub(crate) is_authenticated: bool,
    pub(crate) transaction: Option<Transaction>,
    /// The entries found so far by the current request, if it takes several steps.
    pub(crate) listing: Option<Listing>,
    /// The reason for which its next write is refused.
    pub(crate) refusal: Option<Error>,
}

/// The commands that MULTI has queued.
#[derive(Default)]
pub(crate) struct Transaction {
    pub(crate) commands: Vec<(Run, OwnedArgs)>,
    pub(crate) bytes: usize,
    /// Whether a command was refused.
    pub(crate) is_spoilt: bool,
}

impl Transaction {
    pub(crate) fn spoil(&mut self) {
        self.is_spoilt = true;
        // It will not be carried out, so its memory is freed at once.
        (self.commands, self.bytes) = (Vec::new(), 0);
    }

    pub(crate) fn size(&self) -> usize {
        self.bytes + self.commands.capacity() * size_of::<(Run, OwnedArgs)>()
    }
}
