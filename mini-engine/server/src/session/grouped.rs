//! The session of a client of a cluster: the requests that it passes to the groups, and their replies.
//!
//! A request that concerns the connection or the node itself is carried out by the node, as by a server of one node. Writes, reads, EXEC and WATCH go
//! to the group that has their keys. If this node does not lead the group, the reply is a redirection, as in Redis Cluster, even while MULTI queues.
//!
//! Requests of the same kind that arrive together are passed on together. The requests stay in the input until their replies come.

use std::collections::BTreeSet;
use std::time::Instant;

use serde_bytes::ByteBuf;

use super::pipeline::Pipeline;
use super::record::{record, show};
use super::run::run_alone;
use crate::commands::slots::{slot_of, slot_of_all, slot_of_named};
use crate::commands::{self, Command, Scope, transaction};
use crate::groups::{self, Access, Changed, GroupReplies, GroupRequests, Kind, Request, Watched, Write};
use crate::protocol::cursors::ScanCursors;
use crate::protocol::output::Output;
use crate::protocol::reply::{Outcome, Refusal, Reply, Version};
use crate::protocol::request::{Args, OwnedArgs, Parser, RequestLimits};
use crate::settings::MAX_REQUEST_BYTES;
use crate::state::context::{After, Context, Work};

/// Bounds of the requests that are passed on together; the last request may exceed the bound on bytes.
const MOST_REQUESTS: usize = 1000;
const MOST_BYTES: usize = 1 << 20;

/// The state of a cluster client's session, in addition to that of any client.
#[derive(Default)]
pub(super) struct Grouped {
    /// The kind of the client's reads.
    reads: Access,
    watched: Vec<Watched>,
    /// The memory of the watched keys, in bytes.
    watched_bytes: usize,
    /// For a WATCH that was passed on: its keys, each once.
    watching: Option<(Vec<ByteBuf>, Changed)>,
    /// The time at which requests were passed on, and the bytes of these requests, until their replies come.
    passed_at: Option<Instant>,
    passed_bytes: usize,
    /// After long replies, a smaller maximum number of requests that are passed on together, so that few requests must be passed on again.
    fewer: Option<usize>,
}

impl Grouped {
    /// Takes reads, or writes, from the beginning of the input, at most `most`, for their groups. Takes none if the first one must be handled alone.
    pub(super) fn gather(
        &mut self,
        context: &mut Context<'_>,
        (pipeline, parser): (&mut Pipeline, &mut Parser),
        input: &[u8],
        (limits, most): (RequestLimits, usize),
    ) -> Option<GroupRequests> {
        let (mut requests, mut end, mut last) = (None, 0, "");
        pipeline.clear();
        while pipeline.len() < self.fewer.unwrap_or(MOST_REQUESTS).min(most)
            && !pipeline.is_line()
            && end < MOST_BYTES
            && let Ok(Some(len)) = parser.find(&input[end..], limits)
            && let args = parser.args(&input[end..])
            && let Ok(command) = commands::find(args)
            && command.scope() == Scope::Keys
            && !command.runs_at_once()
            && joins(requests.as_ref(), command)
            && (pipeline.len() == 0 || parser.parts().is_some())
            && let Ok((slot, request)) = self.route(context, command, args)
        {
            requests = Some(self.add(requests, command, slot, request, &context.shared.keys.cursors));
            last = command.name();
            pipeline.take(parser, (input, end), len, command);
            end += len;
        }
        if requests.is_some() {
            self.begin(context, last, end);
        }
        requests
    }

    /// Adds a request to those that are passed on together with it, if there are any.
    fn add(
        &self,
        passed: Option<GroupRequests>,
        command: &Command,
        slot: u16,
        request: Request,
        cursors: &ScanCursors,
    ) -> GroupRequests {
        let mut passed = passed.unwrap_or_else(|| match command.writes() {
            true => GroupRequests::Writes(Vec::new()),
            false => GroupRequests::Reads { requests: Vec::new(), access: self.reads, cursors: cursors.clone() },
        });
        match &mut passed {
            GroupRequests::Writes(writes) => writes.push((slot, request.into())),
            GroupRequests::Reads { requests, .. } => requests.push((slot, request)),
        }
        passed
    }

    fn begin(&mut self, context: &mut Context<'_>, command: &'static str, len: usize) {
        let now = Instant::now();
        (self.passed_at, self.passed_bytes) = (Some(now), len);
        context.shared.clients.note(context.client.id, command, now);
    }

    /// Carries out a request that concerns the connection or the node, queues it, or passes it on; in the last case, sets `after`.
    pub(super) fn dispatch(&mut self, context: &mut Context<'_>, command: &'static Command, args: Args<'_>) -> Outcome {
        let is_queued = context.client.transaction.is_some();
        match command.name() {
            "EXEC" => return self.exec(context),
            "WATCH" if !is_queued => return self.watch(context, args),
            _ => {}
        }
        match command.scope() {
            Scope::OneNode => Err(Refusal::new(format!("ERR {} is not there in a cluster", command.name()))),
            Scope::Keys if command.runs_at_once() => Ok(self.run(context, command, args)),
            Scope::Keys => {
                let (slot, request) = self.route(context, command, args)?;
                if is_queued {
                    let queued = queue(context, command, &request)?;
                    show(context, command, args);
                    return Ok(queued);
                }
                let requests = self.add(None, command, slot, request, &context.shared.keys.cursors);
                context.after = After::Later(Work::Groups(requests));
                Ok(Reply::Nothing)
            }
            Scope::Node if is_queued && !command.runs_at_once() => {
                let name = command.name();
                Err(Refusal::new(format!("ERR {name} is not part of a transaction in a cluster: it has no key")))
            }
            Scope::Node => Ok(self.run(context, command, args)),
        }
    }

    /// Runs a command that concerns the connection or the node.
    fn run(&mut self, context: &mut Context<'_>, command: &Command, args: Args<'_>) -> Reply {
        let begun = Instant::now();
        let reply = match (command.name(), &context.shared.cluster) {
            ("CLUSTER", Some(groups)) => {
                groups.cluster(&Request::of_args(context.client.version, OwnedArgs::new(&args)))
            }
            ("READONLY", _)
                if args.len() > 2 || args.from(1).any(|word| !word.eq_ignore_ascii_case(b"LINEARIZABLE")) =>
            {
                Refusal::syntax().into_reply()
            }
            // Slots never move, so ASKING has no effect.
            ("READONLY" | "READWRITE" | "ASKING", _) => Reply::OK,
            _ => {
                let outcome = run_alone(context, command, args);
                context.shared.counters.reply(outcome)
            }
        };
        let is_failed = matches!(reply, Reply::Error(_));
        match command.name() {
            "READONLY" if !is_failed => {
                self.reads = if args.len() == 1 { Access::StaleRead } else { Access::FollowerRead };
            }
            "READWRITE" => self.reads = Access::Read,
            "DISCARD" | "UNWATCH" if !is_failed => drop(self.take_watched()),
            "RESET" => *self = Self::default(),
            _ => {}
        }
        record(context, command, args, begun.elapsed(), is_failed);
        reply
    }

    /// The slot of a request for keys, and the request in the form that a group carries out, if this node may pass it on.
    fn route(&self, context: &mut Context<'_>, command: &Command, args: Args<'_>) -> Result<(u16, Request), Refusal> {
        let version = context.client.version;
        if command.name() == "EVALSHA" {
            // The script's text replaces its hash, because another node may not have the script.
            let text = commands::scripts::text(&context.shared.keys, args.at(1))?.as_bytes();
            let parts = [&b"EVAL"[..], text].into_iter().chain(args.from(2));
            let request = Request::of_args(version, OwnedArgs::of_parts(parts));
            let eval = commands::find(request.args())?;
            return Ok((self.slot(context, eval, request.args())?, request));
        }
        if command.name() == "EVAL" {
            // From now on EVALSHA finds the script.
            commands::scripts::keep(&mut context.shared.keys, args.at(1));
        }
        let slot = self.slot(context, command, args)?;
        Ok((slot, Request::of_args(version, OwnedArgs::new(&args))))
    }

    fn slot(&self, context: &Context<'_>, command: &Command, args: Args<'_>) -> Result<u16, Refusal> {
        let is_queued = context.client.transaction.is_some();
        let access = match command.writes() || is_queued {
            true => Access::Write,
            false => self.reads,
        };
        let slot = slot_of_named(&command.named(args)?, is_one_group(context))?;
        direct(context, slot, access)
    }

    fn watch(&mut self, context: &mut Context<'_>, args: Args<'_>) -> Outcome {
        let slot = slot_of_all(args.from(1).map(|key| Some(slot_of(key))))?;
        let slot = direct(context, slot, Access::Write)?;
        let keys: BTreeSet<&[u8]> = args.from(1).collect();
        let more: usize = keys.iter().map(|key| Watched::size_of(key)).sum();
        if self.watched_bytes + more > MAX_REQUEST_BYTES {
            return Err(Refusal::new(format!("ERR what is watched is longer than {MAX_REQUEST_BYTES} bytes")));
        }
        let keys: Vec<ByteBuf> = keys.into_iter().map(|key| key.to_vec().into()).collect();
        let changed = Changed::default();
        self.watching = Some((keys.clone(), changed.clone()));
        let watch = Write(Kind::Watch { keys, changed });
        context.after = After::Later(Work::Groups(GroupRequests::Writes(vec![(slot, watch)])));
        Ok(Reply::Nothing)
    }

    /// Stores the term and the expiry times from the reply to WATCH.
    fn watched(&mut self, reply: &[u8]) -> Reply {
        let (keys, changed) = self.watching.take().unwrap_or_default();
        let Some((term, expiries)) = groups::decode_watched(reply).filter(|(_, expiries)| expiries.len() == keys.len())
        else {
            return Reply::Error("CLUSTERDOWN the reply of the group to WATCH is another one".into());
        };
        for (key, expires_at) in keys.into_iter().zip(expiries) {
            self.watched_bytes += Watched::size_of(&key);
            self.watched.push(Watched { key, term, expires_at, changed: changed.clone() });
        }
        Reply::OK
    }

    pub(super) fn take_watched(&mut self) -> Vec<Watched> {
        (self.watched_bytes, self.watching) = (0, None);
        std::mem::take(&mut self.watched)
    }

    fn exec(&mut self, context: &mut Context<'_>) -> Outcome {
        let transaction = context.client.take_transaction("EXEC")?;
        let watched = self.take_watched();
        transaction.check()?;
        let version = context.client.version;
        let requests = transaction.commands.into_iter().map(|queued| Request::of_args(version, queued.args));
        let requests: Vec<Request> = requests.collect();
        if requests.is_empty() && watched.is_empty() {
            return Ok(Reply::Array(Vec::new()));
        }
        let sizes = watched.iter().map(Watched::size).chain(requests.iter().map(Request::size));
        if sizes.sum::<usize>() > MAX_REQUEST_BYTES {
            return Err(Refusal::new(format!(
                "EXECABORT a transaction and what it watches have at most {MAX_REQUEST_BYTES} bytes"
            )));
        }
        let mut slots: Vec<Option<u16>> = watched.iter().map(|watched| Some(slot_of(&watched.key))).collect();
        for request in &requests {
            let named = commands::find(request.args())?.named(request.args())?;
            slots.push(slot_of_named(&named, is_one_group(context))?);
        }
        let slot = direct(context, slot_of_all(slots.into_iter())?, Access::Write)?;
        let is_version_3 = version == Version::Resp3;
        let transaction = groups::Transaction { is_version_3, watched, is_changed: false, requests };
        let requests = GroupRequests::Writes(vec![(slot, Write(Kind::Transaction(transaction)))]);
        context.after = After::Later(Work::Groups(requests));
        Ok(Reply::Nothing)
    }

    /// Keeps a request that was passed on alone: it stays in the pipeline until its reply comes.
    pub(super) fn hold(
        &mut self,
        context: &mut Context<'_>,
        (pipeline, parser): (&mut Pipeline, &mut Parser),
        request: &[u8],
    ) {
        pipeline.clear();
        if let Ok(command) = commands::find(parser.args(request)) {
            pipeline.take(parser, (request, 0), request.len(), command);
            self.begin(context, command.name(), request.len());
        }
    }

    /// Appends the replies of groups to the first requests that were passed on. Returns the length of these requests in the input.
    pub(super) fn answered(
        &mut self,
        context: &mut Context<'_>,
        (pipeline, parser): (&mut Pipeline, &mut Parser),
        (input, output): (&[u8], &mut Output),
        mut replies: GroupReplies,
    ) -> usize {
        if replies.is_empty() {
            let writes = pipeline.all(input).any(|(command, _)| command.writes() || command.name() == "EXEC");
            let code = if writes { "UNCERTAIN" } else { "CLUSTERDOWN" };
            replies.resize(pipeline.len(), groups::encode_error(&format!("{code} the reply of the group is missing")));
        }
        self.passed_bytes = 0;
        let done = replies.len().min(pipeline.len());
        let took = self.passed_at.take().unwrap_or_else(Instant::now).elapsed() / done.max(1) as u32;
        for ((command, args), reply) in pipeline.all(input).zip(replies) {
            let is_failed = reply.first() == Some(&b'-');
            match command.name() {
                "WATCH" if !is_failed => self.watched(&reply).encode(context.client.version, output),
                _ => output.put(&reply),
            }
            record(context, command, args, took, is_failed);
        }
        context.shared.counters.commands += done as u64;
        if done < pipeline.len() {
            // The parser is already past the requests that are passed on again.
            parser.next();
            self.fewer = Some(done);
        } else {
            self.fewer = self.fewer.map(|fewer| 2 * fewer).filter(|fewer| *fewer < MOST_REQUESTS);
        }
        pipeline.end_of(done)
    }

    /// The memory of this state, in bytes.
    pub(super) fn size(&self) -> usize {
        self.watched_bytes + self.passed_bytes
    }
}

/// Whether a request can be passed to the groups together with those before it.
fn joins(passed: Option<&GroupRequests>, command: &Command) -> bool {
    match passed {
        None => true,
        Some(GroupRequests::Writes(_)) => command.writes(),
        Some(GroupRequests::Reads { .. }) => !command.writes(),
    }
}

fn queue(context: &mut Context<'_>, command: &Command, request: &Request) -> Outcome {
    // A queued EVALSHA is stored as EVAL.
    let queued = commands::find(request.args())?;
    if !queued.follows_from_keys() {
        let name = command.name();
        return Err(Refusal::new(format!("ERR {name} is not part of a transaction in a cluster")));
    }
    transaction::queue(context, queued, request.args())
}

fn is_one_group(context: &Context<'_>) -> bool {
    context.shared.cluster.as_ref().is_some_and(|cluster| cluster.is_one_group())
}

/// The slot of a request, if this node may pass the request on.
fn direct(context: &Context<'_>, slot: Option<u16>, access: Access) -> Result<u16, Refusal> {
    let slot = slot.unwrap_or(0);
    let redirection = context.shared.cluster.as_ref().and_then(|cluster| cluster.redirect(slot, access));
    redirection.map_or(Ok(slot), |redirection| Err(Refusal::new(redirection)))
}
