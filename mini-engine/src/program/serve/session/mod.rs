//! What a server does with the bytes of its clients: requests in, replies out. No sockets and no threads, so that tests and the
//! fuzzer drive exactly what the server runs.
//!
//! `Session::step` carries out one request of one client, or several that may go together. Writes go to the engine at once,
//! buffered; so the next request, of whatever client, sees them. A write that would have to wait is not begun, and its step has not
//! taken place: the caller waits for room, elsewhere, and then takes the step again or has it [refused](Session::refuse). The caller syncs before it sends any reply of that turn, if
//! `Shared::must_sync` says so. So with `synced` no reply, of a read either, tells a client what power loss could take back. Only
//! reads after a failed sync may do so.

mod clients;
mod commands;
mod cursors;
mod damage;
mod glob;
mod job;
mod keyspace;
mod lines;
mod output;
mod pipeline;
mod reply;
mod request;
mod shared;
mod transaction;

use mini_engine::{Durability, Error, WriteBatch};

pub(crate) use job::Job;
pub(crate) use output::Output;
pub(crate) use reply::{Outcome, Reply};
pub(crate) use shared::{Limits, ServerDurability, Settings, Shared};

use clients::Record;
use commands::{Command, Listing};
use keyspace::Keyspace;
use pipeline::Pipeline;
use reply::{Refusal, Version};
use request::{Args, Parser};
use transaction::Transaction;

/// What clients write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// The Redis protocol, versions 2 and 3.
    Resp,
    /// The language of the coursework: see `lines.rs`.
    Lines,
}

/// What a step came to. Requests that were understood have their length.
#[derive(Debug)]
pub(crate) enum Step {
    /// The next request is not all there.
    Incomplete,
    Done {
        len: usize,
        /// How many they were: as many as the replies.
        requests: usize,
    },
    /// It names no command, and has no reply.
    Empty(usize),
    /// A part of the first request was carried out, and it goes on when it comes again.
    Continue,
    /// The reply comes when the job is done; until then the client's next request waits.
    Later(usize, Job),
    /// Nothing was carried out, since this would have had to wait to be written.
    Held(WriteBatch),
    /// The connection ends when the reply is sent.
    Close,
}

/// What a command wants beside its reply.
enum After {
    Nothing,
    /// The request is to go on from there.
    Continue(Listing),
    /// That is the reply.
    Listed(Listing),
    Later(Job),
    /// To be carried out again when there is room for what it writes.
    Hold(WriteBatch),
    Close,
}

/// What a command works with.
struct Context<'a> {
    shared: &'a mut Shared,
    client: &'a mut Client,
    after: After,
}

impl Context<'_> {
    /// What is told of the client.
    fn record(&mut self) -> Option<&mut Record> {
        self.shared.clients.get_mut(self.client.id)
    }

    /// Hands what was written to the keyspace to the engine, unless that would have to wait: then `after` says so.
    fn commit(&mut self, keyspace: Keyspace<'_>) -> Result<(), Error> {
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

    fn is_held(&self) -> bool {
        matches!(self.after, After::Hold(_))
    }
}

/// What a command does. It answers, or refuses; what it wrote to the keyspace is committed if it answers.
type Run = fn(&mut Context<'_>, &mut Keyspace<'_>, Args<'_>) -> Result<Reply, Refusal>;

/// Who a client is.
struct Client {
    id: u64,
    version: Version,
    is_authenticated: bool,
    transaction: Option<Transaction>,
    /// What the request under way has found, if it takes several steps.
    listing: Option<Listing>,
    /// Why its next write is refused.
    refusal: Option<Error>,
}

/// One client's side of the conversation.
pub(crate) struct Session {
    protocol: Protocol,
    parser: Parser,
    pipeline: Pipeline,
    client: Client,
}

impl Session {
    pub(crate) fn new(protocol: Protocol, shared: &mut Shared) -> Self {
        let client = Client {
            id: shared.clients.add(),
            version: Version::default(),
            is_authenticated: shared.settings.password.is_none(),
            transaction: None,
            listing: None,
            refusal: None,
        };
        Self { protocol, parser: Parser::default(), pipeline: Pipeline::default(), client }
    }

    /// The client's number.
    pub(crate) fn id(&self) -> u64 {
        self.client.id
    }

    /// What was held is refused if it still writes: there is no room for it.
    pub(crate) fn refuse(&mut self, refusal: Option<Error>) {
        self.client.refusal = refusal;
    }

    /// Carries out the first request of `input`, or as many as may go together but no more than `most`, and appends the replies to
    /// `output`.
    pub(crate) fn step(&mut self, shared: &mut Shared, input: &[u8], most: usize, output: &mut Output) -> Step {
        let step = match self.protocol {
            Protocol::Resp => self.step_of_resp(shared, input, most, output),
            Protocol::Lines => lines::step(shared, &mut self.client, input, output),
        };
        self.client.refusal = None;
        step
    }

    fn step_of_resp(&mut self, shared: &mut Shared, input: &[u8], most: usize, output: &mut Output) -> Step {
        let limits = shared.settings.limits.of_requests(self.client.is_authenticated);
        if self.client.is_authenticated && self.client.transaction.is_none() {
            self.pipeline.gather(&mut self.parser, input, limits, most);
            if !self.pipeline.is_empty() {
                return self.carry_out_together(shared, input, output);
            }
        }
        let len = match self.parser.find(input, limits) {
            Ok(Some(len)) => len,
            Ok(None) => return Step::Incomplete,
            Err(malformed) => {
                self.answer(&Reply::Error(format!("ERR {malformed}")), output);
                return Step::Close;
            }
        };
        let args = self.parser.args(input);
        if args.len() == 0 {
            self.parser.next();
            return Step::Empty(len);
        }
        if request::is_http(args.at(0)) {
            self.answer(&Reply::Error("ERR this is no HTTP server".into()), output);
            return Step::Close;
        }
        let (reply, after) = dispatch(shared, &mut self.client, args);
        self.parser.next();
        if !matches!(after, After::Continue(_) | After::Hold(_)) {
            shared.counters.commands += 1;
            self.answer(&reply, output);
        }
        match after {
            After::Continue(listing) => {
                self.client.listing = Some(listing);
                Step::Continue
            }
            After::Listed(listing) => {
                listing.finish(output);
                Step::Done { len, requests: 1 }
            }
            After::Hold(batch) => Step::Held(batch),
            After::Nothing => Step::Done { len, requests: 1 },
            After::Later(job) => Step::Later(len, job),
            After::Close => Step::Close,
        }
    }

    fn carry_out_together(&mut self, shared: &mut Shared, input: &[u8], output: &mut Output) -> Step {
        let mut context = Context { shared, client: &mut self.client, after: After::Nothing };
        let (requests, len) = self.pipeline.carry_out(&mut context, &mut self.parser, (input, output));
        context.shared.counters.commands += requests as u64;
        context.shared.clients.note(context.client.id, self.pipeline.last_command(requests));
        match context.after {
            // What was done before it is not done again.
            After::Hold(batch) if requests == 0 => Step::Held(batch),
            _ => Step::Done { len, requests },
        }
    }

    /// Appends a reply: of a job, or of the server itself.
    pub(crate) fn answer(&self, reply: &Reply, output: &mut Output) {
        match self.protocol {
            Protocol::Resp => reply.encode(self.client.version, output),
            Protocol::Lines => lines::encode(reply, output),
        }
    }

    /// How long the input has to be at least until the request at its beginning is whole, as far as that is known.
    pub(crate) fn expects(&self) -> usize {
        self.parser.end_of_part()
    }

    /// Bytes of memory beside the input and the output.
    pub(crate) fn size(&self) -> usize {
        let transaction = self.client.transaction.as_ref().map_or(0, Transaction::size);
        let listing = self.client.listing.as_ref().map_or(0, Listing::size);
        self.parser.size() + self.pipeline.size() + transaction + listing
    }
}

/// Finds the command, checks that it may run now, and runs or queues it.
fn dispatch(shared: &mut Shared, client: &mut Client, args: Args<'_>) -> (Reply, After) {
    let mut context = Context { shared, client, after: After::Nothing };
    let reply = find(&mut context, args).and_then(|command| match &context.client.transaction {
        Some(_) if !command.runs_at_once() => transaction::queue(&mut context, command, args).map(Next::Reply),
        _ => Ok(Next::Run(command)),
    });
    let reply = match reply {
        Ok(Next::Reply(reply)) => reply,
        Ok(Next::Run(command)) => {
            let outcome = run_alone(&mut context, command, args);
            context.shared.reply(outcome)
        }
        Err(refusal) => {
            // A transaction that lacks a command is not carried out.
            if let Some(transaction) = &mut context.client.transaction {
                transaction.spoil();
            }
            context.shared.reply(Err(refusal))
        }
    };
    (reply, context.after)
}

/// What becomes of a command that may be carried out.
enum Next {
    Run(&'static Command),
    /// It was queued.
    Reply(Reply),
}

fn find(context: &mut Context<'_>, args: Args<'_>) -> Result<&'static Command, Refusal> {
    let command = commands::find(args)?;
    context.shared.clients.note(context.client.id, command.name());
    if !context.client.is_authenticated && !command.runs_before_password() {
        return Err(Refusal::new("NOAUTH Authentication required."));
    }
    Ok(command)
}

/// Runs a command on its own.
fn run_alone(context: &mut Context<'_>, command: &Command, args: Args<'_>) -> Result<Reply, Refusal> {
    // A handle of its own, so that the command can change what is beside the database.
    let db = context.shared.db.clone();
    let mut keyspace = Keyspace::of_command(&db);
    let reply = run_in(context, &mut keyspace, command, args)?;
    context.commit(keyspace)?;
    Ok(reply)
}

/// Runs a command in a keyspace that the caller commits.
fn run_in(
    context: &mut Context<'_>,
    keyspace: &mut Keyspace<'_>,
    command: &Command,
    args: Args<'_>,
) -> Result<Reply, Refusal> {
    let reply = (command.run)(context, keyspace, args)?;
    check_size(context, &reply).map(|()| reply)
}

fn check_size(context: &Context<'_>, reply: &Reply) -> Result<(), Refusal> {
    let most = context.shared.settings.limits.request_bytes;
    // A value that fits into a request fits into a reply.
    if reply.size() <= most + 64 {
        return Ok(());
    }
    Err(Refusal::new(format!("ERR the reply is longer than {most} bytes: nothing was done")))
}

#[cfg(test)]
mod tests;
