//! The states that a crash may leave.
//!
//! All writing is a sequence of events, numbered from 1: batches, and keyspaces that are created and dropped. Each batch makes its changes and also
//! sets the key `count` of the default keyspace to its own number. So `count` is the number of the last batch in the database. The contents must be
//! exactly those of ordinary maps after the batches up to that number.
//! * a partial batch, or a missing batch before an existing one, leads to another state;
//! * `count` below the last durable batch is a loss;
//! * `count` above the last begun batch is a phantom.
//!
//! A creation or a drop of a keyspace is durable when its call returns. So after a crash, all creations and drops whose calls had returned are
//! there, and perhaps the unfinished one. This does not depend on the batches: batches before a creation may be lost, those before a drop are not.
//! An existing keyspace is listed, and has only the writes since its last creation, and none of an earlier keyspace of its name.

use crate::prelude::*;

/// The key that each batch sets to its number.
pub(crate) const COUNT: &[u8] = b"count";

/// The name of a keyspace; that of the default one is empty.
pub(crate) type Name = &'static str;

/// A change of a key, or of a range of keys, of one keyspace.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Set(Vec<u8>, Vec<u8>),
    /// As `Set`, with an expiry of its own: from this second on the key is absent; `None` means never.
    SetUntil(Vec<u8>, Vec<u8>, Option<u64>),
    /// As `Set`, in a keyspace whose entries expire by default: this one expires at this second.
    SetByDefault(Vec<u8>, Vec<u8>, u64),
    Remove(Vec<u8>),
    /// Removes all keys from the first key on and before the second, or to the end of the keyspace if there is no second.
    RemoveRange(Vec<u8>, Option<Vec<u8>>),
    /// A bulk load of sorted entries with one sequence number. It is a batch by itself.
    Load(Map),
}

/// Changes, each in its keyspace.
pub(crate) type Batch = Arc<Vec<(Name, Change)>>;

#[derive(Clone, Debug)]
pub(crate) enum Event {
    Batch(Batch),
    /// Creates a keyspace, whose name must not exist yet.
    Create(Name),
    Drop(Name),
}

impl Event {
    pub(crate) fn batch(&self) -> Option<&Batch> {
        if let Event::Batch(batch) = self { Some(batch) } else { None }
    }

    /// Whether it is a batch with changes in several keyspaces.
    pub(crate) fn spans_keyspaces(&self) -> bool {
        self.batch().is_some_and(|batch| batch.iter().any(|(name, _)| !name.is_empty()))
    }
}

/// The contents of a keyspace, each value with its expiry, if any.
type Expiring = BTreeMap<Vec<u8>, (Vec<u8>, Option<SystemTime>)>;

/// The contents of all keyspaces.
type State = BTreeMap<String, Expiring>;

/// The written and not removed entries of each keyspace, each value with the second of its expiry, if any.
pub(crate) type Entries = BTreeMap<Name, BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>>;

/// The keyspace `name`, which must exist.
pub(crate) fn keyspace(db: &Db, name: &str) -> Result<Keyspace, Error> {
    if name.is_empty() {
        return Ok(Keyspace::clone(db));
    }
    assert!(db.keyspaces().iter().any(|listed| listed == name), "keyspace {name} would be created");
    db.keyspace(name)
}

/// The default keyspace and all others.
fn keyspaces(db: &Db) -> Result<Vec<Keyspace>, Error> {
    [String::new()].iter().chain(&db.keyspaces()).map(|name| keyspace(db, name)).collect()
}

fn state_of(db: &Db) -> Result<State, Error> {
    keyspaces(db)?.iter().map(|keyspace| Ok((keyspace.name().to_owned(), contents_of(keyspace)?))).collect()
}

fn contents_of(keyspace: &Keyspace) -> Result<Expiring, Error> {
    let mut iter = keyspace.iter();
    let entries = std::iter::from_fn(|| iter.next_with_expiry());
    entries.map(|entry| entry.map(|(key, value, at)| (key.to_vec(), (value.to_vec(), at)))).collect()
}

/// The events that a database has or must have: batches up to one number, creations and drops up to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) batches: usize,
    pub(crate) keyspaces: usize,
}

impl Kept {
    pub(crate) fn all(events: usize) -> Kept {
        Kept { batches: events, keyspaces: events }
    }

    pub(crate) fn max(self, other: Kept) -> Kept {
        Kept { batches: self.batches.max(other.batches), keyspaces: self.keyspaces.max(other.keyspaces) }
    }

    /// A copy with creations and drops only up to `keyspaces`, but at least those before the last batch.
    pub(crate) fn with_keyspaces(self, keyspaces: usize) -> Kept {
        Kept { keyspaces: keyspaces.clamp(self.batches, self.keyspaces), ..self }
    }

    /// The events of `events` that are kept.
    pub(crate) fn of(self, events: &[Event]) -> Vec<Event> {
        let is_kept =
            |(at, event): &(usize, &Event)| *at < if event.batch().is_some() { self.batches } else { self.keyspaces };
        events.iter().enumerate().filter(is_kept).map(|(_, event)| event.clone()).collect()
    }
}

/// The progress of the writer, in events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Events that were passed to the engine.
    pub(crate) begun: usize,
    /// Acknowledged events, which survive a killed process.
    pub(crate) acknowledged: usize,
    /// Events that survive a power cut: batches that were acknowledged as synced, and acknowledged creations and drops of keyspaces.
    pub(crate) durable: Kept,
}

/// A time in seconds for the system's clock: all entries with an expiry have expired by then.
pub(crate) const TODAY: u64 = u64::MAX;

/// The entries of ordinary maps after `events`.
pub(crate) fn entries_after(events: &[Event]) -> Entries {
    let mut maps = Entries::from([("", BTreeMap::new())]);
    for event in events {
        match event {
            Event::Create(name) => drop(maps.insert(*name, BTreeMap::new())),
            Event::Drop(name) => drop(maps.remove(name)),
            Event::Batch(batch) => {
                for (name, change) in batch.iter() {
                    make(change, maps.get_mut(name).expect("a keyspace that was created, and not dropped"));
                }
            }
        }
    }
    maps
}

fn make(change: &Change, map: &mut BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>) {
    match change {
        Change::Set(key, value) => drop(map.insert(key.clone(), (value.clone(), None))),
        Change::SetUntil(key, value, at) => drop(map.insert(key.clone(), (value.clone(), *at))),
        Change::SetByDefault(key, value, at) => drop(map.insert(key.clone(), (value.clone(), Some(*at)))),
        Change::Remove(key) => drop(map.remove(key)),
        Change::Load(load) => map.extend(load.iter().map(|(key, value)| (key.clone(), (value.clone(), None)))),
        Change::RemoveRange(from, to) => {
            map.retain(|key, _| key < from || to.as_ref().is_some_and(|to| key >= to));
        }
    }
}

/// The contents of the maps after `events`, at `time`.
fn state_after(events: &[Event], time: u64) -> State {
    let shown = |(key, (value, at)): (_, (_, Option<u64>))| {
        at.is_none_or(|at| at > time).then_some((key, (value, at.map(second))))
    };
    entries_after(events)
        .into_iter()
        .map(|(name, map)| (name.to_owned(), map.into_iter().filter_map(shown).collect()))
        .collect()
}

/// The number of the last batch among `events`.
pub(crate) fn last_batch(events: &[Event]) -> usize {
    events.iter().rposition(|event| event.batch().is_some()).map_or(0, |at| at + 1)
}

/// Reads all of `db`, which must hold `events`, or a part that a crash may leave. Returns the part, or an error: fewer events than `least`, more than
/// `most`, or a state that no part explains.
pub(crate) fn judge(db: &Db, events: &[Event], (least, most): (Kept, usize), time: u64) -> Result<Kept, String> {
    let found = state_of(db).map_err(|error| format!("a scan fails: {error}"))?;
    let count = match found[""].get(COUNT) {
        Some((value, _)) => u64::from_le_bytes(value[..].try_into().map_err(|_| "the count is damaged")?) as usize,
        None => 0,
    };
    let promised = last_batch(&events[..least.batches]);
    if count < promised {
        return Err(format!("LOST: batch {count} is the last one, {promised} was promised"));
    }
    if count > most {
        return Err(format!("PHANTOM: batch {count} is there, {most} events were begun"));
    }
    // A batch implies the earlier creation of its keyspaces.
    let first = least.keyspaces.max(count);
    let may_end = |at: &usize| *at == first || events[at - 1].batch().is_none();
    let may_be = (first..=most).filter(may_end).map(|keyspaces| Kept { batches: count, keyspaces });
    let Some(kept) = may_be.clone().find(|kept| state_after(&kept.of(events), time) == found) else {
        let kept = Kept { batches: count, keyspaces: first };
        return Err(format!("PARTIAL: not the state after {kept:?}{}", difference(&found, events, kept, time)));
    };
    let dropped = events[..kept.keyspaces].iter().rposition(|event| matches!(event, Event::Drop(_))).unwrap_or(0);
    if count < last_batch(&events[..dropped]) {
        return Err(format!(
            "LOST: batch {count} is the last one, and a later event, {}, has dropped a keyspace",
            dropped + 1
        ));
    }
    check_other_reads(db, &found)?;
    let batches = events[..count].iter().filter_map(Event::batch);
    let operations: u64 = batches.map(|batch| batch.len() as u64).sum();
    match db.snapshot().seqno() {
        seqno if seqno == operations => Ok(kept),
        seqno => Err(format!("the last sequence number is {seqno}, after {operations} operations")),
    }
}

/// The first difference between the found and the expected state.
fn difference(found: &State, events: &[Event], kept: Kept, time: u64) -> String {
    let expected = state_after(&kept.of(events), time);
    if !found.keys().eq(expected.keys()) {
        return format!(": keyspaces {:?}, expected {:?}", found.keys(), expected.keys());
    }
    let differs = |name: &&String| found[*name] != expected[*name];
    let Some(name) = found.keys().find(differs) else { return String::new() };
    let (found, expected) = (&found[name], &expected[name]);
    let key = expected.keys().chain(found.keys()).find(|key| found.get(*key) != expected.get(*key));
    format!(": see keyspace {name:?}, key {:?}", key.map(|key| key.escape_ascii().to_string()))
}

/// Checks that point reads and backward scans agree, and that a verification finds no damage.
fn check_other_reads(db: &Db, expected: &State) -> Result<(), String> {
    for keyspace in keyspaces(db).map_err(|error| format!("a keyspace is missing: {error}"))? {
        let expected = &expected[keyspace.name()];
        let backward = keyspace.iter().rev().map(|entry| Ok(entry?.0.to_vec())).collect::<Result<Vec<_>, Error>>();
        let backward = backward.map_err(|error| format!("a scan backward fails: {error}"))?;
        if !backward.iter().eq(expected.keys().rev()) {
            return Err("a scan backward differs from one forward".to_owned());
        }
        for key in (0..crate::script::KEYS).map(crate::script::key) {
            let found = keyspace.get(&key).map_err(|error| format!("a read fails: {error}"))?;
            if found.as_deref() != expected.get(&key).map(|(value, _)| value.as_slice()) {
                return Err(format!("a read of {} differs from a scan", key.escape_ascii()));
            }
        }
    }
    let problems = db.verify().map_err(|error| format!("verify fails: {error}"))?.problems;
    problems.first().map_or(Ok(()), |problem| Err(format!("verify finds: {problem}")))
}
