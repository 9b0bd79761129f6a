//! One client's side of the conversation with a node of a cluster: bytes in, and out comes what has to be done.
//!
//! What concerns the connection or the node is answered here. Writes, reads and WATCH are left to the caller, who knows the groups. As in Redis
//! Cluster, the caller's redirection is the reply to a request for keys that are elsewhere, also while MULTI queues.

use std::time::Instant;

use super::front::Front;
use super::next::{Access, Next, Redirect};
use super::proposal::{self, Kind, Watched, Write};
use super::request::{MAX_REQUEST_BYTES, Request, encode};
use super::slots::{slot_of, slot_of_all, slot_of_named};
use crate::commands::{self, Command, Scope, transaction};
use crate::protocol::reply::{Refusal, Reply, Version};
use crate::protocol::request::{Args, OwnedArgs, Parser, is_http};
use crate::session::{find, record, run_alone};
use crate::state::context::{After, Client, Context, Transaction};
use crate::state::shared::Shared;

/// One client's side of the conversation.
pub struct Conversation {
    parser: Parser,
    client: Client,
    may_be_stale: bool,
    watched: Vec<Watched>,
}

impl Conversation {
    /// The conversation with a client whose address, and the server's, are shown so.
    pub fn new(front: &Front, addresses: [String; 2]) -> Self {
        let shared = &mut *front.shared();
        let id = shared.clients.add();
        if let Some(record) = shared.clients.get_mut(id) {
            record.addresses = addresses;
        }
        shared.counters.connections += 1;
        shared.counters.clients += 1;
        let client = Client::new(id, front.selected.clone(), shared.settings.password.is_none());
        Self { parser: Parser::default(), client, may_be_stale: false, watched: Vec::new() }
    }

    /// To be called when the connection has ended.
    pub fn end(self, front: &Front) {
        let shared = &mut *front.shared();
        shared.clients.remove(self.client.id);
        shared.counters.clients = shared.counters.clients.saturating_sub(1);
    }

    /// Takes the first request of `input`, which is the input of the last call without what it took, and perhaps more. Returns the length of what was
    /// taken, and what is to be done. Replies are appended to `out`.
    pub fn next(&mut self, front: &Front, input: &[u8], redirect: Redirect<'_>, out: &mut Vec<u8>) -> (usize, Next) {
        let shared = &mut *front.shared();
        if shared.clients.get(self.client.id).is_none() {
            // CLIENT KILL.
            return (input.len(), Next::Close);
        }
        let mut parser = std::mem::take(&mut self.parser);
        let found = parser.find(input, shared.limits_of_requests(self.client.is_authenticated));
        let (len, next) = match found {
            Ok(None) => (0, Next::Incomplete),
            Ok(Some(len)) => {
                let mut call = Call { shared, is_one_group: front.is_one_group, redirect, out };
                let next = self.take(&mut call, parser.args(input));
                parser.next();
                (len, next)
            }
            Err(malformed) => {
                self.refuse(&format!("ERR {malformed}"), out);
                (input.len(), Next::Close)
            }
        };
        self.parser = parser;
        (len, next)
    }

    /// Keeps what WATCH has found, and appends its reply.
    pub fn watch(&mut self, watched: Vec<Watched>, out: &mut Vec<u8>) {
        let size = self.watched.iter().chain(&watched).map(Watched::size).sum::<usize>();
        if size > MAX_REQUEST_BYTES {
            return self.refuse(&format!("ERR what is watched is longer than {MAX_REQUEST_BYTES} bytes"), out);
        }
        self.watched.extend(watched);
        self.answer(&Reply::OK, out);
    }

    /// Bytes of memory that it keeps between requests: a part of one, the commands that MULTI has queued, and what is watched.
    pub fn size(&self) -> usize {
        let queued = self.client.transaction.as_ref().map_or(0, Transaction::size);
        self.parser.size() + queued + self.watched.iter().map(Watched::size).sum::<usize>()
    }

    /// Appends a reply.
    pub fn answer(&self, reply: &Reply, out: &mut Vec<u8>) {
        encode(reply, self.client.version, out);
    }

    /// Appends an error: a code in capitals, a space, and a sentence.
    pub fn refuse(&self, error: &str, out: &mut Vec<u8>) {
        self.answer(&Refusal::new(error).into_reply(), out);
    }

    /// Carries out a request that concerns the connection or the node, or says what is to be done.
    fn take(&mut self, call: &mut Call<'_>, args: Args<'_>) -> Next {
        if args.len() == 0 {
            return Next::Answered;
        }
        if is_http(args.at(0)) {
            self.refuse("ERR this is no HTTP server", call.out);
            return Next::Close;
        }
        call.shared.counters.commands += 1;
        self.dispatch(call, args).unwrap_or_else(|refusal| {
            // A transaction with a missing command is not carried out.
            if let Some(transaction) = &mut self.client.transaction {
                transaction.spoil();
            }
            self.answer(&refusal.into_reply(), call.out);
            Next::Answered
        })
    }

    fn dispatch(&mut self, call: &mut Call<'_>, args: Args<'_>) -> Result<Next, Refusal> {
        let begun = Instant::now();
        let command = find(&mut self.context(call.shared), args, begun)?;
        let is_queued = self.client.transaction.is_some();
        match command.name() {
            "EXEC" => return self.exec(call),
            "WATCH" if !is_queued => return self.ask_to_watch(call, args),
            _ => {}
        }
        match command.scope() {
            Scope::OneNode => Err(Refusal::new(format!("ERR {} is not there in a cluster", command.name()))),
            Scope::Keys if command.runs_at_once() => Ok(self.run(call, command, args, begun)),
            Scope::Keys => self.route(call, command, args),
            Scope::Node if is_queued && !command.runs_at_once() => {
                let name = command.name();
                Err(Refusal::new(format!("ERR {name} is not part of a transaction in a cluster: it has no key")))
            }
            Scope::Node => {
                Ok(self.of_cluster(call, command, args).unwrap_or_else(|| self.run(call, command, args, begun)))
            }
        }
    }

    /// The commands of clusters.
    fn of_cluster(&mut self, call: &mut Call<'_>, command: &Command, args: Args<'_>) -> Option<Next> {
        match command.name() {
            "CLUSTER" => return Some(Next::Cluster(Request::of_args(self.client.version, OwnedArgs::new(&args)))),
            "READONLY" => self.may_be_stale = true,
            "READWRITE" => self.may_be_stale = false,
            // No slot moves, so none is asked for.
            "ASKING" => {}
            _ => return None,
        }
        self.answer(&Reply::OK, call.out);
        Some(Next::Answered)
    }

    /// Runs a command that concerns the connection or the node.
    fn run(&mut self, call: &mut Call<'_>, command: &Command, args: Args<'_>, begun: Instant) -> Next {
        let mut context = self.context(call.shared);
        let outcome = run_alone(&mut context, command, args);
        let reply = context.shared.reply(outcome);
        record(&mut context, command, args, begun.elapsed(), matches!(reply, Reply::Error(_)));
        let is_over = matches!(context.after, After::Close);
        for id in std::mem::take(&mut call.shared.clients.killed) {
            call.shared.clients.remove(id);
        }
        if ["DISCARD", "RESET", "UNWATCH"].contains(&command.name()) && !matches!(reply, Reply::Error(_)) {
            self.watched.clear();
            self.may_be_stale &= command.name() != "RESET";
        }
        self.answer(&reply, call.out);
        if is_over { Next::Close } else { Next::Answered }
    }

    /// Says what is to be done for a request for keys, or queues it.
    fn route(&mut self, call: &mut Call<'_>, command: &'static Command, args: Args<'_>) -> Result<Next, Refusal> {
        if command.name() == "EVALSHA" {
            // Another node need not know the script.
            let text = commands::scripts::text(call.shared, args.at(1))?.as_bytes();
            let parts = [&b"EVAL"[..], text].into_iter().chain(args.from(2));
            let args = OwnedArgs::of_parts(parts);
            return self.route(call, commands::find(args.args())?, args.args());
        }
        let slot = slot_of_named(&command.named(args)?, call.is_one_group)?;
        let is_queued = self.client.transaction.is_some();
        let access = match command.writes() || is_queued {
            true => Access::Write,
            false if self.may_be_stale => Access::StaleRead,
            false => Access::Read,
        };
        let slot = call.direct(slot, access)?;
        if is_queued {
            if !command.follows_from_keys() {
                let name = command.name();
                return Err(Refusal::new(format!("ERR {name} is not part of a transaction in a cluster")));
            }
            let queued = transaction::queue(&mut self.context(call.shared), command, args)?;
            self.answer(&queued, call.out);
            return Ok(Next::Answered);
        }
        call.shared.stats.of(command.place(), command.name()).add(0, false);
        let request = Request::of_args(self.client.version, OwnedArgs::new(&args));
        Ok(match command.writes() {
            true => Next::Write { write: request.into(), slot },
            false => Next::Read { request, slot, may_be_stale: self.may_be_stale },
        })
    }

    fn ask_to_watch(&mut self, call: &mut Call<'_>, args: Args<'_>) -> Result<Next, Refusal> {
        let keys = args.from(1).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let slot = slot_of_all(keys.iter().map(|key| Some(slot_of(key))))?;
        Ok(Next::Watch { slot: call.direct(slot, Access::Write)?, keys })
    }

    fn exec(&mut self, call: &mut Call<'_>) -> Result<Next, Refusal> {
        let transaction = self.client.take_transaction("EXEC")?;
        let watched = std::mem::take(&mut self.watched);
        transaction.check()?;
        let version = self.client.version;
        let requests = transaction.commands.into_iter().map(|queued| Request::of_args(version, queued.args));
        let requests: Vec<Request> = requests.collect();
        if requests.is_empty() && watched.is_empty() {
            self.answer(&Reply::Array(Vec::new()), call.out);
            return Ok(Next::Answered);
        }
        let sizes = watched.iter().map(Watched::size).chain(requests.iter().map(Request::size));
        if sizes.sum::<usize>() > MAX_REQUEST_BYTES {
            return Err(Refusal::new(format!(
                "EXECABORT a transaction and what it watches have at most {MAX_REQUEST_BYTES} bytes"
            )));
        }
        let mut slots: Vec<Option<u16>> = watched.iter().map(|watched| Some(slot_of(watched.key()))).collect();
        for request in &requests {
            let named = commands::find(request.args())?.named(request.args())?;
            slots.push(slot_of_named(&named, call.is_one_group)?);
        }
        let slot = call.direct(slot_of_all(slots.into_iter())?, Access::Write)?;
        let transaction = proposal::Transaction { is_version_3: version == Version::Resp3, watched, requests };
        Ok(Next::Write { write: Write(Kind::Transaction(transaction)), slot })
    }

    fn context<'a>(&'a mut self, shared: &'a mut Shared) -> Context<'a> {
        Context { shared, client: &mut self.client, after: After::Nothing }
    }
}

/// What a request is carried out with.
struct Call<'a> {
    shared: &'a mut Shared,
    is_one_group: bool,
    redirect: Redirect<'a>,
    out: &'a mut Vec<u8>,
}

impl Call<'_> {
    /// The slot of a request that this node carries out.
    fn direct(&self, slot: Option<u16>, access: Access) -> Result<u16, Refusal> {
        let slot = slot.unwrap_or(0);
        (self.redirect)(slot, access).map_or(Ok(slot), |redirection| Err(Refusal::new(redirection)))
    }
}
