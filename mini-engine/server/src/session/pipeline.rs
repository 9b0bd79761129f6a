//! Requests of one client that arrive together and are carried out together.
//!
//! Each of them reads or writes the value of one key, or they are all writes that read nothing. The server searches for their keys together, as for
//! MGET, because a search spends most of its time waiting for memory. Their writes are one batch: one record of the log, with the last write of each
//! key if they read. Each request sees the writes of earlier ones, and has its own reply.
//!
//! Bounds: a request longer than [`ENOUGH_BYTES`] is carried out alone. The values that are read together, and the replies of a step, have at most
//! that many bytes plus one value. The remaining requests wait for the next step, and are carried out one by one until replies are short again.
//! Otherwise their values would be read again in each step.
//!
//! If the batch would have to wait, the step has no effect, and the requests are carried out again later.
//!
//! If a value cannot be read, the requests are carried out one by one. If the batch cannot be written, every request with a write in it gets the
//! error, since a part of the batch may be in the log. The other requests are carried out again: a database that refuses writes can still serve
//! reads.

use std::ops::Range;

use mini_engine::{MAX_KEY_LEN, Result};

use super::run::{run_alone, run_in};
use crate::commands::{self, Command};
use crate::protocol::output::Output;
use crate::protocol::reply::{Outcome, Refusal, Reply};
use crate::protocol::request::{Args, OwnedArgs, Parser, RequestLimits};
use crate::state::context::{After, Context};
use crate::state::keyspace::Keyspace;

/// The maximum number of requests that are carried out together.
const MOST: usize = 16;
/// The number of bytes of values, or of replies, that is enough for one step, unless the limit of a request is smaller.
const ENOUGH_BYTES: usize = 64 << 10;

/// The maximum number of parts of a request that names one key: the command, the key and a value.
const ONE_KEY_PARTS: usize = 3;
/// The number of parts for which memory is kept.
const KEPT_PARTS: usize = 1024;

struct Request {
    command: &'static Command,
    /// The indices of the request's parts among all parts.
    parts: Range<usize>,
    /// The position of the request in the input.
    bytes: Range<usize>,
}

/// The requests at the beginning of a client's input. The memory of this structure is kept for later requests.
#[derive(Default)]
pub(super) struct Pipeline {
    /// For each part of all requests, its start and its end in its request.
    parts: Vec<(usize, usize)>,
    requests: Vec<Request>,
    /// The parts of a request that is a line: such a request is carried out alone, and its parts are not in the input.
    line: Option<OwnedArgs>,
    /// Whether replies were long recently, so that requests are carried out alone.
    goes_alone: bool,
}

/// The requests that were carried out: their number, and a bit for each that failed.
#[derive(Clone, Copy, Default)]
pub(super) struct Done {
    pub(super) requests: usize,
    failed: u32,
}

// Each request has a bit.
const _: () = assert!(MOST <= u32::BITS as usize);
// No key of a request that goes with others is too long: MSET would be refused after a part of its writes.
const _: () = assert!(ENOUGH_BYTES <= MAX_KEY_LEN + 1);

impl Done {
    /// Appends the reply of the next request.
    fn answer(&mut self, context: &mut Context<'_>, outcome: Outcome, output: &mut Output) {
        let reply = context.shared.counters.reply(outcome);
        reply.encode(context.client.version, output);
        self.failed |= u32::from(matches!(reply, Reply::Error(_))) << self.requests;
        self.requests += 1;
    }
}

impl Pipeline {
    /// Takes requests that may be carried out together from the beginning of `input`, at most `most`. The parser is left at the first request that
    /// was not taken.
    pub(super) fn gather(&mut self, parser: &mut Parser, input: &[u8], limits: RequestLimits, most: usize) {
        self.clear();
        let most = most.min(if self.goes_alone { 1 } else { MOST });
        let (mut end, mut is_long) = (0, false);
        let (mut any_reads, mut any_has_keys) = (false, false);
        // The next step finds malformed bytes again, and reports them, after the requests before them are carried out.
        while self.requests.len() < most
            && !is_long
            && let Ok(Some(len)) = parser.find(&input[end..], limits)
            && let Some(command) = commands::of_pipelines(parser.args(&input[end..]))
            && parser.parts().is_some()
        {
            is_long = len > ENOUGH_BYTES;
            any_reads |= command.reads_its_key();
            any_has_keys |= parser.args(&input[end..]).len() > ONE_KEY_PARTS;
            if (is_long || any_reads && any_has_keys) && !self.requests.is_empty() {
                break;
            }
            self.take(parser, (input, end), len, command);
            end += len;
        }
    }

    pub(super) fn clear(&mut self) {
        self.parts.clear();
        self.parts.shrink_to(KEPT_PARTS);
        self.requests.clear();
        self.line = None;
    }

    /// Takes the request of this length that the parser has found at position `begin` of the input.
    pub(super) fn take(
        &mut self,
        parser: &mut Parser,
        (input, begin): (&[u8], usize),
        len: usize,
        command: &'static Command,
    ) {
        let found = parser.parts().unwrap_or_default();
        if found.is_empty() {
            self.line = Some(OwnedArgs::new(&parser.args(&input[begin..])));
        }
        let parts = self.parts.len()..self.parts.len() + found.len();
        self.parts.extend_from_slice(found);
        self.requests.push(Request { command, parts, bytes: begin..begin + len });
        parser.next();
    }

    pub(super) fn is_line(&self) -> bool {
        self.line.is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// The end in the input of the first `requests` requests.
    pub(super) fn end_of(&self, requests: usize) -> usize {
        self.requests[..requests].last().map_or(0, |last| last.bytes.end)
    }

    /// The memory of the pipeline, in bytes.
    pub(super) fn size(&self) -> usize {
        let line = self.line.as_ref().map_or(0, OwnedArgs::size);
        self.parts.capacity() * size_of::<(usize, usize)>() + self.requests.capacity() * size_of::<Request>() + line
    }

    /// Carries out requests from the first one on, and appends their replies to `output`, until the replies have [`ENOUGH_BYTES`]. Returns the number
    /// of requests that were carried out, and their length in the input.
    pub(super) fn carry_out(
        &mut self,
        context: &mut Context<'_>,
        parser: &mut Parser,
        (input, output): (&[u8], &mut Output),
    ) -> (Done, usize) {
        let begun = output.len();
        let done = match self.keyspace(context, input) {
            Ok(Some(keyspace)) => self.together(context, keyspace, (input, output)),
            Ok(None) | Err(_) => self.answer(context, (input, output), run_alone),
        };
        let enough = enough(context);
        // Requests are carried out alone until a reply is short enough to be one of many.
        if !context.is_held() {
            let is_long = done.requests == 1 && output.len() - begun > enough / MOST;
            self.goes_alone = done.requests < self.requests.len() || is_long;
        }
        if done.requests < self.requests.len() {
            // The parser is already past the requests that wait for the next step.
            parser.next();
        }
        (done, self.end_of(done.requests))
    }

    /// The keyspace for all requests of the step.
    fn keyspace(&self, context: &Context<'_>, input: &[u8]) -> Result<Option<Keyspace>> {
        if self.requests.len() < 2 {
            return Ok(None);
        }
        let database = context.client.database.clone();
        if self.requests.iter().all(|request| !request.command.reads_its_key()) {
            // No request reads the writes of an earlier one.
            return Ok(Some(Keyspace::of_command(database)));
        }
        let keys = self.all(input).map(|(command, args)| (args.at(1), command.reads_its_key()));
        Keyspace::of_pipeline(database, keys, enough(context)).map(Some)
    }

    fn together(
        &self,
        context: &mut Context<'_>,
        mut keyspace: Keyspace,
        (input, output): (&[u8], &mut Output),
    ) -> Done {
        let begun = output.len();
        let (mut place, mut written) = (0, 0u32);
        let mut done = self.answer(context, (input, &mut *output), |context, command, args| {
            keyspace.turn_to(place);
            let before = keyspace.writes();
            let reply = run_in(context, &mut keyspace, command, args);
            written |= u32::from(keyspace.writes() > before) << place;
            place += 1;
            reply
        });
        let keys = self.all(input).map(|(_, args)| args.at(1));
        // A batch of so few short requests is never too large to be built.
        match keyspace.end_pipeline(keys).and_then(|()| context.commit(keyspace)) {
            Ok(()) if context.is_held() => {
                output.truncate(begun);
                return Done::default();
            }
            Ok(()) => {}
            Err(error) => {
                output.truncate(begun);
                done = Done::default();
                let enough = begun + enough(context);
                for (place, (command, args)) in self.all(input).take(place).enumerate() {
                    // No request may wait for the next step, because a write behind it would then be tried twice. So reads that would return too much
                    // get the same error.
                    let refused = || Err(Refusal::from(error.clone()));
                    let outcome = match written >> place & 1 == 1 || output.len() >= enough {
                        true => refused(),
                        false => run_alone(context, command, args),
                    };
                    // A request that failed beside the others may write by itself. If its write would have to wait, nothing was written.
                    let outcome = match context.is_held() {
                        true => {
                            context.after = After::Nothing;
                            refused()
                        }
                        false => outcome,
                    };
                    done.answer(context, outcome, output);
                }
            }
        }
        done
    }

    /// Carries out requests with `run`, and appends their replies until these are long enough.
    fn answer(
        &self,
        context: &mut Context<'_>,
        (input, output): (&[u8], &mut Output),
        mut run: impl FnMut(&mut Context<'_>, &'static Command, Args<'_>) -> Outcome,
    ) -> Done {
        let enough = output.len() + enough(context);
        let mut done = Done::default();
        for (command, args) in self.all(input) {
            let outcome = run(context, command, args);
            if context.is_held() {
                break;
            }
            done.answer(context, outcome, output);
            if output.len() >= enough {
                break;
            }
        }
        done
    }

    /// The requests that were carried out, and whether each of them failed.
    pub(super) fn carried_out<'a>(
        &'a self,
        done: Done,
        input: &'a [u8],
    ) -> impl Iterator<Item = (&'static Command, Args<'a>, bool)> {
        let all = self.all(input).take(done.requests).enumerate();
        all.map(move |(place, (command, args))| (command, args, done.failed >> place & 1 == 1))
    }

    /// The requests that were taken.
    pub(super) fn all<'a>(&'a self, input: &'a [u8]) -> impl ExactSizeIterator<Item = (&'static Command, Args<'a>)> {
        self.requests.iter().map(move |Request { command, parts, bytes }| {
            let in_input = || Args::new(&input[bytes.clone()], &self.parts[parts.clone()]);
            (*command, self.line.as_ref().map_or_else(in_input, OwnedArgs::args))
        })
    }
}

/// The number of bytes of values, or of replies, that is enough for one step.
fn enough(context: &Context<'_>) -> usize {
    ENOUGH_BYTES.min(context.shared.keys.request_bytes)
}
