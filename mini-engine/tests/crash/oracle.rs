//! The states that a crash may leave.
//!
//! All writing is a sequence of batches, numbered from 1. Each batch makes its changes and also sets the key `count` to its own number. So the
//! database itself says how many batches it has. Everything else follows: it must be exactly what an ordinary map is after these first batches, no
//! more and no less.
//! * a batch that is partly there, or missing before one that is there, makes another state than that;
//! * `count` below what was promised to survive is a loss;
//! * `count` above what was ever begun is a phantom.

use crate::prelude::*;

/// The key that each batch sets to its number.
pub(crate) const COUNT: &[u8] = b"count";

/// A change of a key, or of a range of keys.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Set(Vec<u8>, Vec<u8>),
    /// The same for a time: from this second on the key is absent.
    SetUntil(Vec<u8>, Vec<u8>, u64),
    Remove(Vec<u8>),
    /// All keys from the first on and before the second, or to the end if there is no second.
    RemoveRange(Vec<u8>, Option<Vec<u8>>),
    /// Sorted entries from outside, which have one sequence number. This is a batch by itself.
    Load(Map),
}

pub(crate) type Batch = Arc<Vec<Change>>;

/// The contents of a database.
pub(crate) type Map = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) fn contents(db: &Db) -> Map {
    db.iter().map(Result::unwrap).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// How far the writing had come, in batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Handed to the engine.
    pub(crate) begun: usize,
    /// Acknowledged: these batches survive a killed process.
    pub(crate) acknowledged: usize,
    /// Acknowledged as synced: these batches survive a power cut.
    pub(crate) synced: usize,
}

/// The time in seconds by which everything that expires has expired: the system's.
pub(crate) const TODAY: u64 = u64::MAX;

/// The entries of an ordinary map after `batches`, each with the second at which it expires, if it does.
pub(crate) fn entries_after(batches: &[Batch]) -> BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)> {
    let mut map = BTreeMap::new();
    for change in batches.iter().flat_map(|batch| batch.iter()) {
        match change {
            Change::Set(key, value) => drop(map.insert(key.clone(), (value.clone(), None))),
            Change::SetUntil(key, value, at) => drop(map.insert(key.clone(), (value.clone(), Some(*at)))),
            Change::Remove(key) => drop(map.remove(key)),
            Change::Load(load) => map.extend(load.iter().map(|(key, value)| (key.clone(), (value.clone(), None)))),
            Change::RemoveRange(from, to) => {
                map.retain(|key, _| key < from || to.as_ref().is_some_and(|to| key >= to));
            }
        }
    }
    map
}

/// The contents of the map after `batches`, at `time`.
fn state_after(batches: &[Batch], time: u64) -> Map {
    let entries = entries_after(batches).into_iter();
    entries.filter(|(_, (_, at))| at.is_none_or(|at| at > time)).map(|(key, (value, _))| (key, value)).collect()
}

/// Reads all of `db`, to which all of `batches` were written, or the first few. Returns how many there are, or what is wrong: fewer than `least`,
/// more than `most`, or not the state after any number of them.
pub(crate) fn judge(db: &Db, batches: &[Batch], (least, most): (usize, usize), time: u64) -> Result<usize, String> {
    let found = db.iter().map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())));
    let found: Map = found.collect::<Result<_, _>>().map_err(|error| format!("a scan fails: {error}"))?;
    let count = match found.get(COUNT) {
        Some(value) => u64::from_le_bytes(value[..].try_into().map_err(|_| "the count is damaged")?) as usize,
        None => 0,
    };
    if count < least {
        return Err(format!("LOST: {count} batches are there, {least} were promised"));
    }
    if count > most {
        return Err(format!("PHANTOM: {count} batches are there, {most} were begun"));
    }
    let expected = state_after(&batches[..count], time);
    if found != expected {
        let differs = |key: &&Vec<u8>| found.get(*key) != expected.get(*key);
        let key = expected.keys().chain(found.keys()).find(differs).map(|key| key.escape_ascii().to_string());
        return Err(format!("PARTIAL: not the state after {count} batches, see key {key:?}"));
    }
    check_other_reads(db, &expected)?;
    let operations: u64 = batches[..count].iter().map(|batch| batch.len() as u64).sum();
    match db.snapshot().seqno() {
        seqno if seqno == operations => Ok(count),
        seqno => Err(format!("the last sequence number is {seqno}, after {operations} operations")),
    }
}

/// Point reads and a scan backward agree, and a verification finds nothing.
fn check_other_reads(db: &Db, expected: &Map) -> Result<(), String> {
    let backward = db.iter().rev().map(|entry| Ok(entry?.0.to_vec())).collect::<Result<Vec<_>, Error>>();
    let backward = backward.map_err(|error| format!("a scan backward fails: {error}"))?;
    if !backward.iter().eq(expected.keys().rev()) {
        return Err("a scan backward differs from one forward".to_owned());
    }
    for n in 0..crate::script::KEYS {
        let key = crate::script::key(n);
        let found = db.get(&key).map_err(|error| format!("a read fails: {error}"))?;
        if found.as_deref() != expected.get(&key).map(Vec::as_slice) {
            return Err(format!("a read of {} differs from a scan", key.escape_ascii()));
        }
    }
    let problems = db.verify().map_err(|error| format!("verify fails: {error}"))?.problems;
    problems.first().map_or(Ok(()), |problem| Err(format!("verify finds: {problem}")))
}
