//! The clients that are connected, for CLIENT LIST, CLIENT INFO and CLIENT KILL. Each request records its command here.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::time::Instant;

use super::watched::Watched;

/// The record of one client, without its number.
#[derive(Debug)]
pub(crate) struct Record {
    /// The client's address and the server's, as they are shown.
    pub(crate) addresses: [String; 2],
    since: Instant,
    last_request: Instant,
    /// The command of the last request; as in Redis, `NULL` before the first.
    command: &'static str,
    /// The number of the database that it has selected.
    pub(crate) database: usize,
    /// Whether it has sent MONITOR.
    pub(crate) is_monitor: bool,
    /// What it watches. Nothing waits for the lock: it only lets threads share the records of others.
    pub(crate) watched: Option<Mutex<Watched>>,
    /// Without spaces, like the following fields.
    pub(crate) name: Vec<u8>,
    pub(crate) library: Vec<u8>,
    pub(crate) library_version: Vec<u8>,
}

/// The records by the clients' numbers, which are never reused.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    records: BTreeMap<u64, Record>,
    last: u64,
    /// Clients that CLIENT KILL has named, for the event loop to disconnect.
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
            is_monitor: false,
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
    }

    /// Records a request of client `id` for the command with this name.
    pub(crate) fn note(&mut self, id: u64, command: &'static str, now: Instant) {
        if let Some(record) = self.records.get_mut(&id) {
            (record.last_request, record.command) = (now, command);
        }
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Record> {
        self.records.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut Record> {
        self.records.get_mut(&id)
    }

    /// What all clients watch.
    pub(crate) fn watched(&mut self) -> impl Iterator<Item = &mut Watched> {
        self.records.values_mut().filter_map(|record| record.watched.as_mut()?.get_mut().ok())
    }

    /// The clients that are wanted, by their numbers.
    pub(crate) fn filter(&self, is_wanted: impl Fn(u64, &Record) -> bool) -> impl Iterator<Item = (u64, &Record)> {
        self.records.iter().map(|(&id, record)| (id, record)).filter(move |&(id, record)| is_wanted(id, record))
    }
}

impl Record {
    /// Takes what it watches.
    pub(crate) fn take_watched(&mut self) -> Option<Watched> {
        self.watched.take()?.into_inner().ok()
    }

    /// Its age in seconds.
    pub(crate) fn age(&self) -> u64 {
        self.since.elapsed().as_secs()
    }

    /// Appends the line that Redis prints for a client. Ages are in seconds.
    pub(crate) fn print(&self, id: u64, text: &mut String) {
        let [client, server] = &self.addresses;
        let (age, idle, database) = (self.age(), self.last_request.elapsed().as_secs(), self.database);
        let command = self.command.to_lowercase();
        let text_of = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let (name, library, version) = (text_of(&self.name), text_of(&self.library), text_of(&self.library_version));
        let flags = if self.is_monitor { 'O' } else { 'N' };
        // Writing to a string does not fail.
        writeln!(
            text,
            "id={id} addr={client} laddr={server} name={name} age={age} idle={idle} flags={flags} db={database} \
             cmd={command} user=default lib-name={library} lib-ver={version}"
        )
        .ok();
    }
}
