//! `ConcurrentSkipList` against a map.

use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::sync::Arc;

use fastskip::{BatchError, Bytewise, ConcurrentSkipList, Entry, InsertError, MAX_KEY_LEN, OwnedSnapshot, Snapshot};

use super::input::Input;
use super::limits::{TableLimits, mean, too_large};
use super::moves::{self, compare_bounded, compare_moves};
use super::orders::{Key, Modelled, bytewise, keys};
use super::record::Record;
use super::{Met, compare_walk, operations, ranges};

operations! {
    /// Operations on a list that an input can contain.
    SkipListOp:
        Insert GetOrInsert InsertBatch Delete InsertTombstone LongestKey TooLarge Snapshot
        Range Prefix Seek SeekForPrev Compare Freeze Seal Reset
}

/// A value, and whether it belongs to a tombstone.
type Model<O> = BTreeMap<Key<O>, (Vec<u8>, bool)>;

/// Other facts known about a list.
struct Known<O> {
    model: Model<O>,
    limits: TableLimits,
    attempts: usize,
    /// Whether hints were corrupted, so that the index cannot be validated.
    is_scrambled: bool,
    frozen: bool,
    record: Record<SkipListOp>,
}

/// Runs the operations that `input` encodes. The first bytes choose the settings.
///
/// # Panics
/// If the list and the map differ.
pub fn skiplist_ops(input: &[u8]) -> Met {
    skiplist_ops_in::<Bytewise>(input)
}

/// [`skiplist_ops`] in an order.
pub(crate) fn skiplist_ops_in<O: Modelled>(input: &[u8]) -> Met {
    let mut input = Input::new(input);
    let limits = TableLimits::choose(&mut input);
    let mut list = Arc::new(limits.table(ConcurrentSkipList::builder().order::<O>()));
    let mut known = Known::<O> {
        model: Model::new(),
        limits,
        attempts: 0,
        is_scrambled: false,
        frozen: false,
        record: Record::new(),
    };
    while let Some(end) = run(&list, &mut known, &mut input) {
        if end == SkipListOp::Reset {
            Arc::get_mut(&mut list).expect("nothing owned is left").reset();
        } else {
            list = Arc::new(seal(Arc::into_inner(list).expect("nothing owned is left"), &known));
        }
        known.renew();
    }
    known.record.names()
}

/// Runs operations to the end of the input, or up to one that needs the list itself, which it returns.
fn run<O: Modelled>(
    list: &Arc<ConcurrentSkipList<O>>,
    known: &mut Known<O>,
    input: &mut Input<'_>,
) -> Option<SkipListOp> {
    let mut snapshots = Vec::new();
    let mut end = None;
    while end.is_none() && !input.is_empty() {
        let op = input.choose(SkipListOp::ALL);
        known.record.meet(op);
        match op {
            SkipListOp::Seal | SkipListOp::Reset => end = Some(op),
            SkipListOp::Snapshot => snapshots.push((list.snapshot(), list.owned_snapshot(), known.model.clone())),
            _ => known.step(list, op, input),
        }
    }
    known.compare(list);
    snapshots.iter().for_each(|(snapshot, owned, then)| compare_snapshot(snapshot, owned, then));
    end
}

/// Checks that the frozen list has the same contents and refuses writes, and that its successor is empty.
fn seal<O: Modelled>(list: ConcurrentSkipList<O>, known: &Known<O>) -> ConcurrentSkipList<O> {
    let (frozen, fresh) = list.seal().expect("address space for one more table");
    assert!(frozen.into_iter().eq(entries(&known.model)));
    assert!(frozen.is_sealed() && !fresh.is_sealed());
    assert_eq!(frozen.try_insert(b"late", b""), Err(InsertError::Frozen));
    assert_eq!(frozen.try_delete(b"late"), Err(InsertError::Frozen));
    assert_eq!(frozen.insert_tombstone(b"late"), Err(InsertError::Frozen));
    if !known.is_scrambled {
        frozen.validate();
    }
    fresh
}

/// Writing.
impl<O: Modelled> Known<O> {
    fn renew(&mut self) {
        self.limits.renew();
        self.model.clear();
        (self.attempts, self.is_scrambled, self.frozen) = (0, false, false);
    }

    fn step(&mut self, list: &Arc<ConcurrentSkipList<O>>, op: SkipListOp, input: &mut Input<'_>) {
        match op {
            SkipListOp::Insert => self.insert(list, &O::key(input), &input.value(), input),
            SkipListOp::GetOrInsert => self.get_or_insert(list, &O::key(input), &input.value(), input),
            SkipListOp::InsertBatch => self.insert_batch(list, input),
            SkipListOp::Delete => self.delete(list, &O::key(input), input),
            SkipListOp::InsertTombstone => self.insert_tombstone(list, &O::key(input), input),
            SkipListOp::LongestKey => self.insert(list, &[input.byte(); MAX_KEY_LEN], b"", input),
            SkipListOp::TooLarge => {
                self.insert(list, &[0; MAX_KEY_LEN + 1], b"", input);
                if self.limits.memory > 0 {
                    self.insert(list, &O::key(input), too_large(), input);
                }
            }
            SkipListOp::Range => self.range(list, &O::key(input), &O::key(input)),
            SkipListOp::Prefix => {
                let prefix = O::key(input);
                let expected: Vec<_> = entries(&self.model).filter(|entry| entry.key.starts_with(&prefix)).collect();
                if let Some(list) = bytewise::<Arc<ConcurrentSkipList>>(list) {
                    compare_walk(|| list.prefix(&prefix), &expected);
                    compare_walk(|| list.owned_prefix(&prefix), &expected);
                }
            }
            SkipListOp::Seek => self.seek(list, &O::key(input), false),
            SkipListOp::SeekForPrev => self.seek(list, &O::key(input), true),
            SkipListOp::Freeze => {
                if self.attempts % 2 == 1 {
                    list.begin_freeze();
                    assert!(list.is_drained(), "no writer is inside");
                }
                list.freeze();
                self.frozen = true;
            }
            SkipListOp::Compare => {
                self.compare(list);
                // From here on, every answer must stay right although hints are wrong. Half of the lists keep an intact index.
                if self.attempts % 2 == 1 {
                    list.scramble_hints(self.attempts as u64);
                    self.is_scrambled = true;
                }
            }
            SkipListOp::Snapshot | SkipListOp::Seal | SkipListOp::Reset => self.compare(list),
        }
    }

    /// The expected refusal of a write of `key` by a check that comes before the allocation.
    fn foretell(&self, list: &ConcurrentSkipList<O>, key: &[u8], value: &[u8]) -> Result<(), InsertError> {
        if self.frozen {
            return Err(InsertError::Frozen);
        }
        if self.model.contains_key(&Key::new(key)) {
            return Err(InsertError::DuplicateKey);
        }
        self.limits.foretell(&list.stats(), &[(key.len(), value.len())])
    }

    /// Compares the result of a write of one new entry, and notes it.
    fn judge(
        &mut self,
        list: &ConcurrentSkipList<O>,
        op: SkipListOp,
        foretold: Result<(), InsertError>,
        found: Result<(), InsertError>,
        size: (usize, usize),
    ) {
        self.attempts += 1;
        self.limits.judge(foretold, found, &list.stats(), &[size]);
        self.record.end(op, foretold, found);
    }

    fn insert(&mut self, list: &ConcurrentSkipList<O>, key: &[u8], value: &[u8], input: &mut Input<'_>) {
        let foretold = self.foretell(list, key, value);
        let found = input.somewhere(|| list.try_insert(key, value));
        self.judge(list, SkipListOp::Insert, foretold, found, (key.len(), value.len()));
        if found.is_ok() {
            self.model.insert(Key::new(key), (value.to_vec(), false));
        }
    }

    fn get_or_insert(&mut self, list: &ConcurrentSkipList<O>, key: &[u8], value: &[u8], input: &mut Input<'_>) {
        if let Some((present, _)) = self.model.get(&Key::new(key)) {
            assert_eq!(list.try_get_or_insert(key, value), Ok((present.as_slice(), false)));
            assert_eq!(list.get_or_insert(key, value), (present.as_slice(), false));
            self.attempts += 2;
            return;
        }
        let foretold = self.foretell(list, key, value);
        let found = input.somewhere(|| list.try_get_or_insert(key, value));
        self.judge(list, SkipListOp::GetOrInsert, foretold, found.map(|_| ()), (key.len(), value.len()));
        if let Ok(stored) = found {
            assert_eq!(stored, (value, true));
            self.model.insert(Key::new(key), (value.to_vec(), false));
        }
    }

    /// If memory is limited, the model cannot predict which entries of a batch fit, so they are inserted one by one.
    fn insert_batch(&mut self, list: &ConcurrentSkipList<O>, input: &mut Input<'_>) {
        let batch: Vec<_> = (0..input.byte() % 8).map(|_| (O::key(input), input.value())).collect();
        if self.limits.memory > 0 {
            batch.iter().for_each(|(key, value)| self.insert(list, key, value, input));
            return;
        }
        let mut left = self.model.clone();
        let room = |stored: usize| self.limits.foretell(&list.stats(), &vec![(0, 0); stored + 1]).is_ok();
        let (mut stored, mut expected) = (0, Vec::new());
        for (index, (key, value)) in batch.iter().enumerate() {
            let is_there = left.contains_key(&Key::new(key));
            if self.frozen {
                expected.push((index, InsertError::Frozen));
            } else if is_there {
                expected.push((index, InsertError::DuplicateKey));
            } else if !room(stored) {
                expected.push((index, InsertError::Full));
            } else {
                left.insert(Key::new(key), (value.clone(), false));
                stored += 1;
            }
        }
        match input.somewhere(|| list.insert_batch(&batch)) {
            Ok(all) => assert_eq!((all, stored, expected), (batch.len(), batch.len(), Vec::new())),
            Err(BatchError::PartialFailure { succeeded, failed, rejected, .. }) => {
                assert_eq!((succeeded, failed), (stored, expected.len()));
                assert_eq!(rejected, expected);
            }
        }
        self.attempts += batch.len();
        self.model = left;
    }

    fn delete(&mut self, list: &ConcurrentSkipList<O>, key: &[u8], input: &mut Input<'_>) {
        let full = self.limits.is_full(&list.stats());
        let expected = match self.model.get_mut(&Key::new(key)) {
            _ if self.frozen => Err(InsertError::Frozen),
            _ if full => Err(InsertError::Full),
            Some((_, dead)) => Ok(!std::mem::replace(dead, true)),
            None => Ok(false),
        };
        assert_eq!(input.somewhere(|| list.try_delete(key)), expected);
        if let Err(refusal) = expected {
            self.record.end(SkipListOp::Delete, Err(refusal), Err(refusal));
            assert!(!list.delete(key));
        }
    }

    fn insert_tombstone(&mut self, list: &ConcurrentSkipList<O>, key: &[u8], input: &mut Input<'_>) {
        let foretold = match self.foretell(list, key, b"") {
            Err(InsertError::DuplicateKey) if self.model[&Key::new(key)].1 => Ok(()),
            Err(InsertError::DuplicateKey) if self.limits.is_full(&list.stats()) => Err(InsertError::Full),
            Err(InsertError::DuplicateKey) => Ok(()),
            other => other,
        };
        let found = input.somewhere(|| list.insert_tombstone(key));
        if self.model.contains_key(&Key::new(key)) {
            assert_eq!(found, foretold);
            self.attempts += 1;
        } else {
            self.judge(list, SkipListOp::InsertTombstone, foretold, found, (key.len(), 0));
        }
        if found.is_ok() {
            self.model.entry(Key::new(key)).or_default().1 = true;
        }
    }
}

/// Reading.
impl<O: Modelled> Known<O> {
    fn range(&self, list: &Arc<ConcurrentSkipList<O>>, from: &[u8], to: &[u8]) {
        for range in ranges(from, to) {
            let keys = keys::<O>(range);
            let within: Vec<_> = entries(&self.model).filter(|entry| keys.contains(&Key::new(entry.key))).collect();
            compare_walk(|| list.range(range), &within);
            compare_walk(|| list.owned_range(range), &within);
            let shown: Vec<_> = within.iter().copied().map(moves::entry).collect();
            match to.len() % 2 {
                0 => compare_bounded(&list.cursor().within(range), &shown, [from, to], 0),
                _ => compare_bounded(&list.owned_cursor().within(range), &shown, [from, to], 0),
            }
        }
    }

    fn seek(&self, list: &Arc<ConcurrentSkipList<O>>, key: &[u8], back: bool) {
        let shown: Vec<_> = entries(&self.model).map(moves::entry).collect();
        self.look_up(list, key);
        let owned = list.get_owned(key);
        let found = shown.iter().find(|entry| O::compare(entry.0, key).is_eq());
        assert_eq!(owned.as_ref().map(|owned| moves::entry(owned.as_entry())).as_ref(), found);
        compare_moves(list.cursor(), &shown, (key, 0), back);
        compare_moves(list.owned_cursor(), &shown, (key, 0), back);
        let first = shown.partition_point(|entry| O::compare(entry.0, key).is_lt());
        let found = list.cursor_at(key);
        assert_eq!(found.as_ref().and_then(|cursor| cursor.entry()).map(moves::entry), shown.get(first).copied());
        if let Some(mut cursor) = found {
            assert_eq!(cursor.clone().prev_entry().map(|entry| entry.key), first.checked_sub(1).map(|at| shown[at].0));
            assert!(std::iter::from_fn(|| cursor.next_entry()).map(moves::entry).eq(shown[first..].iter().copied()));
        }
    }

    fn look_up(&self, list: &ConcurrentSkipList<O>, key: &[u8]) {
        let found = self.model.get(&Key::new(key)).map(|(value, dead)| (value.as_slice(), *dead));
        let live = found.filter(|(_, dead)| !dead).map(|(value, _)| value);
        assert_eq!((list.get(key), list.get_live(key), list.contains_key(key)), (found, live, live.is_some()));
        assert_eq!(list.get_entry(key).map(|entry| (entry.value, entry.is_tombstone)), found);
        assert_eq!(list.get_many(&[key, key]), [live; 2]);
    }

    fn compare(&mut self, list: &ConcurrentSkipList<O>) {
        if !self.is_scrambled {
            list.validate();
        }
        compare_walk(|| list.iter(), &entries(&self.model).collect::<Vec<_>>());
        assert!(list.cursor().eq(entries(&self.model)));
        self.model.keys().for_each(|key| self.look_up(list, &key.bytes));
        self.compare_figures(list);
    }

    fn compare_figures(&mut self, list: &ConcurrentSkipList<O>) {
        let stats = list.stats();
        let dead = self.model.values().filter(|(_, dead)| *dead).count();
        let live = self.model.len() - dead;
        assert_eq!((list.len(), list.is_empty(), stats.len), (live, live == 0, live));
        assert_eq!((stats.entries, stats.tombstones), (self.model.len(), dead));
        assert_eq!((list.total_inserts(), list.is_sealed()), (self.attempts, self.frozen));
        let bytes = |len: fn(&Key<O>, &Vec<u8>) -> usize| self.model.iter().map(|(k, (v, _))| len(k, v)).sum();
        assert_eq!(list.avg_key_size(), mean(bytes(|key, _| key.bytes.len()), stats.entries));
        assert_eq!(list.avg_value_size(), mean(bytes(|_, value| value.len()), stats.entries));
        self.limits.check(&stats);
    }
}

fn compare_snapshot<O: Modelled>(snapshot: &Snapshot<'_, O>, owned: &OwnedSnapshot<O>, then: &Model<O>) {
    let shown: Vec<_> = entries(then).collect();
    compare_walk(|| snapshot.iter(), &shown);
    compare_walk(|| owned.range(..), &shown);
    let Some(middle) = shown.get(shown.len() / 2) else { return };
    assert_eq!(snapshot.get(middle.key), Some((middle.value, middle.is_tombstone)));
    assert_eq!(snapshot.get_entry(middle.key).map(|entry| entry.key), Some(middle.key));
    if let Some(owned) = bytewise::<OwnedSnapshot>(owned) {
        let prefix = &middle.key[..middle.key.len().min(1)];
        let prefixed: Vec<_> = shown.iter().filter(|entry| entry.key.starts_with(prefix)).copied().collect();
        compare_walk(|| owned.as_snapshot().prefix(prefix), &prefixed);
    }
    let (before, behind) = shown.split_at(shown.len() / 2);
    compare_walk(|| snapshot.range(middle.key..), behind);
    let mut cursor = snapshot.cursor_at(middle.key).expect("it is there");
    assert!(std::iter::from_fn(|| cursor.prev_entry()).eq(before.iter().rev().copied()));
    let shown: Vec<_> = shown.iter().copied().map(moves::entry).collect();
    compare_moves(snapshot.cursor(), &shown, (middle.key, 0), false);
    compare_moves(owned.cursor(), &shown, (middle.key, 0), true);
}

fn entries<O: Modelled>(model: &Model<O>) -> impl DoubleEndedIterator<Item = Entry<'_>> {
    model.iter().map(|(key, (value, is_tombstone))| Entry { key: &key.bytes, value, is_tombstone: *is_tombstone })
}
