//! `ConcurrentSkipList` against a map.

use std::collections::{BTreeMap, BTreeSet};

use fastskip::{ConcurrentSkipList, Entry, InsertError};

use crate::input::Input;

/// What an input can ask of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the method of that name")]
pub enum SkipListOp {
    Insert,
    GetOrInsert,
    InsertBatch,
    Delete,
    InsertTombstone,
    Snapshot,
    Range,
    Prefix,
    Seek,
    SeekForPrev,
    Seal,
    Reset,
}

impl SkipListOp {
    /// Every operation.
    pub const ALL: [Self; 12] = [
        Self::Insert,
        Self::GetOrInsert,
        Self::InsertBatch,
        Self::Delete,
        Self::InsertTombstone,
        Self::Snapshot,
        Self::Range,
        Self::Prefix,
        Self::Seek,
        Self::SeekForPrev,
        Self::Seal,
        Self::Reset,
    ];
}

type Model = BTreeMap<Vec<u8>, (Vec<u8>, bool)>;

/// A list that takes at most so many entries, beside the map it should equal.
struct Pair {
    list: ConcurrentSkipList,
    model: Model,
    max_entries: usize,
}

/// Runs the operations that `input` stands for. The first byte chooses a limit.
///
/// # Panics
/// If the list and the map differ.
pub fn skiplist_ops(input: &[u8]) -> BTreeSet<SkipListOp> {
    let mut input = Input::new(input);
    let max_entries = input.choose(&[0, 1, 7, 40]);
    let list = ConcurrentSkipList::with_capacity_and_shards(256, 2, 0, max_entries);
    let mut pair = Pair { list, model: Model::new(), max_entries };
    let mut met = BTreeSet::new();
    while !input.is_empty() {
        let op = input.choose(&SkipListOp::ALL);
        met.insert(op);
        pair = pair.run(op, &mut input);
    }
    pair.compare();
    met
}

impl Pair {
    fn run(mut self, op: SkipListOp, input: &mut Input<'_>) -> Self {
        match op {
            SkipListOp::Insert => {
                let (key, value) = (input.key(), input.value());
                let expected = self.store(&key, &value);
                assert_eq!(self.list.try_insert(&key, &value), expected);
            }
            SkipListOp::GetOrInsert => self.get_or_insert(&input.key(), &input.value()),
            SkipListOp::InsertBatch => {
                let batch: Vec<_> = (0..input.byte() % 8).map(|_| (input.key(), input.value())).collect();
                let stored = batch.iter().filter(|(key, value)| self.store(key, value).is_ok()).count();
                let result = self.list.insert_batch(&batch);
                assert_eq!(result.ok(), (stored == batch.len()).then_some(stored));
            }
            SkipListOp::Delete => self.delete(&input.key()),
            SkipListOp::InsertTombstone => self.insert_tombstone(&input.key()),
            SkipListOp::Snapshot => self.snapshot(&input.key()),
            SkipListOp::Range => self.range(&input.key(), &input.key()),
            SkipListOp::Prefix => {
                let prefix = input.key();
                let expected = entries(&self.model).filter(|entry| entry.key.starts_with(&prefix));
                assert!(self.list.prefix(&prefix).eq(expected));
            }
            SkipListOp::Seek => {
                let key = input.key();
                let mut cursor = self.list.cursor();
                let expected: Vec<_> = entries(&self.model).filter(|entry| entry.key >= &key[..]).collect();
                assert_eq!(cursor.seek(&key), !expected.is_empty());
                assert!(cursor.eq(expected));
            }
            SkipListOp::SeekForPrev => {
                let key = input.key();
                let mut cursor = self.list.cursor();
                let expected: Vec<_> = entries(&self.model).rev().filter(|entry| entry.key <= &key[..]).collect();
                assert_eq!(cursor.seek_for_prev(&key), !expected.is_empty());
                assert!(std::iter::from_fn(|| cursor.prev_entry()).eq(expected));
            }
            SkipListOp::Seal => return self.seal(),
            SkipListOp::Reset => {
                self.compare();
                self.list.reset();
                self.model.clear();
            }
        }
        self
    }

    fn is_full(&self) -> bool {
        self.max_entries != 0 && self.model.len() >= self.max_entries
    }

    fn store(&mut self, key: &[u8], value: &[u8]) -> Result<(), InsertError> {
        if self.model.contains_key(key) {
            return Err(InsertError::DuplicateKey);
        }
        if self.is_full() {
            return Err(InsertError::Full);
        }
        self.model.insert(key.to_vec(), (value.to_vec(), false));
        Ok(())
    }

    fn get_or_insert(&mut self, key: &[u8], value: &[u8]) {
        let stored = self.store(key, value);
        let expected = match self.model.get(key) {
            Some((present, _)) => Ok((present.as_slice(), stored.is_ok())),
            None => Err(InsertError::Full),
        };
        assert_eq!(self.list.try_get_or_insert(key, value), expected);
    }

    fn delete(&mut self, key: &[u8]) {
        let full = self.is_full();
        let expected = match self.model.get_mut(key) {
            _ if full => Err(InsertError::Full),
            Some((_, dead)) => Ok(!std::mem::replace(dead, true)),
            None => Ok(false),
        };
        assert_eq!(self.list.try_delete(key), expected);
    }

    fn insert_tombstone(&mut self, key: &[u8]) {
        let expected = if self.is_full() { Err(InsertError::Full) } else { Ok(()) };
        if expected.is_ok() {
            self.model.entry(key.to_vec()).or_default().1 = true;
        }
        assert_eq!(self.list.insert_tombstone(key), expected);
    }

    fn snapshot(&mut self, key: &[u8]) {
        let snapshot = self.list.snapshot();
        let before = self.model.clone();
        let deleted = self.list.delete(key);
        let stored = self.list.insert(key, b"later");
        assert!(snapshot.iter().eq(entries(&before)));
        assert!(snapshot.iter().rev().eq(entries(&before).rev()));
        assert_eq!(snapshot.get(key), before.get(key).map(|(value, dead)| (value.as_slice(), *dead)));
        assert!(!(deleted && stored));
        if deleted {
            self.model.get_mut(key).expect("deleted, so it was there").1 = true;
        }
        if stored {
            self.model.insert(key.to_vec(), (b"later".to_vec(), false));
        }
    }

    fn range(&self, from: &[u8], to: &[u8]) {
        let within: Vec<_> = entries(&self.model).filter(|entry| from <= entry.key && entry.key < to).collect();
        assert!(self.list.range(from..to).eq(within.iter().copied()));
        assert!(self.list.range(from..to).rev().eq(within.iter().rev().copied()));
        let mut both = self.list.range(from..to);
        let mut seen = 0;
        while both.next().is_some() {
            seen += 1 + usize::from(both.next_back().is_some());
        }
        assert_eq!(seen, within.len());
    }

    fn seal(self) -> Self {
        self.compare();
        let (frozen, fresh) = self.list.seal().expect("address space for one more table");
        assert!(frozen.iter().eq(entries(&self.model)));
        assert_eq!(frozen.try_insert(b"late", b""), Err(InsertError::Sealed));
        Self { list: fresh, model: Model::new(), max_entries: self.max_entries }
    }

    fn compare(&self) {
        self.list.validate();
        assert!(self.list.iter().eq(entries(&self.model)));
        assert!(self.list.iter().rev().eq(entries(&self.model).rev()));
        for (key, (value, dead)) in &self.model {
            assert_eq!(self.list.get(key), Some((value.as_slice(), *dead)));
            assert_eq!(self.list.contains_key(key), !dead);
        }
        assert_eq!(self.list.len(), self.model.values().filter(|(_, dead)| !dead).count());
    }
}

fn entries(model: &Model) -> impl DoubleEndedIterator<Item = Entry<'_>> {
    model.iter().map(|(key, (value, is_tombstone))| Entry { key, value, is_tombstone: *is_tombstone })
}
