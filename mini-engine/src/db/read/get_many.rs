//! Point reads of many keys: from one view, source by source instead of key by key.
//!
//! Keys are sorted once. Each source is then asked for all keys that no newer source knows. So the searches of a memtable run side by side, a
//! table's filter is asked for many keys at once, and a block that holds several of them is looked up once.

use std::ops::ControlFlow;

use super::point_read::PointRead;
use crate::codec::key_hash;
use crate::error::Result;
use crate::table::OpenRun;
use crate::types::{Kind, Slice, shown_slice};

/// `Some(result)`, with the result of `get`, if the search reached the key; `None` if it ended before.
pub(crate) type Answer = Option<Option<Slice>>;

impl PointRead<'_> {
    pub(crate) fn get_many<K: AsRef<[u8]>>(self, keys: &[K]) -> Result<Vec<Option<Slice>>> {
        Ok(self.get_many_up_to(None, keys)?.into_iter().map(Option::flatten).collect())
    }

    /// Like [`get_many`](Self::get_many), until the values found have `soft_limit` bytes together. Sources are asked, and fail, in the same way as
    /// for a single key.
    pub(crate) fn get_many_up_to<K: AsRef<[u8]>>(self, soft_limit: Option<usize>, keys: &[K]) -> Result<Vec<Answer>> {
        let mut answers = Answers { values: vec![None; keys.len()], found_bytes: 0, soft_limit };
        // One instant for all.
        let read = PointRead { instant: Some(self.now()), ..self };
        let asked = match self.quarantined.is_empty() {
            true => ask_sources(read, keys, &mut answers)?,
            // Here each key must be checked against the quarantined tables.
            false => ask_singly(read, keys, &mut answers)?,
        };
        if asked.is_continue() {
            // Keys that no source knows are absent.
            answers.values.iter_mut().for_each(|answer| *answer = Some(answer.take().flatten()));
        }
        Ok(answers.values)
    }
}

/// `Break` once the values found have reached the limit of bytes.
type Asked = Result<ControlFlow<()>>;

fn ask_singly<K: AsRef<[u8]>>(read: PointRead<'_>, keys: &[K], answers: &mut Answers) -> Asked {
    for (at, key) in keys.iter().enumerate() {
        if answers.take(at, read.get(key.as_ref())?).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn ask_sources<K: AsRef<[u8]>>(read: PointRead<'_>, keys: &[K], answers: &mut Answers) -> Asked {
    let asked = ask_each_source(read, PendingKeys::new(keys), answers);
    let is_whole = !matches!(asked, Ok(ControlFlow::Break(())));
    let gets = if is_whole { keys.len() } else { answers.values.iter().flatten().count() };
    read.core.store.counters.gets.add(gets as u64);
    asked
}

fn ask_each_source(read: PointRead<'_>, mut pending: PendingKeys<'_>, answers: &mut Answers) -> Asked {
    let PointRead { view, seqno, .. } = read;
    let frozen = view.frozen.iter().map(|frozen| &frozen.memtable);
    for memtable in std::iter::once(&view.active).chain(frozen) {
        let PendingKeys { keys, positions, answered, .. } = &mut pending;
        let asked = memtable.get_many(keys, seqno, read.now(), |at, value| {
            answered[at] = true;
            answers.take(positions[at], value)
        });
        if asked.is_break() {
            return Ok(asked);
        }
        pending.drop_answered();
    }
    pending.hashes = pending.keys.iter().map(|key| key_hash(key)).collect();
    for run in view.runs.iter() {
        if ask_run(read, run, &mut pending, answers)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        pending.drop_answered();
    }
    Ok(ControlFlow::Continue(()))
}

/// Asks `run` for the keys, from one table that may hold any of them to the next.
fn ask_run(read: PointRead<'_>, run: &OpenRun, pending: &mut PendingKeys<'_>, answers: &mut Answers) -> Asked {
    let seqno = read.seqno;
    let mut next = 0;
    while let Some(table) = pending.keys.get(next).and_then(|key| run.first_reaching(key)) {
        let (from, to) = pending.within(table.smallest(), table.largest());
        if from < to && table.min_seqno() <= seqno {
            let PendingKeys { keys, hashes, positions, answered } = pending;
            let asked = table.get_many(&keys[from..to], &hashes[from..to], seqno, |at, kind, value| {
                answered[from + at] = true;
                let value = match kind {
                    Kind::Value => Some(value),
                    kind => shown_slice(kind, value, || read.now()).map(|(value, _)| value),
                };
                answers.take(positions[from + at], value)
            })?;
            if asked.is_break() {
                return Ok(asked);
            }
        }
        // This is past the table's last key, and so past the key that led to it.
        next = to;
    }
    Ok(ControlFlow::Continue(()))
}

/// The answers so far, in the order of the caller's keys.
struct Answers {
    values: Vec<Answer>,
    found_bytes: usize,
    soft_limit: Option<usize>,
}

impl Answers {
    /// The caller's key `at` has this value, or is known to have none. Returns whether to continue.
    fn take(&mut self, at: usize, value: Option<Slice>) -> ControlFlow<()> {
        self.found_bytes = self.found_bytes.saturating_add(value.as_ref().map_or(0, |value| value.len()));
        self.values[at] = Some(value);
        match self.soft_limit.is_some_and(|limit| self.found_bytes >= limit) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// The keys that no source so far knows, ascending: parallel lists, as the filters and memtables take them.
struct PendingKeys<'a> {
    keys: Vec<&'a [u8]>,
    /// The hash of each key; empty until the tables are asked.
    hashes: Vec<u64>,
    /// The position of each key in the caller's list.
    positions: Vec<usize>,
    /// The keys that were answered since the lists were last compacted.
    answered: Vec<bool>,
}

impl<'a> PendingKeys<'a> {
    fn new<K: AsRef<[u8]>>(keys: &'a [K]) -> Self {
        let mut positions: Vec<usize> = (0..keys.len()).collect();
        positions.sort_unstable_by_key(|&at| keys[at].as_ref());
        let keys = positions.iter().map(|&at| keys[at].as_ref()).collect();
        Self { keys, hashes: Vec::new(), answered: vec![false; positions.len()], positions }
    }

    /// The positions at which the keys from `smallest` to `largest` begin and end.
    fn within(&self, smallest: &[u8], largest: &[u8]) -> (usize, usize) {
        let from = self.keys.partition_point(|key| *key < smallest);
        (from, from + self.keys[from..].partition_point(|key| *key <= largest))
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
