//! The contents of a subject, and the operations of a workload with the sum of the lengths that they read, both made before the clock starts. The sum
//! comes from the same operations on the contents, in order. So a workload that reads its own writes cannot be divided among threads.

use bench_keys::{Keys, rng};
use rand::RngExt;

use super::input::Input;
use crate::spec::{Shape, Workload};

/// Streams of random numbers, separate from those of the input.
const DRAW_STREAM: u64 = (1 << 63) + 1000;
/// The most reads of an engine: enough to measure the time of a read.
const MOST_READS: usize = 500_000;
/// The most transfers, and those for each account.
const TRANSFERS: usize = 100_000;
const TRANSFERS_EACH: usize = 5_000;
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
    /// Moves an amount to the account with this key's index.
    Transfer(usize),
}

/// Operations, with their keys stored one after the other. Operations that read everything have no key.
#[derive(Debug, Default)]
pub(super) struct Ops {
    pub(super) count: usize,
    pub(super) ops: Vec<Op>,
    pub(super) keys: Keys,
    /// The sum of what they read: see [`length`], [`bytes`].
    pub(super) expected: u64,
}

/// What a walk adds up for an entry.
#[inline(always)]
pub(super) fn length(key: &[u8], value: &[u8]) -> u64 {
    (key.len() + value.len()) as u64
}

/// What a reader of all bytes adds up for an entry.
#[inline(always)]
pub(super) fn bytes(key: &[u8], value: &[u8]) -> u64 {
    [key, value].into_iter().flatten().map(|&byte| u64::from(byte)).sum()
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

/// The number of operations of a workload; of scans of all, those of one thread.
pub(super) fn count(shape: &Shape, workload: Workload) -> usize {
    let few = |divisor: usize| shape.entries.div_ceil(divisor);
    match workload {
        Workload::Get | Workload::Miss | Workload::SeekOne if !shape.store.is_table() => few(1).min(MOST_READS),
        Workload::Seek => few(10),
        Workload::Scan10 => few(50),
        Workload::Scan100 => few(100),
        Workload::Scan10k => few(10_000),
        Workload::YcsbE => few(20),
        Workload::ReadWhileWriting => few(5),
        _ if workload.is_ycsb() => few(5),
        Workload::Overwrite => 3 * shape.entries,
        Workload::Transactions => TRANSFERS.min(TRANSFERS_EACH * shape.entries),
        Workload::Open => 1,
        _ => shape.entries,
    }
}

impl<'i> Contents<'i> {
    /// Contents of an empty subject.
    pub(super) fn empty(input: &'i Input) -> Self {
        Self { input, newest: vec![NONE; input.keys.len()], next: [input.stored().end, input.keys.len()] }
    }

    /// Contents of a subject after the workload that fills it.
    pub(super) fn filled(input: &'i Input) -> Self {
        let mut filled = Self::empty(input);
        input.stored().for_each(|record| filled.newest[record] = record);
        filled
    }

    /// The stored entries, of the keys with these indices.
    fn entries<'s>(&'s self, keys: &'s [usize]) -> impl Iterator<Item = (&'i [u8], &'i [u8])> {
        let there = keys.iter().filter(|key| self.newest[**key] != NONE);
        there.map(|&key| (self.input.keys.get(key), self.input.value(self.newest[key])))
    }

    /// Compares all that `scan` yields with the contents, record by record.
    pub(super) fn check<E: From<String>>(
        &self,
        scan: impl FnOnce(&mut dyn FnMut(&[u8], &[u8])) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut entries = self.entries(&self.input.sorted);
        let (mut right, mut yielded) = (0, 0);
        scan(&mut |key, value| {
            yielded += 1;
            right += usize::from(entries.next() == Some((key, value)));
        })?;
        let expected = self.entries(&self.input.sorted).count();
        if (right, yielded) == (expected, expected) {
            return Ok(());
        }
        Err(format!("expected {expected} entries in order, found {yielded}, of which {right} are where they must be")
            .into())
    }

    /// Some stored keys with their values, for the check of lookups.
    pub(super) fn some(&self) -> impl Iterator<Item = (&'i [u8], &'i [u8])> {
        self.entries(&self.input.sorted).step_by(self.input.sorted.len() / 1000 + 1)
    }

    /// The operations of `workload`. Changes the contents to those after the operations.
    pub(super) fn operations(&mut self, workload: Workload) -> Ops {
        let (shape, stored) = (self.input.shape, self.input.stored());
        let count = count(&shape, workload);
        let accessed = |op: Op| self.input.accessed().into_iter().take(count).map(move |key| (key, op));
        let all = |of: fn(&[u8], &[u8]) -> u64| {
            let expected = self.entries(&self.input.sorted).map(|(key, value)| of(key, value)).sum();
            Ops { count, expected, ..Ops::default() }
        };
        match workload {
            Workload::Get | Workload::GetMany | Workload::ReadWhileWriting => self.of(accessed(Op::Get)),
            Workload::Miss => {
                let keys = bench_keys::absent(shape.keys, shape.key_len, count);
                Ops { count, ops: vec![Op::Get; count], keys, expected: 0 }
            }
            Workload::SeekOne => self.of(accessed(Op::Scan(1))),
            Workload::Scan10 => self.of(accessed(Op::Scan(10))),
            Workload::Seek | Workload::Scan100 => self.of(accessed(Op::Scan(100))),
            Workload::Scan10k => self.of(accessed(Op::Scan(10_000))),
            Workload::Mixed => self.mix(workload, self.input.accessed().into_iter(), 50),
            Workload::Mixed95 => self.mix(workload, self.input.accessed().into_iter(), 5),
            Workload::Delete => {
                let keys = self.input.shuffled(DRAW_STREAM + 200);
                self.of(keys.into_iter().map(|key| (key, Op::Delete)))
            }
            Workload::Overwrite => {
                let mut draw = rng(DRAW_STREAM);
                let keys = (0..count).map(|_| draw.random_range(stored.clone()));
                let ops: Vec<_> = keys.map(|key| (key, Op::Put(self.overwriting()))).collect();
                self.of(ops.into_iter())
            }
            Workload::Transactions => {
                let (mut draw, accounts) = (rng(DRAW_STREAM), stored.len());
                // The other account is another one, if there is any.
                let pair = |_| (draw.random_range(0..accounts), draw.random_range(1..accounts.max(2)));
                let transfers = (0..count).map(pair).map(|(from, by)| (from, Op::Transfer((from + by) % accounts)));
                self.of(transfers)
            }
            Workload::Open | Workload::Sort => Ops { count, ..Ops::default() },
            Workload::Scan | Workload::Reverse | Workload::FrozenScan => all(length),
            Workload::ScanBytes => all(bytes),
            _ if workload.is_ycsb() => self.ycsb(workload, count),
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

    /// The sum of the lengths that the operation reads.
    fn apply(&mut self, key: usize, op: Op) -> u64 {
        let found = if self.newest[key] == NONE { 0 } else { self.input.shape.value_len as u64 };
        match op {
            Op::Get => return found,
            Op::Scan(most) => {
                return self
                    .entries(self.input.sorted_from(key))
                    .take(most)
                    .map(|(key, value)| length(key, value))
                    .sum();
            }
            Op::Put(record) => self.newest[key] = record,
            Op::Update(record) => {
                self.newest[key] = record;
                return found;
            }
            Op::Delete => self.newest[key] = NONE,
            Op::Transfer(_) => {}
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::matrix::Matrix;

    #[test]
    fn lookups_have_another_order_and_mixes_their_share_of_writes_and_reads_of_stored_keys() {
        // Catches searches in the order of the inserts, which caches would speed up, overwrites by the mixes of tables, which some refuse, reads of keys
        // that are not stored yet, and a wrong share of writes.
        use Workload::{Mixed, Mixed95, YcsbA, YcsbC, YcsbD, YcsbE, YcsbF};
        let all =
            [(Mixed, 0.5), (Mixed95, 0.05), (YcsbA, 0.5), (YcsbC, 0.0), (YcsbD, 0.05), (YcsbE, 0.05), (YcsbF, 0.5)];
        let shape = serde_json::from_str::<Matrix>(r#"{"entries": [20000]}"#).expect("a matrix").shapes()[0];
        let input = Input::new(&shape, later(&shape, &all.map(|(workload, _)| workload)));
        let mut contents = Contents::filled(&input);
        let gets = contents.operations(Workload::Get);
        let distinct: HashSet<_> = gets.keys.iter().collect();
        assert!(input.stored().all(|record| distinct.contains(input.keys.get(record))));
        assert!(!gets.keys.iter().eq(input.stored().map(|record| input.keys.get(record))));
        // A seek of one finds the key itself.
        assert_eq!(contents.operations(Workload::SeekOne).expected, input.payload());
        let mut first_new = 20_000;
        for (workload, share) in all {
            let mix = contents.operations(workload);
            let number = |op: &Op| if let Op::Put(record) | Op::Update(record) = op { Some(*record) } else { None };
            let writes: Vec<_> = mix.ops.iter().filter_map(number).collect();
            let (found, reads) = (mix.expected as usize / 100, mix.ops.len() - writes.len());
            let found_share = writes.len() as f64 / mix.ops.len() as f64;
            assert!((found_share - share).abs() < 0.02, "{workload:?}: {found_share}");
            match workload {
                YcsbE => assert!((40..70).contains(&(found / reads)), "{found}"),
                YcsbF => assert_eq!(found, reads + writes.len()),
                _ => assert_eq!(found, reads, "{workload:?}"),
            }
            if matches!(workload, Mixed | Mixed95 | YcsbD) {
                assert_eq!(writes, (first_new..first_new + writes.len()).collect::<Vec<_>>());
                first_new += writes.len();
            }
        }
        contents.operations(Workload::Delete);
        assert_eq!(contents.operations(Workload::Get).expected, 0);
    }
}
