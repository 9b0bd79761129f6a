//! `Memtable` against a map of versions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use fastskip::{InsertError, Kind, Lookup, Memtable, Op, Version};

use crate::input::Input;

/// What an input can ask of a memtable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the method of that name, or says what becomes of a reservation")]
pub enum MemtableOp {
    Put,
    Delete,
    Apply,
    DropReservation,
    Get,
    Range,
    Seek,
    SeekForPrev,
    Freeze,
}

impl MemtableOp {
    /// Every operation.
    pub const ALL: [Self; 9] = [
        Self::Put,
        Self::Delete,
        Self::Apply,
        Self::DropReservation,
        Self::Get,
        Self::Range,
        Self::Seek,
        Self::SeekForPrev,
        Self::Freeze,
    ];
}

/// `None` is a tombstone.
type Model = BTreeMap<(Vec<u8>, Reverse<u64>), Option<Vec<u8>>>;

struct Pair {
    memtable: Memtable,
    model: Model,
    max_entries: usize,
}

/// Runs the operations that `input` stands for. The first byte chooses a limit.
///
/// # Panics
/// If the memtable and the map differ.
pub fn memtable_ops(input: &[u8]) -> BTreeSet<MemtableOp> {
    let mut input = Input::new(input);
    let max_entries = input.choose(&[0, 1, 7, 40]);
    let mut pair = Pair::new(max_entries);
    let mut met = BTreeSet::new();
    while !input.is_empty() {
        let op = input.choose(&MemtableOp::ALL);
        met.insert(op);
        pair.run(op, &mut input);
    }
    pair.compare();
    met
}

/// Few numbers, so that they collide, and the largest.
fn seqno(input: &mut Input<'_>) -> u64 {
    input.choose(&[0, 1, 2, 3, 4, 5, 6, 7, u64::MAX])
}

impl Pair {
    fn new(max_entries: usize) -> Self {
        let memtable = Memtable::builder().shards(2).arena_bytes_per_shard(256).max_entries(max_entries).build();
        Self { memtable, model: Model::new(), max_entries }
    }

    fn run(&mut self, op: MemtableOp, input: &mut Input<'_>) {
        match op {
            MemtableOp::Put => {
                let (key, seqno, value) = (input.key(), seqno(input), input.value());
                let expected = self.write(&key, seqno, Some(value.clone()));
                assert_eq!(self.memtable.put(&key, seqno, &value), expected);
            }
            MemtableOp::Delete => {
                let (key, seqno) = (input.key(), seqno(input));
                let expected = self.write(&key, seqno, None);
                assert_eq!(self.memtable.delete(&key, seqno), expected);
            }
            MemtableOp::Apply => self.apply(input),
            MemtableOp::DropReservation => {
                let key = input.key();
                let ops = [Op::Delete { key: &key }, Op::Put { key: &key, value: b"never" }];
                assert_eq!(self.memtable.reserve(&ops).is_ok(), self.has_room(ops.len()));
            }
            MemtableOp::Get => self.get(&input.key(), seqno(input)),
            MemtableOp::Range => self.range(&input.key(), &input.key(), seqno(input)),
            MemtableOp::Seek => self.seek(&input.key(), seqno(input)),
            MemtableOp::SeekForPrev => self.seek_for_prev(&input.key(), seqno(input)),
            MemtableOp::Freeze => self.freeze(),
        }
    }

    fn has_room(&self, entries: usize) -> bool {
        self.max_entries == 0 || self.model.len() + entries <= self.max_entries
    }

    fn store(&mut self, key: &[u8], seqno: u64, value: Option<Vec<u8>>) -> bool {
        let len = self.model.len();
        self.model.entry((key.to_vec(), Reverse(seqno))).or_insert(value);
        self.model.len() > len
    }

    /// One write reserves before it looks, so a full table says so even of a version that is there.
    fn write(&mut self, key: &[u8], seqno: u64, value: Option<Vec<u8>>) -> Result<(), InsertError> {
        if !self.has_room(1) {
            return Err(InsertError::Full);
        }
        if self.store(key, seqno, value) { Ok(()) } else { Err(InsertError::DuplicateKey) }
    }

    fn apply(&mut self, input: &mut Input<'_>) {
        let writes: Vec<_> = (0..input.byte() % 8)
            .map(|_| (input.key(), (!input.byte().is_multiple_of(3)).then(|| input.value())))
            .collect();
        let first = seqno(input);
        let ops: Vec<_> = writes
            .iter()
            .map(|(key, value)| match value {
                Some(value) => Op::Put { key, value },
                None => Op::Delete { key },
            })
            .collect();
        if !self.has_room(ops.len()) {
            assert_eq!(self.memtable.reserve(&ops).err(), Some(InsertError::Full));
            return;
        }
        let stored =
            (0..).zip(&writes).filter(|(i, (key, value))| self.store(key, first.saturating_add(*i), value.clone()));
        let stored = stored.count();
        assert_eq!(self.memtable.reserve(&ops).map(|reservation| reservation.apply(first)).ok(), Some(stored));
    }

    fn visible(&self, seqno: u64) -> Vec<Version<'_>> {
        let mut newest: Vec<Version<'_>> = Vec::new();
        for version in versions(&self.model).filter(|version| version.seqno <= seqno) {
            if newest.last().is_none_or(|last| last.key != version.key) {
                newest.push(version);
            }
        }
        newest
    }

    fn get(&self, key: &[u8], seqno: u64) {
        let expected = match self.visible(seqno).into_iter().find(|version| version.key == key) {
            None => Lookup::Absent,
            Some(Version { kind: Kind::Tombstone, .. }) => Lookup::Tombstone,
            Some(version) => Lookup::Value(version.value),
        };
        assert_eq!(self.memtable.get(key, seqno), expected);
        assert_eq!(self.memtable.get_many(&[key, key], seqno), [expected; 2]);
    }

    fn range(&self, from: &[u8], to: &[u8], seqno: u64) {
        let visible = self.visible(seqno);
        let within: Vec<_> = visible.iter().filter(|version| from <= version.key && version.key < to).collect();
        assert!(self.memtable.range(from..to, seqno).eq(within.iter().copied().copied()));
        assert!(self.memtable.range(from..to, seqno).rev().eq(within.iter().rev().copied().copied()));
        let mut both = self.memtable.range(from..to, seqno);
        let mut seen = 0;
        while both.next().is_some() {
            seen += 1 + usize::from(both.next_back().is_some());
        }
        assert_eq!(seen, within.len());
    }

    fn seek(&self, key: &[u8], seqno: u64) {
        let mut cursor = self.memtable.owned_cursor();
        let mut valid = cursor.seek(key, seqno);
        for version in versions(&self.model).filter(|v| (v.key, Reverse(v.seqno)) >= (key, Reverse(seqno))) {
            assert!(valid);
            assert_eq!((cursor.key(), cursor.seqno(), cursor.value()), (version.key, version.seqno, version.value));
            valid = cursor.next();
        }
        assert!(!valid);
    }

    fn seek_for_prev(&self, key: &[u8], seqno: u64) {
        let mut cursor = self.memtable.owned_cursor();
        let mut valid = cursor.seek_for_prev(key, seqno);
        for version in versions(&self.model).rev().filter(|v| (v.key, Reverse(v.seqno)) <= (key, Reverse(seqno))) {
            assert!(valid);
            assert_eq!((cursor.key(), cursor.seqno(), cursor.kind()), (version.key, version.seqno, version.kind));
            valid = cursor.prev();
        }
        assert!(!valid);
    }

    fn freeze(&mut self) {
        self.compare();
        let frozen = self.memtable.freeze();
        assert_eq!(self.memtable.put(b"late", 1, b""), Err(InsertError::Sealed));
        assert!(frozen.all_versions().eq(versions(&self.model)));
        *self = Self::new(self.max_entries);
    }

    fn compare(&self) {
        self.memtable.validate();
        assert!(self.memtable.all_versions().eq(versions(&self.model)));
        assert!(self.memtable.all_versions().rev().eq(versions(&self.model).rev()));
        assert_eq!(self.memtable.len(), self.model.len());
    }
}

fn versions(model: &Model) -> impl DoubleEndedIterator<Item = Version<'_>> {
    model.iter().map(|((key, seqno), value)| Version {
        key,
        seqno: seqno.0,
        kind: if value.is_some() { Kind::Value } else { Kind::Tombstone },
        value: value.as_deref().unwrap_or_default(),
    })
}
