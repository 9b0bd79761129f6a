//! Point reads of many keys: from one view, source by source instead of key by key.
//!
//! Keys are sorted once. Each source is then asked for all keys that no newer source knows, so that the searches of a
//! memtable go on side by side, a table's filter is asked for many keys at once, and a block that holds several of
//! them is looked for once.

use super::get::{get, read_now};
use super::read_point::ReadPoint;
use crate::codec::key_hash;
use crate::db::core::Core;
use crate::error::Result;
use crate::table::OpenRun;
use crate::types::{Kind, SeqNo, Slice};

/// The newest values of `keys` that `point` sees, in the order of the keys. Sources are asked as for a single key, and fail as for
/// a single key.
pub(super) fn get_many<K: AsRef<[u8]>>(point: ReadPoint<'_>, keys: &[K]) -> Result<Vec<Option<Slice>>> {
    if !point.quarantined.is_empty() {
        // Which versions count is a question of each key then.
        return keys.iter().map(|key| get(point, key.as_ref())).collect();
    }
    let ReadPoint { core, view, seqno, .. } = point;
    core.store.counters.gets.add(keys.len() as u64);
    let mut values = vec![None; keys.len()];
    let mut open = PendingKeys::new(keys);
    let frozen = view.frozen.iter().map(|frozen| &frozen.memtable);
    for memtable in std::iter::once(&view.active).chain(frozen) {
        let found = memtable.get_many(&open.keys, seqno);
        let answers = found.into_iter().enumerate().filter_map(|(at, found)| Some((at, found?)));
        answers.for_each(|(at, value)| open.answer(at, value, &mut values));
        open.drop_answered();
    }
    open.hashes = open.keys.iter().map(|key| key_hash(key)).collect();
    for run in view.runs.iter() {
        let found = ask_run(run, &open, seqno)?;
        found.into_iter().for_each(|(at, value)| open.answer(at, value, &mut values));
        open.drop_answered();
    }
    Ok(values)
}

/// The newest values of `keys`, all as of now.
pub(crate) fn get_many_now<K: AsRef<[u8]>>(core: &Core, keys: &[K]) -> Result<Vec<Option<Slice>>> {
    read_now(core, |point| get_many(point, keys))
}

/// What `run` knows of the keys, by their index: from table to table that any of them may be in.
fn ask_run(run: &OpenRun, open: &PendingKeys<'_>, seqno: SeqNo) -> Result<Vec<(usize, Option<Slice>)>> {
    let mut found = Vec::new();
    let mut next = 0;
    while let Some(table) = open.keys.get(next).and_then(|key| run.first_reaching(key)) {
        let (from, to) = open.within(table.smallest(), table.largest());
        if from < to && table.min_seqno() <= seqno {
            let answer = |at, kind, value| found.push((from + at, (kind == Kind::Value).then_some(value)));
            table.get_many(&open.keys[from..to], &open.hashes[from..to], seqno, answer)?;
        }
        // Past the table's last key, so past the key that led to it.
        next = to;
    }
    Ok(found)
}

/// The keys that no source so far knows, ascending: parallel lists, as the filters and memtables take them.
struct PendingKeys<'a> {
    keys: Vec<&'a [u8]>,
    /// Of each key; empty until the tables are asked.
    hashes: Vec<u64>,
    /// Where the caller has each key.
    positions: Vec<usize>,
    /// Which of them have got their answer since the lists were last closed up.
    answered: Vec<bool>,
}

impl<'a> PendingKeys<'a> {
    fn new<K: AsRef<[u8]>>(keys: &'a [K]) -> Self {
        let mut positions: Vec<usize> = (0..keys.len()).collect();
        positions.sort_unstable_by_key(|&at| keys[at].as_ref());
        let keys = positions.iter().map(|&at| keys[at].as_ref()).collect();
        Self { keys, hashes: Vec::new(), answered: vec![false; positions.len()], positions }
    }

    /// Where the keys from `smallest` to `largest` begin and end.
    fn within(&self, smallest: &[u8], largest: &[u8]) -> (usize, usize) {
        let from = self.keys.partition_point(|key| *key < smallest);
        (from, from + self.keys[from..].partition_point(|key| *key <= largest))
    }

    /// The key at `at` has this value, or is known not to have one.
    fn answer(&mut self, at: usize, value: Option<Slice>, values: &mut [Option<Slice>]) {
        values[self.positions[at]] = value;
        self.answered[at] = true;
    }

    fn drop_answered(&mut self) {
        if !self.answered.contains(&true) {
            return;
        }
        retain(&mut self.keys, &self.answered);
        retain(&mut self.hashes, &self.answered);
        retain(&mut self.positions, &self.answered);
        self.answered.clear();
        self.answered.resize(self.keys.len(), false);
    }
}

fn retain<T>(list: &mut Vec<T>, answered: &[bool]) {
    let mut answered = answered.iter();
    list.retain(|_| !answered.next().copied().unwrap_or(false));
}
