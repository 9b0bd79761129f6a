//! `Memtable` against a map of versions.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeBounds};

use fastskip::{
    Bytewise, Duplicates, FrozenMemtable, InsertError, Kind, Lookup, MAX_KEY_LEN, Memtable, Op, OwnedVersion, Room,
    Version,
};

use super::input::Input;
use super::limits::{Size, TableLimits, mean, too_large};
use super::moves::{self, Step, compare_bounded, compare_moves, compare_steps};
use super::orders::{Key, Modelled, bytewise, keys};
use super::record::Record;
use super::{Met, compare_walk, operations, ranges};

operations! {
    /// Operations on a memtable that an input can contain.
    MemtableOp:
        Put Delete Apply DropReservation LongestKey TooLarge Get
        Range Seek SeekForPrev WalkCursor Compare Freeze Replace
}

/// `None` is a tombstone.
type Model<O> = BTreeMap<(Key<O>, Reverse<u64>), Option<Vec<u8>>>;

struct Pair<O: Modelled> {
    memtable: Memtable<O>,
    model: Model<O>,
    duplicates: Duplicates,
    limits: TableLimits,
    attempts: usize,
    /// Whether hints were corrupted, so that the index cannot be validated.
    is_scrambled: bool,
    /// Set once the memtable is frozen: its contents at that time must not change.
    frozen: Option<FrozenMemtable<O>>,
    record: Record<MemtableOp>,
}

/// Runs the operations that `input` encodes, once for each setting of duplicates. The first bytes choose the other settings.
///
/// # Panics
/// If the memtable and the map differ.
pub fn memtable_ops(input: &[u8]) -> Met {
    memtable_ops_in::<Bytewise>(input)
}

/// [`memtable_ops`] in an order.
pub(crate) fn memtable_ops_in<O: Modelled>(input: &[u8]) -> Met {
    [Duplicates::Reject, Duplicates::Replace].into_iter().flat_map(|duplicates| run::<O>(input, duplicates)).collect()
}

fn run<O: Modelled>(input: &[u8], duplicates: Duplicates) -> Met {
    let mut input = Input::new(input);
    let limits = TableLimits::choose(&mut input);
    let memtable = limits.table(Memtable::builder().order::<O>().duplicates(duplicates));
    let mut pair = Pair {
        memtable,
        model: Model::new(),
        duplicates,
        limits,
        attempts: 0,
        is_scrambled: false,
        frozen: None,
        record: Record::new(),
    };
    while !input.is_empty() {
        let op = input.choose(MemtableOp::ALL);
        pair.record.meet(op);
        pair.run(op, &mut input);
    }
    pair.compare();
    pair.record.names()
}

/// A sequence number: one of a few, so that they collide, or the largest.
fn seqno(input: &mut Input<'_>) -> u64 {
    input.choose(&[0, 1, 2, 3, 4, 5, 6, 7, u64::MAX])
}

/// Writing.
impl<O: Modelled> Pair<O> {
    fn run(&mut self, op: MemtableOp, input: &mut Input<'_>) {
        match op {
            MemtableOp::Put => {
                let (key, seqno, value) = (O::key(input), seqno(input), input.value());
                self.put(&key, seqno, Some(value), input);
            }
            MemtableOp::Delete => {
                let (key, seqno) = (O::key(input), seqno(input));
                self.put(&key, seqno, None, input);
            }
            MemtableOp::Apply => self.apply(input),
            MemtableOp::DropReservation => self.drop_reservation(&O::key(input), input),
            MemtableOp::LongestKey => self.put(&[input.byte(); MAX_KEY_LEN], 1, None, input),
            MemtableOp::TooLarge => {
                self.put(&[0; MAX_KEY_LEN + 1], 1, None, input);
                if self.limits.memory > 0 {
                    self.put(&O::key(input), 1, Some(too_large().to_vec()), input);
                }
            }
            MemtableOp::Get => self.get(&O::key(input), seqno(input)),
            MemtableOp::Range => self.range(&O::key(input), &O::key(input), seqno(input)),
            MemtableOp::Seek => self.seek(&O::key(input), seqno(input), false),
            MemtableOp::SeekForPrev => self.seek(&O::key(input), seqno(input), true),
            MemtableOp::WalkCursor => self.walk_cursor(input),
            MemtableOp::Compare => {
                self.compare();
                // From here on, every answer must stay right although hints are wrong. Half of the tables keep an intact index.
                if self.attempts % 2 == 1 {
                    self.memtable.scramble_hints(self.attempts as u64);
                    self.is_scrambled = true;
                }
            }
            MemtableOp::Freeze => {
                if self.attempts % 2 == 1 {
                    self.memtable.begin_freeze();
                    assert!(self.memtable.is_drained(), "no writer is inside");
                }
                self.frozen = Some(self.memtable.freeze());
            }
            MemtableOp::Replace => self.replace(),
        }
    }

    /// The expected refusal of a reservation by a check that comes before the allocation.
    fn foretell(&self, sizes: &[Size]) -> Result<(), InsertError> {
        self.foretell_new(sizes, sizes.len())
    }

    /// As [`foretell`](Self::foretell), if only `new` of the entries are new.
    fn foretell_new(&self, sizes: &[Size], new: usize) -> Result<(), InsertError> {
        if self.frozen.is_some() {
            Err(InsertError::Frozen)
        } else {
            self.limits.foretell_new(&self.memtable.stats(), sizes, new)
        }
    }

    /// Compares the result of a reservation.
    fn judge(
        &mut self,
        op: MemtableOp,
        foretold: Result<(), InsertError>,
        found: Result<(), InsertError>,
        sizes: &[Size],
    ) {
        self.attempts += sizes.len();
        self.limits.judge(foretold, found, &self.memtable.stats(), sizes);
        self.record.end(op, foretold, found);
    }

    /// Stores a version in the map. Returns the expected result of a write: the number of stored and of replaced versions.
    fn store(&mut self, key: &[u8], seqno: u64, value: Option<Vec<u8>>) -> (usize, usize) {
        let replaces = self.duplicates == Duplicates::Replace;
        match self.model.entry((Key::new(key), Reverse(seqno))) {
            Entry::Occupied(_) if !replaces => (0, 0),
            Entry::Occupied(mut present) => {
                present.insert(value);
                (1, 1)
            }
            Entry::Vacant(vacant) => {
                vacant.insert(value);
                (1, 0)
            }
        }
    }

    /// The table searches for an existing version before it allocates, so even a full table reports a duplicate.
    fn put(&mut self, key: &[u8], seqno: u64, value: Option<Vec<u8>>, input: &mut Input<'_>) {
        let sizes = [(key.len(), value.as_ref().map_or(0, Vec::len))];
        let is_there = self.model.contains_key(&(Key::new(key), Reverse(seqno)));
        let if_absent = key.len() % 4 == 2;
        let foretold = match self.duplicates {
            duplicates if is_there && self.frozen.is_none() && (if_absent || duplicates == Duplicates::Reject) => {
                Err(InsertError::DuplicateKey)
            }
            _ => self.foretell_new(&sizes, usize::from(!is_there)),
        };
        let memtable = &self.memtable;
        let found = input.somewhere(|| match &value {
            _ if if_absent => memtable.write_if_absent(&operation(key, value.as_deref()), seqno),
            // Half of the values are written in parts.
            Some(value) if key.len() % 2 == 1 => {
                let ((a, b), (c, d)) = (key.split_at(key.len() / 2), value.split_at(value.len() / 2));
                memtable.put_parts(&[a, b], seqno, &[c, d])
            }
            Some(value) => memtable.put(key, seqno, value),
            None => memtable.delete(key, seqno),
        });
        self.judge(MemtableOp::Put, foretold, found.map(|_| ()), &sizes);
        if let Ok(written) = found {
            assert_eq!((written.stored, written.replaced), self.store(key, seqno, value));
            assert!(
                written.bytes > sizes[0].0 + sizes[0].1 && written.bytes <= self.memtable.memory_usage(),
                "{written:?}"
            );
        }
    }

    fn apply(&mut self, input: &mut Input<'_>) {
        let writes: Vec<_> = (0..input.byte() % 8)
            .map(|_| (O::key(input), (!input.byte().is_multiple_of(3)).then(|| input.value())))
            .collect();
        let first = seqno(input);
        let ops: Vec<_> = writes.iter().map(|(key, value)| operation(key, value.as_deref())).collect();
        let sizes: Vec<_> = writes.iter().map(|(key, value)| (key.len(), value.as_ref().map_or(0, Vec::len))).collect();
        // Half of the batches use one sequence number, and the last write of a key wins. Some batches are reserved before they get numbers.
        let (at_one, is_reserved) = (writes.len() % 2 == 1, writes.len() % 4 == 2);
        let mut numbered: Vec<_> =
            (0..).map(|i| if at_one { first } else { first.saturating_add(i) }).zip(&writes).collect();
        let new = match self.duplicates {
            Duplicates::Replace if !is_reserved => {
                let places = numbered.iter().map(|(seqno, (key, _))| (Key::new(key), Reverse(*seqno)));
                places.collect::<BTreeSet<_>>().iter().filter(|place| !self.model.contains_key(*place)).count()
            }
            _ => sizes.len(),
        };
        let foretold = self.foretell_new(&sizes, new);
        let memtable = &self.memtable;
        let found = input.somewhere(|| match (at_one, is_reserved) {
            (true, _) => memtable.apply_at(&ops, first),
            (false, true) => memtable.reserve(&ops).map(|reservation| reservation.apply(first)),
            (false, false) => memtable.apply(&ops, first),
        });
        self.judge(MemtableOp::Apply, foretold, found.map(|_| ()), &sizes);
        let Ok(written) = found else { return };
        if at_one && self.duplicates == Duplicates::Reject {
            // Of equal versions the first stored one stays, so the reversed order keeps the last write of a key.
            numbered.reverse();
        }
        let (mut stored, mut replaced) = (0, 0);
        for (seqno, (key, value)) in numbered {
            let (new, replacing) = self.store(key, seqno, value.clone());
            (stored, replaced) = (stored + new, replaced + replacing);
        }
        assert_eq!((written.stored, written.replaced), (stored, replaced));
    }

    fn drop_reservation(&mut self, key: &[u8], input: &mut Input<'_>) {
        let ops = [operation(key, None), operation(key, Some(b"never"))];
        let sizes = [(key.len(), 0), (key.len(), 5)];
        let foretold = self.foretell(&sizes);
        let memtable = &self.memtable;
        // On one thread: a reservation that was dropped in another shard leaves room there.
        let (found, room) = input.somewhere(|| (memtable.reserve(&ops).map(drop), memtable.room_for(&ops)));
        self.judge(MemtableOp::DropReservation, foretold, found, &sizes);
        self.attempts += ops.len();
        let is_same_shard = crate::THREADS_KEEP_SHARDS;
        assert!(
            room != Room::Later && (room == Room::Now || found.is_err() || !is_same_shard),
            "{room:?}, nothing is in progress"
        );
    }

    /// Another memtable with the same limits takes the place of this one. The old one lives as long as a cursor on it.
    fn replace(&mut self) {
        self.compare();
        let mut cursor = self.memtable.owned_cursor();
        self.memtable = self.limits.table(Memtable::builder().order::<O>().duplicates(self.duplicates));
        self.frozen = None;
        for version in versions(&self.model) {
            assert_eq!(cursor.next(), Some(version));
        }
        assert_eq!(cursor.next(), None);
        self.limits.renew();
        self.model.clear();
        (self.attempts, self.is_scrambled) = (0, false);
    }
}

fn operation<'a>(key: &'a [u8], value: Option<&'a [u8]>) -> Op<'a> {
    match value {
        Some(value) if key.len() & 1 == 0 => {
            Op::Joined { key, value: value.split_at(value.len() / 3).into(), kind: Kind::Value, tag: 0 }
        }
        Some(value) => Op::Put { key, value },
        None => Op::Delete { key },
    }
}

/// Reading.
impl<O: Modelled> Pair<O> {
    fn visible(&self, seqno: u64) -> Vec<Version<'_>> {
        let mut newest: Vec<Version<'_>> = Vec::new();
        for version in versions(&self.model).filter(|version| version.seqno <= seqno) {
            if newest.last().is_none_or(|last| O::compare(last.key, version.key).is_ne()) {
                newest.push(version);
            }
        }
        newest
    }

    fn get(&self, key: &[u8], seqno: u64) {
        let version = self.visible(seqno).into_iter().find(|version| O::compare(version.key, key).is_eq());
        assert_eq!(self.memtable.get_version(key, seqno), version);
        assert_eq!(self.memtable.get_owned(key, seqno).as_ref().map(OwnedVersion::as_version), version);
        let expected = match version {
            None => Lookup::Absent,
            Some(Version { kind: Kind::Tombstone, .. }) => Lookup::Tombstone,
            Some(version) => Lookup::Value(version.value),
        };
        assert_eq!(self.memtable.get(key, seqno), expected);
        assert_eq!(self.memtable.get_many(&[key, key], seqno), [expected; 2]);
        assert_eq!(self.memtable.get_many_versions(&[key, key], seqno), [version; 2]);
        let owned = self.memtable.get_many_owned(&[key, key], seqno);
        assert!(owned.iter().map(|owned| owned.as_ref().map(OwnedVersion::as_version)).eq([version; 2]));
    }

    fn range(&self, from: &[u8], to: &[u8], seqno: u64) {
        let visible = self.visible(seqno);
        for range in ranges(from, to) {
            let keys = keys::<O>(range);
            let is_within = |version: &Version<'_>| keys.contains(&Key::new(version.key));
            let within: Vec<_> = visible.iter().copied().filter(is_within).collect();
            compare_walk(|| self.memtable.range(range, seqno), &within);
            compare_walk(|| self.memtable.owned_range(range, seqno), &within);
            let all: Vec<_> = versions(&self.model).filter(is_within).collect();
            compare_walk(|| self.memtable.versions(range), &all);
            compare_walk(|| self.memtable.owned_versions(range), &all);
            let (is_all, owned) = (to.len() % 2 == 1, self.memtable.owned_cursor());
            let shown: Vec<_> = if is_all { &all } else { &within }.iter().copied().map(moves::version).collect();
            match is_all {
                true => compare_bounded(&owned.within(range), &shown, [from, to], seqno),
                false => compare_bounded(&owned.visible_at(seqno).within(range), &shown, [from, to], seqno),
            }
        }
        let prefixed: Vec<_> = visible.iter().filter(|version| version.key.starts_with(from)).copied().collect();
        if let Some(memtable) = bytewise::<Memtable>(&self.memtable) {
            compare_walk(|| memtable.prefix(from, seqno), &prefixed);
            compare_walk(|| memtable.owned_prefix(from, seqno), &prefixed);
        }
        for range in ranges((from, seqno), (to, 3)) {
            let place = |bound: Bound<(_, u64)>| bound.map(|(key, seqno)| (Key::<O>::new(key), Reverse(seqno)));
            let places = (place(range.0), place(range.1));
            let is_within = |version: &Version<'_>| places.contains(&(Key::new(version.key), Reverse(version.seqno)));
            let within: Vec<_> = versions(&self.model).filter(is_within).collect();
            compare_walk(|| self.memtable.versions_between(range), &within);
            compare_walk(|| self.memtable.owned_versions_between(range), &within);
        }
    }

    /// Checks the moves of cursors after a search, forward or backward: over all versions, and over those visible at `seqno`.
    fn seek(&self, key: &[u8], seqno: u64, back: bool) {
        let memtable = self.frozen.as_deref().unwrap_or(&self.memtable);
        let all: Vec<_> = versions(&self.model).map(moves::version).collect();
        compare_moves(memtable.cursor(), &all, (key, seqno), back);
        compare_moves(memtable.owned_cursor(), &all, (key, seqno), back);
        for visible_at in [seqno, seqno / 2, 3] {
            let shown: Vec<_> = self.visible(visible_at).into_iter().map(moves::version).collect();
            compare_moves(memtable.cursor().visible_at(visible_at), &shown, (key, seqno), back);
        }
    }

    /// Checks steps of all kinds, from either end.
    fn walk_cursor(&self, input: &mut Input<'_>) {
        let all: Vec<_> = versions(&self.model).map(moves::version).collect();
        let back = !input.byte().is_multiple_of(2);
        let steps = input.byte();
        let steps = (0..8).map(|step| Step::ALL[usize::from(steps.rotate_right(step) & 3)]);
        compare_steps(self.memtable.cursor(), &all, back, steps);
    }

    fn compare(&mut self) {
        if !self.is_scrambled {
            self.memtable.validate();
        }
        compare_walk(|| self.memtable.all_versions(), &versions(&self.model).collect::<Vec<_>>());
        for seqno in [0, 3, u64::MAX] {
            assert!(self.memtable.iter(seqno).eq(self.visible(seqno)));
            self.model.keys().for_each(|(key, _)| self.get(&key.bytes, seqno));
        }
        if let Some(frozen) = &self.frozen {
            assert!(frozen.all_versions().eq(versions(&self.model)));
        }
        self.compare_figures();
    }

    fn compare_figures(&mut self) {
        let stats = self.memtable.stats();
        let dead = self.model.values().filter(|value| value.is_none()).count();
        assert_eq!((self.memtable.len(), self.memtable.is_empty()), (self.model.len(), self.model.is_empty()));
        assert_eq!((stats.len, stats.entries, stats.tombstones), (self.model.len(), self.model.len(), dead));
        assert_eq!((stats.total_inserts, self.memtable.is_frozen()), (self.attempts, self.frozen.is_some()));
        let keys = versions(&self.model).map(|version| version.key.len()).sum();
        let values = versions(&self.model).map(|version| version.value.len()).sum();
        assert_eq!((stats.key_bytes, stats.value_bytes), (keys, values));
        assert_eq!((stats.avg_key_size, stats.avg_value_size), (mean(keys, stats.len), mean(values, stats.len)));
        self.limits.check(&stats);
    }
}

fn versions<O: Modelled>(model: &Model<O>) -> impl DoubleEndedIterator<Item = Version<'_>> {
    model.iter().map(|((key, seqno), value)| {
        let kind = if value.is_some() { Kind::Value } else { Kind::Tombstone };
        Version::new(&key.bytes, seqno.0, kind, value.as_deref().unwrap_or_default())
    })
}
