//! The memtables of an LSM engine. One takes writes, beside a write-ahead log. A full one is frozen, and the next takes its place. A frozen one is
//! read until a flush has written it out, and is then dropped. `cargo run -p fastskip --example lsm_memtable`

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeBounds;

use fastskip::{InsertError, Kind, Memtable, Op, Version, Written};

/// The operations that an engine needs from a memtable. A position is a key and a sequence number; the versions of a key go from new to old.
trait EngineTable {
    fn get(&self, key: &[u8], seqno: u64) -> Option<Version<'_>>;
    fn put(&self, key: &[u8], seqno: u64, value: &[u8]) -> Result<Written, InsertError>;
    fn apply(&self, batch: &[Op<'_>], seqno: u64, log: impl FnOnce()) -> Result<Written, InsertError>;
    fn scan<'k>(&self, range: impl RangeBounds<(&'k [u8], u64)>) -> impl DoubleEndedIterator<Item = Version<'_>>;
    fn freeze(&self);
    fn size(&self) -> usize;
}

/// The complete adapter.
impl EngineTable for Memtable {
    fn get(&self, key: &[u8], seqno: u64) -> Option<Version<'_>> {
        self.get_version(key, seqno)
    }
    fn put(&self, key: &[u8], seqno: u64, value: &[u8]) -> Result<Written, InsertError> {
        self.put(key, seqno, value)
    }
    fn apply(&self, batch: &[Op<'_>], seqno: u64, log: impl FnOnce()) -> Result<Written, InsertError> {
        let room = self.reserve(batch)?;
        log(); // What is in the log fits into the table.
        Ok(room.apply_at(seqno))
    }
    fn scan<'k>(&self, range: impl RangeBounds<(&'k [u8], u64)>) -> impl DoubleEndedIterator<Item = Version<'_>> {
        self.versions(range)
    }
    fn freeze(&self) {
        self.freeze();
    }
    fn size(&self) -> usize {
        self.memory_usage()
    }
}

/// An engine with one writer; its log and levels would be files.
struct Engine<T> {
    make: fn() -> T,
    active: T,
    frozen: VecDeque<T>,
    log: Vec<String>,
    levels: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl<T: EngineTable> Engine<T> {
    fn write(&mut self, batch: &[Op<'_>], seqno: u64) -> Result<Written, InsertError> {
        let log = &mut self.log;
        let done = self.active.apply(batch, seqno, || log.push(format!("{seqno}: {batch:?}")));
        if done != Err(InsertError::Full) {
            return done;
        }
        self.active.freeze();
        self.frozen.push_back(std::mem::replace(&mut self.active, (self.make)()));
        self.write(batch, seqno)
    }

    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        match self.frozen.iter().chain([&self.active]).rev().find_map(|table| table.get(key, u64::MAX)) {
            Some(version) => (version.kind == Kind::Value).then_some(version.value),
            None => self.levels.get(key)?.as_deref(),
        }
    }

    fn flush(&mut self) {
        while let Some(table) = self.frozen.pop_front() {
            // In backward direction the newest version of a key comes last, and so replaces the others.
            for version in table.scan(..).rev() {
                self.levels.insert(version.key.into(), (version.kind == Kind::Value).then(|| version.value.into()));
            }
        }
    }
}

#[cfg_attr(test, test)]
fn main() -> Result<(), InsertError> {
    let make = || Memtable::builder().max_memory_bytes(256 << 10).build();
    let mut engine = Engine { make, active: make(), frozen: VecDeque::new(), log: Vec::new(), levels: BTreeMap::new() };
    EngineTable::put(&engine.active, b"first", 1, b"value")?;
    for seqno in 2..=20_000_u64 {
        let (key, old) = (seqno.to_be_bytes(), (seqno / 2).to_be_bytes());
        engine.write(&[Op::Put { key: &key, value: b"value" }, Op::Delete { key: &old }], seqno)?;
    }
    println!("{} frozen tables; {} bytes in the active one", engine.frozen.len(), engine.active.size());
    for _ in 0..2 {
        assert_eq!((engine.get(b"first"), engine.get(&7_u64.to_be_bytes())), (Some(&b"value"[..]), None));
        engine.flush();
    }
    Ok(())
}
