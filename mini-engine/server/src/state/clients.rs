//! The connected clients, for CLIENT LIST, CLIENT INFO and CLIENT KILL. Each request records its command here.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Instant;

use super::monitors::Monitors;
use super::watched::Watched;
use crate::protocol::request::Args;

/// The record of one client, without its number.
#[derive(Debug)]
pub(crate) struct Record {
    /// The client's address and the server's address, as text.
    pub(crate) addresses: [String; 2],
    since: Instant,
    last_request: Instant,
    /// The command of the last request; as in Redis, `NULL` before the first request.
    command: &'static str,
    /// The number of the selected database.
    pub(crate) database: usize,
    /// The keys that the client watches.
    pub(crate) watched: Option<Watched>,
    /// Has no spaces, like the following fields.
    pub(crate) name: Vec<u8>,
    pub(crate) library: Vec<u8>,
    pub(crate) library_version: Vec<u8>,
}

/// The records, by the numbers of the clients, which are never reused.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    records: BTreeMap<u64, Record>,
    last: u64,
    pub(crate) monitors: Monitors,
    /// The clients that CLIENT KILL has named; the event loop disconnects them.
    pub(crate) killed: Vec<u64>,
}

impl Clients {
    /// Adds a client. Returns its number.
    pub(crate) fn add(&mut self) -> u64 {
        let now = Instant::now();
        self.last += 1;
        let record = Record {
            addresses: [String::new(), String::new()],
            since: now,
            last_request: now,
            command: "NULL",
            database: 0,
            watched: None,
            name: Vec::new(),
            library: Vec::new(),
            library_version: Vec::new(),
        };
        self.records.insert(self.last, record);
        self.last
    }

    /// Removes a client that has disconnected.
    pub(crate) fn remove(&mut self, id: u64) {
        self.records.remove(&id);
        self.monitors.remove(id);
    }

    /// Records a request of client `id` for the command with this name.
    pub(crate) fn note(&mut self, id: u64, command: &'static str, now: Instant) {
        if let Some(record) = self.records.get_mut(&id) {
            (record.last_request, record.command) = (now, command);
        }
    }

    /// Shows a request of client `id` to the clients that have sent MONITOR.
    pub(crate) fn show(&mut self, id: u64, parts: Args<'_>) {
        if let Some(record) = self.records.get(&id) {
            self.monitors.show(record.database, &record.addresses[0], parts);
        }
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Record> {
        self.records.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut Record> {
        self.records.get_mut(&id)
    }

    /// The watched keys of all clients.
    pub(crate) fn watched(&mut self) -> impl Iterator<Item = &mut Watched> {
        self.records.values_mut().filter_map(|record| record.watched.as_mut())
    }

    /// Appends the line of a client in the format of Redis. Ages are in seconds.
    pub(crate) fn print(&self, id: u64, text: &mut String) {
        if let Some(record) = self.get(id) {
            record.print(id, if self.monitors.contains(id) { 'O' } else { 'N' }, text);
        }
    }

    /// The clients that satisfy the condition, by their numbers.
    pub(crate) fn filter(&self, is_wanted: impl Fn(u64, &Record) -> bool) -> impl Iterator<Item = (u64, &Record)> {
        self.records.iter().map(|(&id, record)| (id, record)).filter(move |&(id, record)| is_wanted(id, record))
    }
}

impl Record {
    /// The age of the connection in seconds.
    pub(crate) fn age(&self) -> u64 {
        self.since.elapsed().as_secs()
    }

    fn print(&self, id: u64, flags: char, text: &mut String) {
        let [client, server] = &self.addresses;
        let (age, idle, database) = (self.age(), self.last_request.elapsed().as_secs(), self.database);
        let command = self.command.to_lowercase();
        let text_of = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let (name, library, version) = (text_of(&self.name), text_of(&self.library), text_of(&self.library_version));
        // Writing to a string does not fail.
        writeln!(
            text,
            "id={id} addr={client} laddr={server} name={name} age={age} idle={idle} flags={flags} db={database} \
             cmd={command} user=default lib-name={library} lib-ver={version}"
        )
        .ok();
    }
}
