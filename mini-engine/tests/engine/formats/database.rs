//! A whole database: the combined state of the manifest, its tables and its logs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use crate::formats::bytes::{Entry, Read, need};
use crate::formats::log::{self, Log};
use crate::formats::manifest::{self, Manifest, TableLine};
use crate::formats::table::{self, Table};

/// The files of a directory by their names.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;
pub(crate) type Map = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) struct Database {
    pub(crate) manifest: Manifest,
    /// The tables by number.
    pub(crate) tables: BTreeMap<u64, Table>,
    /// The needed logs, with their numbers.
    pub(crate) logs: Vec<(u64, Log)>,
    /// The versions in the logs, oldest first.
    logged: Vec<Entry>,
    pub(crate) last_seqno: u64,
    /// The time at which expiries are evaluated, in milliseconds since 1970.
    now: u64,
}

/// The result of a read of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer<'a> {
    Value(&'a [u8]),
    Nothing,
    /// A quarantined table may have held it.
    Unknown,
}

/// Reads a directory.
pub(crate) fn read(files: &Files) -> Read<Database> {
    let file = |name: &str| files.get(name).ok_or(format!("no file {name}"));
    let number = manifest::current(file("CURRENT")?)?;
    let manifest = manifest::read(number, file(&format!("MANIFEST-{number:06}"))?)?;
    let mut tables = BTreeMap::new();
    for line in &manifest.tables {
        let bytes = file(&format!("{:06}.sst", line.number))?;
        let mut table = table::read(line.number, bytes, if line.narrowed { &line.smallest } else { b"" })?;
        need(describes(line, &table, bytes.len() as u64), format!("table {} is another one", line.number))?;
        // Entries below the bound of a narrowed table are ignored.
        table.entries.retain(|entry| !line.narrowed || entry.key >= line.smallest);
        if line.narrowed {
            table.ranges.iter_mut().for_each(|range| range.key = range.key.clone().max(line.smallest.clone()));
            table.ranges.retain(|range| range.end.as_ref().is_some_and(|end| range.key < *end));
        }
        need(line.number < manifest.next_file, "a table of a number that was not given out")?;
        tables.insert(line.number, table);
    }
    file(&format!("{:06}.log", manifest.log))?;
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_err(|error| error.to_string())?;
    let (last_seqno, now) = (manifest.last_seqno, manifest.clock.max(time.as_millis() as u64));
    let mut database = Database { last_seqno, manifest, tables, logs: vec![], logged: vec![], now };
    database.replay(files)?;
    Ok(database)
}

/// The logs from number `from` on, in the order of their numbers.
fn logs(files: &Files, from: u64) -> Vec<(u64, &[u8])> {
    let number = |name: &str| {
        let number = name.strip_suffix(".log")?.parse::<u64>().ok()?;
        (name == format!("{number:06}.log") && number >= from).then_some(number)
    };
    let mut logs: Vec<_> = files.iter().filter_map(|(name, bytes)| Some((number(name)?, &bytes[..]))).collect();
    logs.sort_unstable();
    logs
}

fn describes(line: &TableLine, table: &Table, size: u64) -> bool {
    let found = &table.properties;
    let counts = (line.size, line.entries, line.tombstones) == (size, found.entries, found.tombstones);
    let seqnos = (line.smallest_seqno, line.largest_seqno) == (found.smallest_seqno, found.largest_seqno);
    let begins = if line.narrowed { line.smallest >= found.first_key } else { line.smallest == found.first_key };
    counts
        && seqnos
        && begins
        && line.largest == found.last_key
        && line.range_tombstones == table.distinct_ranges
        && line.expiring == found.expiring
}

impl Database {
    /// Applies the batches of the logs, up to the end of their sequence.
    fn replay(&mut self, files: &Files) -> Read {
        let logs = logs(files, self.manifest.log);
        for (at, &(number, bytes)) in logs.iter().enumerate() {
            need(number != self.manifest.log || !log::was_never_begun(bytes), "the manifest's log has no header")?;
            let log = log::read(number, bytes)?;
            let follows = |(first, _): &(u64, _)| *first <= self.last_seqno + 1;
            if !log.batches.first().is_none_or(follows) {
                need(at > 0, "the oldest log has lost its beginning")?;
                return self.stop(&logs[at..]);
            }
            for (first, operations) in &log.batches {
                need(*first == self.last_seqno + 1, "a batch that does not follow")?;
                self.last_seqno += operations.len() as u64;
                self.logged.extend_from_slice(operations);
            }
            let is_torn = log.is_torn;
            self.logs.push((number, log));
            if is_torn {
                return self.stop(&logs[at + 1..]);
            }
        }
        Ok(())
    }

    /// Stops the sequence before the logs `later`; checks that their frames do not record a later sync.
    fn stop(&self, later: &[(u64, &[u8])]) -> Read {
        let (stop, clean) = self.logs.split_last().ok_or("no log before the stop")?;
        for &(number, bytes) in later {
            let synced = log::synced_in(number, bytes)?;
            need(!stop.1.is_contradicted(stop.0, synced), "logs that were synced are not there")?;
            let ends_early = |(own, log): &(u64, Log)| synced.is_some_and(|(l, o)| l == *own && o > log.end);
            need(!clean.iter().any(ends_early), "the end of a log that was synced is not there")?;
        }
        Ok(())
    }

    /// The result of a read of `key` at `wanted`.
    pub(crate) fn get(&self, key: &[u8], wanted: u64) -> Answer<'_> {
        let (seqno, found) = match self.newest(key, wanted) {
            Some(entry) => {
                let value = entry.value.as_deref().filter(|_| entry.expires.is_none_or(|at| at > self.now));
                (entry.seqno, value.map_or(Answer::Nothing, Answer::Value))
            }
            None => (0, Answer::Nothing),
        };
        let hides = |line: &TableLine| *line.smallest <= *key && *key <= *line.largest && seqno <= line.largest_seqno;
        if self.manifest.quarantined.iter().any(hides) { Answer::Unknown } else { found }
    }

    /// The first version at or below `wanted` of the sources in their order.
    fn newest(&self, key: &[u8], wanted: u64) -> Option<&Entry> {
        let is_it = |entry: &&Entry| entry.is_of(key) && entry.seqno <= wanted;
        let logged = self.logged.iter().rev().find(is_it);
        let mut tables = self.manifest.tables.iter().filter_map(|line| self.tables.get(&line.number));
        logged.or_else(|| tables.find_map(|table| table.newest(key, wanted)))
    }

    /// Every key that has any version.
    pub(crate) fn keys(&self) -> BTreeSet<&[u8]> {
        let entries = self.tables.values().flat_map(|table| &table.entries).chain(&self.logged);
        entries.map(|entry| &entry.key[..]).collect()
    }

    /// The visible contents of the default keyspace at `wanted`.
    pub(crate) fn state(&self, wanted: u64) -> Map {
        self.keyspaces(wanted).remove("").unwrap_or_default()
    }

    /// The visible contents at `wanted`, by the name of the keyspace; the name is empty for the default one.
    pub(crate) fn keyspaces(&self, wanted: u64) -> BTreeMap<String, Map> {
        let mut found: BTreeMap<String, Map> = BTreeMap::new();
        for stored in self.keys() {
            let Answer::Value(value) = self.get(stored, wanted) else { continue };
            let (id, key) = split(stored).unwrap_or_else(|what| panic!("{}: {what}", stored.escape_ascii()));
            let name = if id == 0 { Some("") } else { self.manifest.keyspaces.get(&id).map(String::as_str) };
            if let Some(name) = name {
                found.entry(name.to_owned()).or_default().insert(key.to_vec(), value.to_vec());
            }
        }
        found
    }
}

/// The number of the keyspace of a stored key, and the key in it.
fn split(stored: &[u8]) -> Read<(u32, &[u8])> {
    let Some(rest) = stored.strip_prefix(b"\xff") else { return Ok((0, stored)) };
    let (&first, rest) = rest.split_first().ok_or("a prefix without a number")?;
    if first < 0xf8 {
        need(first > 0 || rest.starts_with(b"\xff"), "a prefix that is not needed")?;
        return Ok((first.into(), rest));
    }
    let (number, key) = rest.split_at_checked(usize::from(first - 0xf7)).ok_or("a number that is cut off")?;
    let id = number.iter().fold(0u64, |id, byte| id << 8 | u64::from(*byte));
    need(id >= 0xf8 && number[0] > 0, "a number in a longer form")?;
    Ok((id.try_into().map_err(|_| "a number of more than 32 bits")?, key))
}
