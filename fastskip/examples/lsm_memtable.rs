//! The memtables of an LSM engine. One memtable takes writes, after a write-ahead log. A full memtable is frozen, and a new one takes its place. A
//! frozen memtable is read until a flush has written it out, and is then dropped or used again. `cargo run -p fastskip --example lsm_memtable`

use std::collections::{BTreeMap, VecDeque};

use fastskip::{FrozenMemtable, InsertError, Kind, Memtable, Op, Version};

/// An engine with one writer. In a real engine, the log and the levels are files.
struct Engine {
    active: Memtable,
    /// Frozen tables that wait for a flush, the newest last.
    frozen: VecDeque<FrozenMemtable>,
    log: Vec<String>,
    levels: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl Engine {
    /// Stores a batch under one sequence number. A batch in the log always fits into the table, because its memory was reserved before.
    fn write(&mut self, batch: &[Op<'_>], seqno: u64) -> Result<(), InsertError> {
        let table = self.active.clone(); // Another handle of the same table.
        match table.reserve(batch) {
            Ok(room) => {
                self.log.push(format!("{seqno}: {batch:?}"));
                room.apply_at(seqno);
                Ok(())
            }
            Err(InsertError::Full) => {
                self.frozen.push_back(table.freeze());
                self.active = new_memtable();
                self.write(batch, seqno)
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// The newest version of a key; searches the newest table first. A tombstone ends the search, because older values are deleted.
    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let frozen = self.frozen.iter().rev().map(|frozen| &**frozen);
        let version: Option<Version<'_>> =
            std::iter::once(&self.active).chain(frozen).find_map(|table| table.get_version(key, u64::MAX));
        match version {
            Some(version) => (version.kind == Kind::Value).then_some(version.value),
            None => self.levels.get(key)?.as_deref(),
        }
    }

    /// Writes out the oldest frozen table, and returns it so that its memory can be used again.
    fn flush_one(&mut self) -> Option<Memtable> {
        let table = self.frozen.pop_front()?;
        // The newest version of each key; an engine with snapshots would look at `all_versions`.
        for version in table.iter(u64::MAX) {
            self.levels.insert(version.key.into(), (version.kind == Kind::Value).then(|| version.value.into()));
        }
        table.try_reset().ok()
    }
}

fn new_memtable() -> Memtable {
    Memtable::builder().max_memory_bytes(256 << 10).build()
}

fn main() -> Result<(), InsertError> {
    let mut engine =
        Engine { active: new_memtable(), frozen: VecDeque::new(), log: Vec::new(), levels: BTreeMap::new() };
    engine.write(&[Op::Put { key: b"first", value: b"value" }], 1)?;
    for seqno in 2..=20_000_u64 {
        let (key, old) = (seqno.to_be_bytes(), (seqno / 2).to_be_bytes());
        engine.write(&[Op::Put { key: &key, value: b"value" }, Op::Delete { key: &old }], seqno)?;
    }
    println!("{} frozen tables; {} bytes in the active one", engine.frozen.len(), engine.active.memory_usage());
    assert!(engine.frozen.len() > 3 && engine.log.len() == 20_000);
    loop {
        assert_eq!((engine.get(b"first"), engine.get(&7_u64.to_be_bytes())), (Some(&b"value"[..]), None));
        let Some(empty) = engine.flush_one() else { break Ok(()) };
        assert!(empty.is_empty());
    }
}
