//! The slow requests, for SLOWLOG. Their number and their size are bounded, as in Redis.

use std::collections::VecDeque;

use super::clock::unix_seconds;
use crate::protocol::reply::Reply;
use crate::protocol::request::Args;

/// The maximum number of requests that are kept.
pub(crate) const MOST: usize = 128;
/// The maximum number of parts that are kept of a request, and of bytes that are kept of each part.
const MOST_PARTS: usize = 32;
const MOST_BYTES: usize = 128;

/// A slow request.
#[derive(Debug)]
struct Entry {
    id: i64,
    /// The time at which the request ended, in seconds since 1970.
    at: u64,
    micros: u64,
    parts: Vec<Vec<u8>>,
    address: String,
    name: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct SlowLog {
    /// The newest entry is the first.
    entries: VecDeque<Entry>,
    next: i64,
}

impl SlowLog {
    /// Adds a request of the client with this address and name.
    pub(crate) fn add(&mut self, micros: u64, args: Args<'_>, address: String, name: Vec<u8>) {
        let shown = if args.len() > MOST_PARTS { MOST_PARTS - 1 } else { args.len() };
        let mut parts: Vec<Vec<u8>> = args.from(0).take(shown).map(|part| shortened(part, MOST_BYTES)).collect();
        if shown < args.len() {
            parts.push(format!("... ({} more arguments)", args.len() - shown).into_bytes());
        }
        self.entries.truncate(MOST - 1);
        self.entries.push_front(Entry { id: self.next, at: unix_seconds(), micros, parts, address, name });
        self.next += 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    /// At most `most` requests, the newest first, as SLOWLOG GET returns them.
    pub(crate) fn replies(&self, most: usize) -> Reply {
        let text = |bytes: &[u8]| Reply::Bulk(bytes.into());
        let entry = |entry: &Entry| {
            Reply::Array(vec![
                Reply::Integer(entry.id),
                Reply::Integer(entry.at as i64),
                Reply::Integer(entry.micros as i64),
                Reply::Array(entry.parts.iter().map(|part| text(part)).collect()),
                text(entry.address.as_bytes()),
                text(&entry.name),
            ])
        };
        Reply::Array(self.entries.iter().take(most).map(entry).collect())
    }
}

/// The part itself if it is short; otherwise its first `most` bytes and the number of the remaining bytes.
pub(super) fn shortened(part: &[u8], most: usize) -> Vec<u8> {
    match part.len() > most {
        true => [&part[..most], format!("... ({} more bytes)", part.len() - most).as_bytes()].concat(),
        false => part.to_vec(),
    }
}
