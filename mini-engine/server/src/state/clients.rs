//! The clients that are connected, for CLIENT LIST and CLIENT INFO. Each request records its command here.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Instant;

/// The record of one client, without its number.
#[derive(Debug)]
pub(crate) struct Record {
    /// The client's address and the server's.
    addresses: Option<(SocketAddr, SocketAddr)>,
    since: Instant,
    last_request: Instant,
    /// The command of the last request; as in Redis, `NULL` before the first.
    command: &'static str,
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
}

impl Clients {
    /// Adds a client. Returns its number.
    pub(crate) fn add(&mut self) -> u64 {
        let now = Instant::now();
        self.last += 1;
        let record = Record {
            addresses: None,
            since: now,
            last_request: now,
            command: "NULL",
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

    /// Records the addresses of client `id`, and of the server as seen by the client.
    pub(crate) fn set_addresses(&mut self, id: u64, client: SocketAddr, server: SocketAddr) {
        if let Some(record) = self.records.get_mut(&id) {
            record.addresses = Some((client, server));
        }
    }

    /// Records a request of client `id` for the command with this name.
    pub(crate) fn note(&mut self, id: u64, command: &'static str) {
        if let Some(record) = self.records.get_mut(&id) {
            (record.last_request, record.command) = (Instant::now(), command);
        }
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut Record> {
        self.records.get_mut(&id)
    }

    /// A line for each client whose number is wanted, as Redis prints them. Ages are in seconds.
    pub(crate) fn lines(&self, is_wanted: impl Fn(u64) -> bool) -> String {
        let mut text = String::new();
        for (id, record) in self.records.iter().filter(|(id, _)| is_wanted(**id)) {
            let address = |of: fn((SocketAddr, SocketAddr)) -> SocketAddr| {
                record.addresses.map_or(String::new(), |both| of(both).to_string())
            };
            let (client, server) = (address(|both| both.0), address(|both| both.1));
            let (age, idle) = (record.since.elapsed().as_secs(), record.last_request.elapsed().as_secs());
            let command = record.command.to_lowercase();
            let text_of = |bytes: &[u8]| bytes.escape_ascii().to_string();
            let (name, library) = (text_of(&record.name), text_of(&record.library));
            let version = text_of(&record.library_version);
            // Writing to a string does not fail.
            writeln!(
                text,
                "id={id} addr={client} laddr={server} name={name} age={age} idle={idle} flags=N db=0 cmd={command} \
                 user=default lib-name={library} lib-ver={version}"
            )
            .ok();
        }
        text
    }
}
