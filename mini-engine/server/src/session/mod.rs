//! Sessions, which turn the bytes of clients into replies. They have no sockets or threads, so tests and the fuzzer run exactly the server's code.
//!
//! `Session::step` carries out one request of one client, or several requests that may be carried out together. Writes are passed to the engine at
//! once, buffered, so the next request of any client sees them. A write that would have to wait is not begun, and the step has no effect: the caller
//! waits for room on another thread, and then repeats the step or has the request [refused](Session::refuse). If `Syncs::are_needed` returns true,
//! the caller syncs before it sends any reply of that turn. So with `synced`, no reply, not even of a read, shows a client writes that a power
//! failure could undo. Only reads after a failed sync may show such writes.

mod grouped;
mod lines;
mod metrics;
mod pipeline;
mod record;
mod run;
mod step;

use std::time::Instant;

use mini_engine::Error;

use grouped::Grouped;
use pipeline::Pipeline;
use record::{record, show};
use run::run_alone;
pub(crate) use run::run_keys;
pub(crate) use step::Step;

use crate::commands::{self, Command, transaction};
use crate::groups::GroupReplies;
use crate::protocol::output::Output;
use crate::protocol::reply::{Refusal, Reply};
use crate::protocol::request::{self, Args, Parser};
use crate::settings::Protocol;
use crate::state::context::{After, Client, Context, Transaction, Work};
use crate::state::listing::Listing;
use crate::state::shared::Shared;

/// The language that a client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Resp,
    Lines,
    /// The part of HTTP that Prometheus needs.
    Http,
}

/// The server's state of the conversation with one client.
pub(crate) struct Session {
    language: Language,
    parser: Parser,
    pipeline: Pipeline,
    client: Client,
    /// The state of a client of a cluster.
    grouped: Grouped,
}

impl Session {
    /// Creates the session of a client.
    pub(crate) fn new(shared: &mut Shared) -> Self {
        let language = match shared.settings.protocol {
            Protocol::Resp => Language::Resp,
            Protocol::Lines => Language::Lines,
        };
        let id = shared.clients.add();
        Self::of(language, id, shared)
    }

    /// Creates the session of Prometheus, which does not count as a client.
    pub(crate) fn of_metrics(shared: &Shared) -> Self {
        Self::of(Language::Http, 0, shared)
    }

    fn of(language: Language, id: u64, shared: &Shared) -> Self {
        let client = Client::new(id, shared.first.clone(), shared.settings.password.is_none());
        let (parser, pipeline, grouped) = (Parser::default(), Pipeline::default(), Grouped::default());
        Self { language, parser, pipeline, client, grouped }
    }

    /// The client's number.
    pub(crate) fn id(&self) -> u64 {
        self.client.id
    }

    /// Lets the held request be refused if it still has to wait, because there is no room for its writes or no database.
    pub(crate) fn refuse(&mut self, refusal: Option<Error>) {
        self.client.refusal = refusal;
    }

    /// Carries out the first request of `input`, or several that may be carried out together, at most `most`, and appends the replies to `output`.
    pub(crate) fn step(&mut self, shared: &mut Shared, input: &[u8], most: usize, output: &mut Output) -> Step {
        let step = match self.language {
            Language::Resp => self.step_of_resp(shared, input, most, output),
            Language::Lines => lines::step(shared, &mut self.client, input, output),
            Language::Http => metrics::step(shared, input, output),
        };
        self.client.refusal = None;
        step
    }

    fn step_of_resp(&mut self, shared: &mut Shared, input: &[u8], most: usize, output: &mut Output) -> Step {
        let begun = Instant::now();
        let limits = shared.limits_of_requests(self.client.is_authenticated);
        if self.client.is_authenticated && self.client.transaction.is_none() {
            if shared.cluster.is_some() {
                let mut context = Context::new(shared, &mut self.client);
                let requests = (&mut self.pipeline, &mut self.parser);
                if let Some(requests) = self.grouped.gather(&mut context, requests, input, (limits, most)) {
                    return Step::Later(0, Work::Groups(requests));
                }
            } else {
                self.pipeline.gather(&mut self.parser, input, limits, most);
                if self.pipeline.len() > 0 {
                    return self.carry_out_together(shared, (input, output), begun);
                }
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
        let (reply, after) = dispatch(shared, (&mut self.client, &mut self.grouped), args, begun);
        if let After::Later(work @ Work::Groups(_)) = after {
            let mut context = Context::new(shared, &mut self.client);
            self.grouped.hold(&mut context, (&mut self.pipeline, &mut self.parser), &input[..len]);
            return Step::Later(0, work);
        }
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
            After::Hold(work) => Step::Later(0, work),
            After::Nothing => Step::Done { len, requests: 1 },
            After::Later(work) => Step::Later(len, work),
            After::Close => Step::Close,
        }
    }

    fn carry_out_together(
        &mut self,
        shared: &mut Shared,
        (input, output): (&[u8], &mut Output),
        begun: Instant,
    ) -> Step {
        let mut context = Context::new(shared, &mut self.client);
        let (done, len) = self.pipeline.carry_out(&mut context, &mut self.parser, (input, output));
        let requests = done.requests;
        context.shared.counters.commands += requests as u64;
        let (took, mut last) = (begun.elapsed() / requests.max(1) as u32, "");
        for (command, args, is_failed) in self.pipeline.carried_out(done, input) {
            last = command.name();
            record(&mut context, command, args, took, is_failed);
        }
        context.shared.clients.note(context.client.id, last, begun);
        // An idle client keeps no requests.
        self.pipeline.clear();
        match context.after {
            // Earlier requests of the step must not be repeated.
            After::Hold(work) if requests == 0 => Step::Later(0, work),
            _ => Step::Done { len, requests },
        }
    }

    /// Appends the replies of groups to the first requests that were passed to them. Returns the length of these requests in the input.
    pub(crate) fn answered(
        &mut self,
        shared: &mut Shared,
        (input, output): (&[u8], &mut Output),
        replies: GroupReplies,
    ) -> usize {
        let mut context = Context::new(shared, &mut self.client);
        let requests = (&mut self.pipeline, &mut self.parser);
        self.grouped.answered(&mut context, requests, (input, output), replies)
    }

    /// Appends a reply: of a job, or of the server itself.
    pub(crate) fn answer(&self, reply: &Reply, output: &mut Output) {
        match self.language {
            Language::Resp => reply.encode(self.client.version, output),
            Language::Lines => lines::encode(reply, output),
            Language::Http => metrics::encode(reply, output),
        }
    }

    /// The minimum length of the input at which its first request can be complete, as far as known.
    pub(crate) fn expects(&self) -> usize {
        self.parser.end_of_part()
    }

    /// The memory of the session other than the input and the output, in bytes.
    pub(crate) fn size(&self) -> usize {
        let transaction = self.client.transaction.as_ref().map_or(0, Transaction::size);
        let listing = self.client.listing.as_ref().map_or(0, Listing::size);
        self.parser.size() + self.pipeline.size() + self.grouped.size() + transaction + listing
    }
}

/// Finds the command, checks that it may run now, and then runs or queues it.
fn dispatch(
    shared: &mut Shared,
    (client, grouped): (&mut Client, &mut Grouped),
    args: Args<'_>,
    begun: Instant,
) -> (Reply, After) {
    let mut context = Context::new(shared, client);
    let found = find(&mut context, args, begun).map_err(|refusal| match args.at(0).eq_ignore_ascii_case(b"EXEC") {
        true => {
            drop(grouped.take_watched());
            transaction::abort(&mut context, refusal)
        }
        false => refusal,
    });
    let reply = found.and_then(|command| match &context.client.transaction {
        _ if context.shared.cluster.is_some() => grouped.dispatch(&mut context, command, args).map(Next::Reply),
        Some(_) if !command.runs_at_once() => {
            let reply = transaction::queue(&mut context, command, args)?;
            show(&mut context, command, args);
            Ok(Next::Reply(reply))
        }
        _ => Ok(Next::Run(command)),
    });
    let reply = match reply {
        Ok(Next::Reply(reply)) => reply,
        Ok(Next::Run(command)) => {
            let outcome = run_alone(&mut context, command, args);
            let reply = context.shared.counters.reply(outcome);
            if !matches!(context.after, After::Continue(_) | After::Hold(_)) {
                record(&mut context, command, args, begun.elapsed(), matches!(reply, Reply::Error(_)));
            }
            reply
        }
        Err(refusal) => {
            // A transaction that lacks a command must not be carried out.
            if let Some(transaction) = &mut context.client.transaction {
                transaction.spoil();
            }
            context.shared.counters.reply(Err(refusal))
        }
    };
    (reply, context.after)
}

/// The next action for a command that may be carried out.
enum Next {
    Run(&'static Command),
    /// The command was queued.
    Reply(Reply),
}

/// The command of a request that the client may send at this point.
fn find(context: &mut Context<'_>, args: Args<'_>, now: Instant) -> Result<&'static Command, Refusal> {
    let command = commands::find(args)?;
    context.shared.clients.note(context.client.id, command.name(), now);
    if !context.client.is_authenticated && !command.runs_before_password() {
        return Err(Refusal::new("NOAUTH Authentication required."));
    }
    Ok(command)
}

#[cfg(test)]
pub(crate) mod tests;
