//! The contents of a subject, and the operations of a workload with their expected results, both made before the clock starts. The expected results
//! come from the same operations on the contents, in order. So a workload that reads its own writes cannot be divided among threads.

use bench_keys::{Keys, rng};
use rand::RngExt;

use super::digest::{Digest, of_count, of_entry, of_value};
use super::input::Input;
use crate::spec::{Shape, Workload};

/// Streams of random numbers, separate from those of the input.
const DRAW_STREAM: u64 = (1 << 63) + 1000;
/// The most reads of an engine: enough to measure the time of a read.
const MOST_READS: usize = 500_000;
/// A number that no record has.
const NONE: usize = usize::MAX;

/// An operation on a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Op {
    Get,
    /// Stores the value of the record with this number.
    Put(usize),
    /// Reads the given number of entries from the key on.
    Scan(usize),
    /// Reads, then stores the value of the record with this number.
    Update(usize),
    Delete,
}

/// Operations, with their keys stored one after the other. Operations that read everything have no key.
#[derive(Debug, Default)]
pub(super) struct Ops {
    pub(super) count: usize,
    pub(super) ops: Vec<Op>,
    pub(super) keys: Keys,
    pub(super) expected: Digest,
}

/// The contents of a table or database.
pub(super) struct Contents<'i> {
    input: &'i Input,
    /// The number of the newest record of each key of the input.
    newest: Vec<usize>,
    /// The number of the next record with a new key, and of the next one that overwrites.
    next: [usize; 2],
}

/// The most records with new keys that these workloads need.
pub(super) fn later(shape: &Shape, workloads: &[Workload]) -> usize {
    let needs = |workload: &Workload| match workload {
        Workload::Mixed => shape.entries * 11 / 20 + 100,
        Workload::Mixed95 => shape.entries / 10 + 100,
        Workload::YcsbD | Workload::YcsbE => shape.entries / 50 + 100,
        _ => 0,
    };
    workloads.iter().map(needs).sum()
}

/// The entries that a seek or scan of this workload reads.
fn scanned(workload: Workload) -> usize {
    match workload {
        Workload::SeekOne => 1,
        Workload::Scan10 => 10,
        Workload::Scan10k => 10_000,
        _ => 100,
    }
}

impl<'i> Contents<'i> {
    /// Contents of an empty subject.
    pub(super) fn empty(input: &'i Input) -> Self {
        Self { input, newest: vec![NONE; input.all().len()], next: [input.stored().end, input.all().end] }
    }

    /// Contents of a subject after the workload that fills it.
    pub(super) fn filled(input: &'i Input) -> Self {
        let mut filled = Self::empty(input);
        input.stored().for_each(|record| filled.newest[record] = record);
        filled
    }

    /// The indices of the stored keys, in the order that `order` gives to all keys.
    fn there<'s>(&'s self, order: &'s [usize]) -> impl Iterator<Item = usize> {
        order.iter().copied().filter(|&key| self.newest[key] != NONE)
    }

    fn entry(&self, key: usize) -> (&'i [u8], &'i [u8]) {
        (self.input.keys.get(key), self.input.value(self.newest[key]))
    }

    /// The digest of a scan of everything.
    fn digest(&self) -> Digest {
        self.digest_of(self.there(&self.input.sorted))
    }

    fn digest_of(&self, keys: impl Iterator<Item = usize>) -> Digest {
        keys.map(|key| self.entry(key)).map(|(key, value)| of_entry(key, value)).sum()
    }

    /// Compares all that `scan` yields with the contents, record by record.
    pub(super) fn check<E: From<String>>(
        &self,
        scan: impl FnOnce(&mut dyn FnMut(&[u8], &[u8])) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut entries = self.there(&self.input.sorted).map(|key| self.entry(key));
        let (mut right, mut yielded) = (0, 0);
        scan(&mut |key, value| {
            yielded += 1;
            right += usize::from(entries.next() == Some((key, value)));
        })?;
        let expected = self.there(&self.input.sorted).count();
        if (right, yielded) == (expected, expected) {
            return Ok(());
        }
        let found = format!("found {yielded}, of which {right} are where they must be");
        Err(format!("expected {expected} entries in order, {found}").into())
    }

    /// The operations of `workload`. Changes the contents to those after the operations.
    pub(super) fn operations(&mut self, workload: Workload) -> Ops {
        let (shape, stored) = (self.input.shape, self.input.stored());
        let few = |divisor: usize| stored.len().div_ceil(divisor);
        let reads = if shape.store.is_table() { few(1) } else { few(1).min(MOST_READS) };
        let accessed = |count: usize, op: Op| self.input.accessed().into_iter().take(count).map(move |key| (key, op));
        match workload {
            Workload::Get | Workload::GetMany => self.of(accessed(reads, Op::Get)),
            Workload::Miss => {
                let keys = bench_keys::absent(shape.keys, shape.key_len, reads);
                Ops { count: reads, ops: vec![Op::Get; reads], keys, expected: 0 }
            }
            Workload::Seek => self.of(accessed(few(10), Op::Scan(scanned(workload)))),
            Workload::SeekOne => self.of(accessed(reads, Op::Scan(scanned(workload)))),
            Workload::Scan10 | Workload::Scan100 | Workload::Scan10k => {
                let most = scanned(workload);
                self.of(accessed(few(most.max(50)).min(few(20)), Op::Scan(most)))
            }
            Workload::Mixed => self.mix(workload, self.input.accessed().into_iter(), 50),
            Workload::Mixed95 => self.mix(workload, self.input.accessed().into_iter(), 5),
            Workload::Delete => {
                let keys = self.input.shuffled(DRAW_STREAM + 200);
                self.of(keys.into_iter().map(|key| (key, Op::Delete)))
            }
            Workload::ReadWhileWriting => self.of(accessed(few(5), Op::Get)),
            Workload::Overwrite => {
                let mut draw = rng(DRAW_STREAM);
                let keys = (0..3 * stored.len()).map(|_| draw.random_range(stored.clone()));
                let ops: Vec<_> = keys.map(|key| (key, Op::Put(self.overwriting()))).collect();
                self.of(ops.into_iter())
            }
            Workload::Open => Ops::default(),
            Workload::Sort => Ops { count: stored.len(), ..Ops::default() },
            Workload::Scan | Workload::Reverse | Workload::FrozenScan => {
                Ops { count: stored.len(), expected: self.digest(), ..Ops::default() }
            }
            Workload::YcsbE => self.ycsb(workload, few(20)),
            _ if workload.is_ycsb() => self.ycsb(workload, few(5)),
            // The workloads that fill a subject.
            _ => self.of(stored.map(|record| (record, Op::Put(record)))),
        }
    }

    fn ycsb(&mut self, workload: Workload, count: usize) -> Ops {
        let writes = match workload {
            Workload::YcsbA | Workload::YcsbF => 50,
            Workload::YcsbC => 0,
            _ => 5,
        };
        let ranks = self.input.skewed(count, DRAW_STREAM + 100 + workload as u64);
        let shuffled = self.input.shuffled(DRAW_STREAM);
        // In YCSB D the newest keys are the hot ones, so the rank counts back from the newest key.
        self.mix(workload, ranks.map(|rank| if workload == Workload::YcsbD { rank } else { shuffled[rank] }), writes)
    }

    /// An operation for each of `keys`; `writes` per cent of them are writes.
    fn mix(&mut self, workload: Workload, keys: impl Iterator<Item = usize>, writes: u32) -> Ops {
        use Workload::{Mixed, Mixed95, YcsbD, YcsbE, YcsbF};
        let mut draw = rng(DRAW_STREAM + 1 + workload as u64);
        let mut ops = Vec::with_capacity(keys.size_hint().0);
        for key in keys {
            let is_write = draw.random_range(0..100) < writes;
            let key = if workload == YcsbD { self.next[0] - 1 - key } else { key };
            ops.push(match (is_write, workload) {
                (true, Mixed | Mixed95 | YcsbD | YcsbE) => {
                    self.next[0] += 1;
                    (self.next[0] - 1, Op::Put(self.next[0] - 1))
                }
                (true, YcsbF) => (key, Op::Update(self.overwriting())),
                (true, _) => (key, Op::Put(self.overwriting())),
                (false, YcsbE) => (key, Op::Scan(draw.random_range(1..=100))),
                (false, _) => (key, Op::Get),
            });
        }
        self.of(ops.into_iter())
    }

    /// The number of the next record that overwrites.
    fn overwriting(&mut self) -> usize {
        self.next[1] += 1;
        self.next[1] - 1
    }

    /// Applies the operations, each with the index of its key.
    fn of(&mut self, ops: impl Iterator<Item = (usize, Op)>) -> Ops {
        let mut expected = 0;
        let (indices, ops): (Vec<_>, Vec<_>) = ops.inspect(|&(key, op)| expected += self.apply(key, op)).unzip();
        Ops { count: ops.len(), ops, keys: self.input.keys.pick(&indices), expected }
    }

    fn apply(&mut self, key: usize, op: Op) -> Digest {
        let newest = self.newest[key];
        let found = if newest == NONE { 0 } else { of_value(self.input.value(newest)) };
        match op {
            Op::Get => found,
            Op::Scan(most) => self.digest_of(self.there(self.input.sorted_from(key)).take(most)),
            Op::Put(record) => {
                self.newest[key] = record;
                of_count(1)
            }
            Op::Update(record) => {
                self.newest[key] = record;
                found + of_count(1)
            }
            Op::Delete => {
                self.newest[key] = NONE;
                of_count(usize::from(newest != NONE))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::digest::count;
    use super::*;
    use crate::spec::{Access, KeySet, Store};

    #[test]
    fn lookups_are_all_keys_in_another_order() {
        // Catches searches in the order of the inserts, which caches would speed up, and an incomplete expectation.
        let input = Input::new(&Shape::new(KeySet::Paths, 3000), 0);
        let mut contents = Contents::filled(&input);
        let gets = contents.operations(Workload::Get);
        let distinct: HashSet<_> = gets.keys.iter().collect();
        assert!(input.stored().all(|record| distinct.contains(input.keys.get(record))) && distinct.len() == 3000);
        assert!(!gets.keys.iter().eq(input.stored().map(|record| input.keys.get(record))));
        assert_eq!((count(gets.expected), contents.operations(Workload::Seek).keys.len()), (3000, 300));
        // A seek of one finds the key itself.
        assert_eq!(count(contents.operations(Workload::SeekOne).expected), 3000);
    }

    #[test]
    fn mixes_have_their_share_of_writes_each_of_a_new_key() {
        // Catches overwrites, which some tables refuse, reads of keys that are not stored yet, and a wrong share of writes.
        let shape = Shape { access: Access::Zipfian, ..Shape::new(KeySet::Random, 10_000) };
        let both = [Workload::Mixed, Workload::Mixed95];
        let input = Input::new(&shape, later(&shape, &both));
        let mut contents = Contents::filled(&input);
        let mut first_new = 10_000;
        for (workload, share) in both.into_iter().zip([0.5, 0.05]) {
            let mix = contents.operations(workload);
            let number = |op: &Op| if let Op::Put(record) = op { Some(*record) } else { None };
            let writes: Vec<_> = mix.ops.iter().filter_map(number).collect();
            assert_eq!(writes, (first_new..first_new + writes.len()).collect::<Vec<_>>());
            assert!((writes.len() as f64 / 10_000.0 - share).abs() < 0.01, "{workload:?}: {}", writes.len());
            assert_eq!((mix.ops.len(), count(mix.expected)), (10_000, 10_000));
            assert!(
                mix.ops
                    .iter()
                    .zip(mix.keys.iter())
                    .all(|(op, key)| number(op).is_none_or(|n| input.keys.get(n) == key))
            );
            first_new += writes.len();
        }
        assert_eq!(count(contents.digest()), first_new as u128);
        let deletes = contents.operations(Workload::Delete);
        assert_eq!((count(deletes.expected), count(contents.digest())), (10_000, first_new as u128 - 10_000));
    }

    #[test]
    fn what_is_compared_is_every_record_whatever_the_order_of_the_operations() {
        // Catches expectations that differ from a sorted map's, and reads of YCSB inserts that are not stored yet.
        let shape = Shape::new(KeySet::Random, 2000).in_store(Store::Engine);
        let input = Input::new(&shape, later(&shape, &[Workload::YcsbD, Workload::YcsbE]));
        let mut contents = Contents::empty(&input);
        assert_eq!(count(contents.operations(Workload::Put).expected), 2000);
        let counts = |workload, contents: &mut Contents<'_>| {
            let Ops { ops, keys, expected, .. } = contents.operations(workload);
            assert_eq!(ops.len(), keys.len());
            let puts = ops.iter().filter(|op| matches!(op, Op::Put(_) | Op::Update(_))).count();
            (ops.len(), puts, count(expected))
        };
        for (workload, share) in
            [(Workload::YcsbA, 50), (Workload::YcsbB, 5), (Workload::YcsbC, 0), (Workload::YcsbD, 5)]
        {
            let (all, puts, found) = counts(workload, &mut contents);
            assert!(all == 400 && puts.abs_diff(4 * share) <= 30 && found == 400, "{workload:?}: {puts}, {found}");
        }
        // An update reads, too; a scan of 1 to 100 entries reads 50 on average.
        let (all, updates, found) = counts(Workload::YcsbF, &mut contents);
        assert_eq!((all + updates) as u128, found);
        let (all, inserts, found) = counts(Workload::YcsbE, &mut contents);
        assert!(all == 100 && inserts < 15 && (3500..6500).contains(&found), "{inserts}, {found}");
        assert!((2001..input.all().len() as u128).contains(&count(contents.digest())));
        assert_eq!(counts(Workload::Miss, &mut contents), (2000, 0, 0));
    }
}
