//! Requests of one client that have arrived together, and are carried out together.
//!
//! Each of them reads or writes the value of one key. The keys to be read are searched for side by side, as MGET does: a search spends
//! most of its time waiting for memory. What they write is one batch, so one record of the log. Each sees what those before it
//! wrote, and each has its own reply.
//!
//! If the batch cannot be written, they are carried out one by one: so reads among them are answered by an engine that refuses
//! writes.

use std::ops::Range;

use super::commands::{self, Command};
use super::keyspace::Keyspace;
use super::reply::Reply;
use super::request::{Args, Parser, RequestLimits};
use super::{Context, check_size, run};

/// Requests that are carried out together. Of as many the values are in memory at once.
const MOST: usize = 16;

struct Request {
    command: &'static Command,
    /// Which of the pipeline's parts are its own.
    parts: Range<usize>,
}

/// The requests at the beginning of a client's input. It keeps its memory for those that follow.
#[derive(Default)]
pub(super) struct Pipeline {
    /// Where the parts of all requests begin and end in the input.
    parts: Vec<(usize, usize)>,
    requests: Vec<Request>,
    /// The length of all requests.
    len: usize,
}

impl Pipeline {
    /// Takes requests that may be carried out together from the beginning of `input`, at most `most`. The parser is left at the
    /// first one that was not taken.
    pub(super) fn gather(&mut self, parser: &mut Parser, input: &[u8], limits: RequestLimits, most: usize) {
        self.parts.clear();
        self.requests.clear();
        self.len = 0;
        // Malformed bytes are found again, and reported, once the requests before them are carried out.
        while self.requests.len() < most.min(MOST)
            && let Ok(Some(len)) = parser.find(&input[self.len..], limits)
            && let Some(command) = commands::of_pipelines(parser.args(&input[self.len..]))
        {
            let from = self.parts.len();
            self.parts.extend(parser.parts().iter().map(|&(start, end)| (self.len + start, self.len + end)));
            self.requests.push(Request { command, parts: from..self.parts.len() });
            self.len += len;
            parser.next();
        }
    }

    /// How many requests were taken.
    pub(super) fn requests(&self) -> usize {
        self.requests.len()
    }

    /// Their length in the input.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory that it takes.
    pub(super) fn size(&self) -> usize {
        self.parts.capacity() * size_of::<(usize, usize)>() + self.requests.capacity() * size_of::<Request>()
    }

    /// Carries the requests out. Their replies, in order.
    pub(super) fn run(&self, context: &mut Context<'_>, input: &[u8]) -> Vec<Reply> {
        if self.requests.len() > 1
            && let Ok(replies) = self.run_together(context, input)
        {
            return replies;
        }
        let each = self.all(input).map(|(command, args)| run(context, command, args).unwrap_or_else(Reply::from));
        each.collect()
    }

    /// Fails if what is stored cannot be read, or the batch not written.
    fn run_together(&self, context: &mut Context<'_>, input: &[u8]) -> mini_engine::Result<Vec<Reply>> {
        let db = context.shared.db.clone();
        let mut keyspace = Keyspace::of_transaction(&db);
        let reading = self.all(input).filter(|(command, _)| command.reads_its_key());
        keyspace.look_up(reading.map(|(_, args)| args.at(1)))?;
        let replies = self.all(input).map(|(command, args)| {
            let reply = (command.run)(context, &mut keyspace, args);
            reply.and_then(|reply| check_size(context, &reply).map(|()| reply)).unwrap_or_else(Reply::from)
        });
        let replies = replies.collect();
        context.shared.is_unsynced |= keyspace.commit()?;
        Ok(replies)
    }

    fn all<'a>(&'a self, input: &'a [u8]) -> impl Iterator<Item = (&'static Command, Args<'a>)> {
        let args = |request: &'a Request| Args::new(input, &self.parts[request.parts.clone()]);
        self.requests.iter().map(move |request| (request.command, args(request)))
    }
}
