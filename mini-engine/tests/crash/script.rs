//! The steps of a workload, drawn from a seed.

use crate::prelude::*;

/// The number of keys, besides the count.
pub(crate) const KEYS: u64 = 8;

pub(crate) fn key(n: u64) -> Vec<u8> {
    format!("key{n}").into_bytes()
}

/// The shapes of workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Single writes, buffered and synced.
    Singles,
    /// Batches, some of them longer than several blocks of a disk.
    Batches,
    /// Many flushes, and the compactions that they cause.
    Flushes,
    /// For a while no table can be written, so that several logs are needed.
    Logs,
    /// The database is closed, dropped and opened again and again.
    Reopens,
    /// All of the above, without waits for the workers: operations of several threads interleave, differently each time.
    Mingled,
}

pub(crate) const SHAPES: [Shape; 6] =
    [Shape::Singles, Shape::Batches, Shape::Flushes, Shape::Logs, Shape::Reopens, Shape::Mingled];

/// The names of the keyspaces that are created and dropped.
const NAMES: [Name; 2] = ["a", "b"];

/// The seconds after which entries of the keyspace expire by default, if any.
pub(crate) fn lifetime(name: &str) -> Option<u64> {
    (name == NAMES[1]).then_some(4)
}

#[derive(Clone, Debug)]
pub(crate) enum Act {
    Write {
        batch: Batch,
        synced: bool,
    },
    /// Writes the batch in a transaction. Another transaction, which has read a key that this one changes, is refused.
    Transact {
        batch: Batch,
        synced: bool,
    },
    /// An event that is no batch.
    Keyspace(Event),
    Persist,
    Flush,
    CompactRange,
    /// Ends the database by `close` or by a plain drop, and opens it again.
    Reopen {
        close: bool,
    },
    RefuseTables(bool),
}

#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) shape: Shape,
    pub(crate) memtable_bytes: usize,
    pub(crate) l0_trigger: usize,
    /// The index of a policy in [`POLICIES`], which depends on the seed.
    pub(crate) policy: usize,
    pub(crate) acts: Vec<Act>,
}

impl Script {
    pub(crate) fn new(shape: Shape, seed: u64) -> Script {
        let mut random = Random(seed);
        let (mut acts, mut live) = (Vec::new(), Vec::new());
        let mut number = 0;
        let len = 14 + random.below(10);
        for at in 0..len {
            // The first creation comes early.
            let one_in = if at == 1 && live.is_empty() { 1 } else { 4 };
            if let Some(event) = keyspace_event(&mut live, &random.at(0), one_in) {
                number += 1;
                acts.push(Act::Keyspace(event));
            }
            let act = match (shape, random.below(10)) {
                (Shape::Flushes, 0..4) | (Shape::Reopens | Shape::Mingled, 0..2) => Act::Flush,
                (Shape::Reopens, 2..5) | (Shape::Mingled, 2) => Act::Reopen { close: random.one_in(2) },
                (Shape::Logs, 0..3) if at > 3 => Act::Flush,
                (Shape::Flushes | Shape::Mingled, 8) => Act::CompactRange,
                (Shape::Flushes | Shape::Reopens | Shape::Mingled, 7) => {
                    number += 1;
                    Act::Write { batch: load(number, seed, &mut random), synced: true }
                }
                (_, 9) => Act::Persist,
                _ => {
                    number += 1;
                    let synced = random.one_in(if shape == Shape::Batches { 8 } else { 4 });
                    let batch = batch(shape, (number, seed), &live, &mut random);
                    // Every third batch is a transaction. A random draw would change the acts of all seeds, some of which were chosen.
                    match number % 3 == 1 {
                        true => Act::Transact { batch: of_transaction(&batch), synced },
                        false => Act::Write { batch, synced },
                    }
                }
            };
            acts.push(act);
        }
        if shape == Shape::Logs {
            acts.insert(2, Act::RefuseTables(true));
            acts.insert(acts.len() - 3, Act::RefuseTables(false));
        }
        let memtable_bytes = match shape {
            // The memtable never fills, because a write would then wait for an impossible flush.
            Shape::Logs => 1 << 20,
            _ => 8 << 10 << (3 * random.below(2)),
        };
        let l0_trigger = 1 + random.below(2) as usize;
        // In 24 consecutive seeds, whose shapes take turns, each shape occurs with each policy. With random policies, a pair would sometimes be
        // missing.
        let policy = (seed.wrapping_add(seed / SHAPES.len() as u64) % POLICIES.len() as u64) as usize;
        Script { shape, memtable_bytes, l0_trigger, policy, acts }
    }

    /// Whether the workload waits, after each act, until the workers are idle: then each run of a seed has the same interleaving.
    pub(crate) fn settles(&self) -> bool {
        self.shape != Shape::Mingled
    }
}

/// Creates or drops a keyspace, one time in `n`; `live` has the names of the existing ones. It uses a separate generator, because more draws of
/// `random` would change the acts of all seeds, some of which were chosen.
pub(crate) fn keyspace_event(live: &mut Vec<Name>, random: &Random, n: u64) -> Option<Event> {
    let mut random = random.clone();
    if !random.one_in(n) {
        return None;
    }
    let name = NAMES[random.index(NAMES.len())];
    Some(match live.iter().position(|live| *live == name) {
        None => {
            live.push(name);
            Event::Create(name)
        }
        Some(at) => {
            live.remove(at);
            Event::Drop(name)
        }
    })
}

/// The changes of a batch that stay separate operations in a transaction: one range, then each key once.
fn of_transaction(batch: &Batch) -> Batch {
    let range = batch.iter().find(|(_, change)| matches!(change, Change::RemoveRange(..)));
    let of_keys = batch.iter().filter_map(|of_keyspace| match of_keyspace {
        (
            name,
            Change::Set(key, _) | Change::SetUntil(key, ..) | Change::SetByDefault(key, ..) | Change::Remove(key),
        ) => Some(((name, key), of_keyspace)),
        (_, Change::RemoveRange(..) | Change::Load(_)) => None,
    });
    let keys: BTreeMap<_, _> = of_keys.collect();
    Arc::new(range.into_iter().chain(keys.into_values()).cloned().collect())
}

/// Batch `number` as a bulk load of some of the keys into tables of their own.
pub(crate) fn load(number: u64, origin: u64, random: &mut Random) -> Batch {
    let value = |n: u64| format!("load {number} of {origin:x}: {}", ".".repeat(40 * n as usize)).into_bytes();
    let keys = (0..KEYS).filter(|_| random.one_in(2)).map(|n| (key(n), value(n)));
    let load = keys.chain([(COUNT.to_vec(), number.to_le_bytes().to_vec())]).collect();
    Arc::new(vec![("", Change::Load(load))])
}

/// Batch `number`, with changes in the default keyspace and in the `live` ones. Its values contain `origin`, which differs for each branch of a
/// history. So a lost value that comes back is not taken for the value that a later branch wrote.
pub(crate) fn batch(shape: Shape, (number, origin): (u64, u64), live: &[Name], random: &mut Random) -> Batch {
    let ops = if shape == Shape::Singles { 1 } else { 1 + random.below(5) };
    // A separate generator, as in `keyspace_event`.
    let mut of_keyspaces = random.at(1);
    let mut batch = Vec::new();
    for _ in 0..ops {
        let name = if live.is_empty() || of_keyspaces.one_in(3) { "" } else { live[of_keyspaces.index(live.len())] };
        batch.push((name, change(shape, (number, origin), name, random)));
    }
    batch.push(("", Change::Set(COUNT.to_vec(), number.to_le_bytes().to_vec())));
    Arc::new(batch)
}

fn change(shape: Shape, (number, origin): (u64, u64), name: Name, random: &mut Random) -> Change {
    let n = random.below(KEYS);
    let key = key(n);
    if random.one_in(8) {
        let has_end = n + 1 < KEYS && !random.one_in(4);
        let to = has_end.then(|| self::key(n + 1 + random.below(KEYS - n - 1)));
        return Change::RemoveRange(key, to);
    }
    let value = (!random.one_in(4)).then(|| {
        let len = match random.below(8) {
            0 => 3000,
            1 | 2 if shape == Shape::Batches => 11_000,
            _ => 60,
        };
        let mut value = format!("{number} of {origin:x} for {name:?} {}: ", key.escape_ascii()).into_bytes();
        value.resize_with(value.len() + random.below(len) as usize, || random.next() as u8);
        value
    });
    match value {
        // The value has already expired, or expires when one of the next batches begins.
        Some(value) if random.one_in(4) => Change::SetUntil(key, value, Some(number + random.below(4))),
        Some(value) => Change::Set(key, value),
        None => Change::Remove(key),
    }
}
