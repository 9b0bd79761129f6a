//! The operations of an engine's workload, made before the clock starts, with what they must find: a sorted map of the newest
//! record of each key goes through the same operations. They are applied in order, so only what reads nothing that it writes
//! may be divided among threads.

use std::collections::BTreeMap;

use rand::RngExt;

use super::digest::{Digest, of_count, of_entry, of_value};
use super::input::Input;
use crate::keys::{self, Keys};
use crate::random::rng;
use crate::spec::{Shape, Workload};

/// Streams of random numbers, apart from those of the input.
const DRAW_STREAM: u64 = (1 << 63) + 1000;
/// Enough of them to say how long a read takes.
const MOST_READS: usize = 500_000;

/// What is done with a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Op {
    Get,
    /// Stores the value of the record with this number.
    Put(usize),
    /// Reads so many entries from the key on.
    Scan(usize),
    /// Reads, then stores the value of the record with this number.
    Update(usize),
}

/// Operations, the key of each behind that of the one before.
#[derive(Debug, Default)]
pub(super) struct Ops {
    pub(super) ops: Vec<Op>,
    pub(super) keys: Keys,
    pub(super) expected: Digest,
}

/// What a database holds.
pub(super) struct Contents<'i> {
    input: &'i Input,
    /// The number of the newest record of each key.
    pub(super) newest: BTreeMap<&'i [u8], usize>,
    /// The number of the next record with a new key, and of the next one that overwrites.
    next: [usize; 2],
}

/// Records with new keys that the workloads of a round need at most.
pub(super) fn later(shape: &Shape) -> usize {
    shape.entries / 25 + 100
}

/// The entries that a scan of this workload reads.
fn scanned(workload: Workload) -> usize {
    match workload {
        Workload::Scan10 => 10,
        Workload::Scan100 => 100,
        _ => 10_000,
    }
}

impl<'i> Contents<'i> {
    /// Of a database with nothing in it.
    pub(super) fn empty(input: &'i Input) -> Self {
        Self { input, newest: BTreeMap::new(), next: [input.stored().end, input.all().end] }
    }

    /// The operations of `workload`, after which these are the contents.
    pub(super) fn operations(&mut self, workload: Workload) -> Ops {
        let (shape, stored) = (self.input.shape(), self.input.stored());
        let few = |divisor: usize| stored.len().div_ceil(divisor);
        let reads = few(1).min(MOST_READS);
        match workload {
            Workload::Get => self.of(self.input.accessed().into_iter().take(reads).map(|key| (key, Op::Get))),
            Workload::Miss => {
                let keys = keys::absent(&Shape { entries: reads, ..*shape });
                Ops { ops: vec![Op::Get; reads], keys, expected: 0 }
            }
            Workload::Scan10 | Workload::Scan100 | Workload::Scan10k => {
                let most = scanned(workload);
                let from = self.input.accessed().into_iter().take(few(most.max(50)).min(few(20)));
                self.of(from.map(|key| (key, Op::Scan(most))))
            }
            Workload::ReadWhileWriting => {
                self.of(self.input.accessed().into_iter().take(few(5)).map(|key| (key, Op::Get)))
            }
            Workload::Overwrite => {
                let mut draw = rng(DRAW_STREAM);
                let keys = (0..3 * stored.len()).map(|_| draw.random_range(stored.clone()));
                let ops: Vec<_> = keys.map(|key| (key, Op::Put(self.number()))).collect();
                self.of(ops.into_iter())
            }
            Workload::Open => Ops::default(),
            Workload::YcsbE => self.ycsb(workload, few(20)),
            _ if workload.is_ycsb() => self.ycsb(workload, few(5)),
            // What fills a database.
            _ => self.of(stored.map(|record| (record, Op::Put(record)))),
        }
    }

    fn ycsb(&mut self, workload: Workload, count: usize) -> Ops {
        let writes = match workload {
            Workload::YcsbA | Workload::YcsbF => 50,
            Workload::YcsbC => 0,
            _ => 5,
        };
        let mut draw = rng(DRAW_STREAM + 1 + workload as u64);
        let mut ops = Vec::with_capacity(count);
        // Of new keys those that were inserted last are the hot ones; there are no others so near the end.
        let hot = self.input.skewed(count, DRAW_STREAM + 100 + workload as u64);
        let shuffled = self.input.shuffled(DRAW_STREAM);
        for rank in hot {
            let is_write = draw.random_range(0..100) < writes;
            let key = if workload == Workload::YcsbD { self.next[0] - 1 - rank } else { shuffled[rank] };
            let inserts = matches!(workload, Workload::YcsbD | Workload::YcsbE);
            ops.push(match (is_write, workload) {
                (true, _) if inserts => {
                    let new = self.next[0];
                    self.next[0] += 1;
                    (new, Op::Put(new))
                }
                (true, Workload::YcsbF) => (key, Op::Update(self.number())),
                (true, _) => (key, Op::Put(self.number())),
                (false, Workload::YcsbE) => (key, Op::Scan(draw.random_range(1..=100))),
                (false, _) => (key, Op::Get),
            });
        }
        self.of(ops.into_iter())
    }

    /// The number of the next record that overwrites.
    fn number(&mut self) -> usize {
        self.next[1] += 1;
        self.next[1] - 1
    }

    /// Applies the operations, each with the index of its key.
    fn of(&mut self, ops: impl Iterator<Item = (usize, Op)>) -> Ops {
        let mut expected = 0;
        let (indices, ops): (Vec<_>, Vec<_>) = ops.inspect(|&(key, op)| expected += self.apply(key, op)).unzip();
        Ops { ops, keys: self.input.pick(&indices), expected }
    }

    fn apply(&mut self, key: usize, op: Op) -> Digest {
        let key = self.input.key(key);
        let found = |newest: &BTreeMap<&[u8], usize>| newest.get(key).map_or(0, |&of| of_value(self.input.value(of)));
        match op {
            Op::Get => found(&self.newest),
            Op::Scan(most) => {
                let entries = self.newest.range(key..).take(most);
                entries.map(|(key, &record)| of_entry(key, self.input.value(record))).sum()
            }
            Op::Put(record) => {
                self.newest.insert(key, record);
                of_count(1)
            }
            Op::Update(record) => {
                let read = found(&self.newest);
                self.newest.insert(key, record);
                read + of_count(1)
            }
        }
    }
}
