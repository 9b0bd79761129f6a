//! Requests of one client that have arrived together, and are carried out together.
//!
//! Each of them reads or writes the value of one key. The keys to be read are searched for side by side, as MGET does: a search spends
//! most of its time waiting for memory. Their writes go into one batch, which is one record of the log. Each request sees the writes of
//! those before it, and has its own reply.
//!
//! Bounds: a request longer than [`ENOUGH_BYTES`] goes alone. The values that are read together, and the replies of a step, have that
//! many bytes and one value more; the requests behind wait for the next step, and go alone until replies are short. Otherwise their
//! values would be read anew with each step.
//!
//! If the batch would have to wait, nothing was done, and the requests are carried out again later.
//!
//! If some value cannot be read, the requests are carried out one by one. If the batch cannot be written, every request that has
//! something in it is told so, since part of the batch may be in the log. The others are carried out again: a database that refuses
//! writes still answers reads.

use mini_engine::{Db, Result};

use super::run::{run_alone, run_in};
use crate::commands::{self, Command};
use crate::protocol::output::Output;
use crate::protocol::reply::{Refusal, Reply};
use crate::protocol::request::{Args, Parser, RequestLimits};
use crate::state::context::Context;
use crate::state::keyspace::Keyspace;

/// Requests that are carried out together, at most.
const MOST: usize = 16;
/// Bytes of values, or of replies, that are enough for one step, unless a request may not even have as many.
const ENOUGH_BYTES: usize = 64 << 10;

struct Request {
    command: &'static Command,
    /// Where its parts begin among those of all, and how many they are.
    parts: (usize, usize),
    /// Where it ends in the input.
    end: usize,
}

/// The requests at the beginning of a client's input. It keeps its memory for those that follow.
#[derive(Default)]
pub(super) struct Pipeline {
    /// Where the parts of all requests begin and end in the input.
    parts: Vec<(usize, usize)>,
    requests: Vec<Request>,
    /// Whether replies were long lately.
    goes_alone: bool,
}

impl Pipeline {
    /// Takes requests that may be carried out together from the beginning of `input`, at most `most`. The parser is left at the
    /// first one that was not taken.
    pub(super) fn gather(&mut self, parser: &mut Parser, input: &[u8], limits: RequestLimits, most: usize) {
        self.parts.clear();
        self.requests.clear();
        let most = most.min(if self.goes_alone { 1 } else { MOST });
        let (mut end, mut is_long) = (0, false);
        // Malformed bytes are found again, and reported, once the requests before them are carried out.
        while self.requests.len() < most
            && !is_long
            && let Ok(Some(len)) = parser.find(&input[end..], limits)
            && let Some(command) = commands::of_pipelines(parser.args(&input[end..]))
        {
            is_long = len > ENOUGH_BYTES;
            if is_long && !self.requests.is_empty() {
                break;
            }
            let found = parser.parts();
            let parts = (self.parts.len(), found.len());
            self.parts.extend(found.iter().map(|&(from, to)| (end + from, end + to)));
            end += len;
            self.requests.push(Request { command, parts, end });
            parser.next();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The name of the last command of those that were carried out.
    pub(super) fn last_command(&self, carried_out: usize) -> &'static str {
        self.requests[..carried_out].last().map_or("", |request| request.command.name())
    }

    /// Bytes of memory that it takes.
    pub(super) fn size(&self) -> usize {
        self.parts.capacity() * size_of::<(usize, usize)>() + self.requests.capacity() * size_of::<Request>()
    }

    /// Carries out requests from the first on, and appends their replies to `output`, until these have [`ENOUGH_BYTES`]. Returns how many
    /// were carried out, and their length in the input.
    pub(super) fn carry_out(
        &mut self,
        context: &mut Context<'_>,
        parser: &mut Parser,
        (input, output): (&[u8], &mut Output),
    ) -> (usize, usize) {
        let begun = output.len();
        let db = context.shared.db.clone();
        let done = match self.keyspace(context, &db, input) {
            Ok(Some(keyspace)) => self.together(context, keyspace, (input, output)),
            Ok(None) | Err(_) => self.answer(context, (input, output), run_alone),
        };
        let enough = enough(context);
        // Alone until the reply is so short that it would have been one of many.
        if !context.is_held() {
            self.goes_alone = done < self.requests.len() || done == 1 && output.len() - begun > enough / MOST;
        }
        if done < self.requests.len() {
            // The parser is behind the requests that wait for the next step.
            parser.next();
        }
        (done, done.checked_sub(1).and_then(|last| self.requests.get(last)).map_or(0, |last| last.end))
    }

    /// What the requests see, if they are several.
    fn keyspace<'a>(&self, context: &Context<'_>, db: &'a Db, input: &[u8]) -> Result<Option<Keyspace<'a>>> {
        if self.requests.len() < 2 {
            return Ok(None);
        }
        let reading = self.all(input).filter(|(command, _)| command.reads_its_key());
        let keys: Vec<&[u8]> = reading.map(|(_, args)| args.at(1)).collect();
        if keys.is_empty() {
            // Without an overlay: no request reads what those before it wrote.
            return Ok(Some(Keyspace::of_command(db)));
        }
        Keyspace::of_several_reading(db, &keys, enough(context)).map(Some)
    }

    fn together(
        &self,
        context: &mut Context<'_>,
        mut keyspace: Keyspace<'_>,
        (input, output): (&[u8], &mut Output),
    ) -> usize {
        let begun = output.len();
        let mut has_written = Vec::with_capacity(self.requests.len());
        let done = self.answer(context, (input, &mut *output), |context, command, args| {
            let before = keyspace.writes();
            let reply = run_in(context, &mut keyspace, command, args);
            has_written.push(keyspace.writes() > before);
            reply
        });
        match context.commit(keyspace) {
            Ok(()) if context.is_held() => {
                output.truncate(begun);
                return 0;
            }
            Ok(()) => {}
            Err(error) => {
                output.truncate(begun);
                let enough = begun + enough(context);
                for ((command, args), has_written) in self.all(input).zip(has_written) {
                    // None may wait for the next step: a write behind it would be tried twice. So reads that would be too much are told
                    // the same.
                    let reply = match has_written || output.len() >= enough {
                        true => Err(Refusal::from(error.clone())),
                        false => run_alone(context, command, args),
                    };
                    context.shared.reply(reply).encode(context.client.version, output);
                }
            }
        }
        done
    }

    /// Has requests carried out by `run` and appends their replies until they are enough. How many those are.
    fn answer(
        &self,
        context: &mut Context<'_>,
        (input, output): (&[u8], &mut Output),
        mut run: impl FnMut(&mut Context<'_>, &'static Command, Args<'_>) -> std::result::Result<Reply, Refusal>,
    ) -> usize {
        let enough = output.len() + enough(context);
        let mut done = 0;
        for (command, args) in self.all(input) {
            let outcome = run(context, command, args);
            if context.is_held() {
                break;
            }
            context.shared.reply(outcome).encode(context.client.version, output);
            done += 1;
            if output.len() >= enough {
                break;
            }
        }
        done
    }

    fn all<'a>(&'a self, input: &'a [u8]) -> impl Iterator<Item = (&'static Command, Args<'a>)> {
        self.requests.iter().map(move |request| {
            let (from, count) = request.parts;
            (request.command, Args::new(input, &self.parts[from..from + count]))
        })
    }
}

/// Bytes of values, or of replies, that are enough for one step.
fn enough(context: &Context<'_>) -> usize {
    ENOUGH_BYTES.min(context.shared.settings.limits.request_bytes)
}
