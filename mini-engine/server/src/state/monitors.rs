//! The requests that are shown to clients which have sent MONITOR.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::SystemTime;

use super::clock::since_1970;
use super::slow_log::shortened;
use crate::protocol::request::Args;

/// The maximum number of bytes that are shown of each part of a request.
const MOST_BYTES: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Monitors {
    /// The numbers of these clients.
    clients: BTreeSet<u64>,
    /// The lines that were not sent to them yet.
    lines: String,
}

impl Monitors {
    pub(crate) fn add(&mut self, client: u64) {
        self.clients.insert(client);
    }

    pub(crate) fn remove(&mut self, client: u64) {
        self.clients.remove(&client);
    }

    pub(crate) fn contains(&self, client: u64) -> bool {
        self.clients.contains(&client)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Adds the line for a request of the client with this `address`, in the format of Redis.
    pub(crate) fn show(&mut self, database: usize, address: &str, parts: Args<'_>) {
        let now = since_1970(SystemTime::now());
        // Writing to a string does not fail.
        write!(self.lines, "+{}.{:06} [{database} {address}]", now.as_secs(), now.subsec_micros()).ok();
        for part in parts.from(0) {
            write!(self.lines, " \"{}\"", shortened(part, MOST_BYTES).escape_ascii()).ok();
        }
        self.lines.push_str("\r\n");
    }

    /// Takes the new lines, which are sent to all these clients.
    pub(crate) fn take_lines(&mut self) -> String {
        std::mem::take(&mut self.lines)
    }
}
