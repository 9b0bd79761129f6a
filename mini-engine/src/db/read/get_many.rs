//! Point reads of many keys: from one view, source by source instead of key by key.
//!
//! Keys are sorted once. Each source is then searched for all keys that were in no newer source. So the searches of a memtable overlap, a table's
//! filter is probed for many keys at once, and a block that holds several of the keys is looked up once.

use std::ops::ControlFlow;

use super::get::get_held;
use super::point_read::{PointRead, ViewRead, view_with_all_writes};
use crate::codec::key_hash;
use crate::error::Result;
use crate::table::OpenRun;
use crate::types::{KeyspaceRef, Kind, Slice, shown_slice};

/// `Some(result)`, with the result of `get`, if the search reached the key; `None` if the search ended before that.
pub(crate) type Lookup = Option<Option<Slice>>;

impl PointRead<'_> {
    pub(crate) fn get_many(self, keys: &[&[u8]]) -> Result<Vec<Option<Slice>>> {
        Ok(self.get_many_up_to(None, keys)?.into_iter().map(Option::flatten).collect())
    }

    /// Like [`get_many`](Self::get_many), but the search ends when the values found have `soft_limit` bytes together. Sources are searched, and fail,
    /// as for a single key.
    pub(crate) fn get_many_up_to(self, soft_limit: Option<usize>, keys: &[&[u8]]) -> Result<Vec<Lookup>> {
        if let [key] = keys {
            return Ok(vec![Some(self.get(key)?)]);
        }
        let mut values = Values { lookups: vec![None; keys.len()], bytes: 0, soft_limit, is_full: false };
        // A read of many keys may need files, so it counts its view.
        let (view, seqno) = match self.snapshot {
            Some(snapshot) => (snapshot.view.cloned().unwrap_or_else(|| self.core.view.get()), snapshot.seqno),
            None => view_with_all_writes(self.core),
        };
        self.keyspace.map_or(Ok(()), KeyspaceRef::check)?;
        let read = self.at(&view, seqno);
        // All keys are read at one instant.
        let read = ViewRead { instant: Some(read.now()), ..read };
        match read.quarantined.is_empty() {
            true => {
                let searched = search_sources(read, PendingKeys::new(keys), &mut values);
                let gets = if values.is_full { values.lookups.iter().flatten().count() } else { keys.len() };
                self.core.store.counters.gets.add(gets as u64);
                searched?;
            }
            // With quarantined tables, each key must be checked against them.
            false => get_singly(read, keys, &mut values)?,
        }
        if !values.is_full {
            // Keys that are in no source are absent.
            values.lookups.iter_mut().for_each(|lookup| *lookup = Some(lookup.take().flatten()));
        }
        Ok(values.lookups)
    }
}

fn get_singly(read: ViewRead<'_>, keys: &[&[u8]], values: &mut Values) -> Result<()> {
    for (at, key) in keys.iter().enumerate() {
        if values.add(at, get_held(read, key)?).is_break() {
            break;
        }
    }
    Ok(())
}

fn search_sources(read: ViewRead<'_>, mut pending: PendingKeys<'_>, values: &mut Values) -> Result<()> {
    let ViewRead { view, seqno, .. } = read;
    let frozen = view.frozen.iter().map(|frozen| &frozen.memtable);
    for memtable in std::iter::once(&view.active).chain(frozen) {
        let PendingKeys { keys, positions, found, .. } = &mut pending;
        let searched = memtable.get_many(keys, seqno, read.now(), |at, value| {
            found[at] = true;
            values.add(positions[at], value)
        });
        if searched.is_break() {
            return Ok(());
        }
        pending.drop_found();
    }
    pending.hashes = pending.keys.iter().map(|key| key_hash(key)).collect();
    for run in view.runs.iter() {
        search_run(read, run, &mut pending, values)?;
        if values.is_full {
            break;
        }
        pending.drop_found();
    }
    Ok(())
}

/// Searches `run` for the keys, going from one table that may hold any of them to the next.
fn search_run(read: ViewRead<'_>, run: &OpenRun, pending: &mut PendingKeys<'_>, values: &mut Values) -> Result<()> {
    let mut next = 0;
    while let Some(table) = pending.keys.get(next).and_then(|key| run.first_reaching(key)) {
        let (from, to) = pending.within(table.smallest(), table.largest());
        if from < to && table.min_seqno() <= read.seqno {
            let PendingKeys { keys, hashes, positions, found } = pending;
            let searched = table.get_many(&keys[from..to], &hashes[from..to], read.seqno, |at, kind, value| {
                found[from + at] = true;
                let value = match kind {
                    Kind::Value => Some(value),
                    kind => shown_slice(kind, value, || read.now()).map(|(value, _)| value),
                };
                values.add(positions[from + at], value)
            })?;
            if searched.is_break() {
                break;
            }
        }
        // `to` is past the table's last key, and so past the key that selected the table.
        next = to;
    }
    Ok(())
}

/// The values found so far, in the order of the caller's keys.
struct Values {
    lookups: Vec<Lookup>,
    bytes: usize,
    soft_limit: Option<usize>,
    /// Whether the values have reached the limit; then the search ends.
    is_full: bool,
}

impl Values {
    /// Records the value of the caller's key `at`, or that it has none. Returns whether to continue.
    fn add(&mut self, at: usize, value: Option<Slice>) -> ControlFlow<()> {
        self.bytes = self.bytes.saturating_add(value.as_ref().map_or(0, |value| value.len()));
        self.lookups[at] = Some(value);
        if self.soft_limit.is_some_and(|limit| self.bytes >= limit) {
            self.is_full = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// The keys that were in no source so far, ascending: parallel lists, as the filters and memtables need them.
struct PendingKeys<'a> {
    keys: Vec<&'a [u8]>,
    /// The hash of each key; empty until the tables are searched.
    hashes: Vec<u64>,
    /// The position of each key in the caller's list.
    positions: Vec<usize>,
    /// Marks the keys that were found since the lists were last compacted.
    found: Vec<bool>,
}

impl<'a> PendingKeys<'a> {
    fn new(keys: &[&'a [u8]]) -> Self {
        let mut positions: Vec<usize> = (0..keys.len()).collect();
        positions.sort_unstable_by_key(|&at| keys[at]);
        let keys = positions.iter().map(|&at| keys[at]).collect();
        Self { keys, hashes: Vec::new(), found: vec![false; positions.len()], positions }
    }

    /// The positions at which the keys from `smallest` to `largest` begin and end.
    fn within(&self, smallest: &[u8], largest: &[u8]) -> (usize, usize) {
        let from = self.keys.partition_point(|key| *key < smallest);
        (from, from + self.keys[from..].partition_point(|key| *key <= largest))
    }

    fn drop_found(&mut self) {
        if !self.found.contains(&true) {
            return;
        }
        retain(&mut self.keys, &self.found);
        retain(&mut self.hashes, &self.found);
        retain(&mut self.positions, &self.found);
        self.found.clear();
        self.found.resize(self.keys.len(), false);
    }
}

fn retain<T>(list: &mut Vec<T>, found: &[bool]) {
    let mut found = found.iter();
    list.retain(|_| !found.next().copied().unwrap_or(false));
}
