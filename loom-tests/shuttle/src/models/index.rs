//! I2, I3, I7: the index beside writers that split its blocks and replace those whose locks stay taken.

use super::{config, table};
use crate::node::Predecessor;
use crate::schedules::Program;
use crate::{InsertError, Lookup, Memtable};

/// Threads 0 and 1 store keys that alternate, one ascending and one descending, so that both split the same blocks. Thread 2
/// mends the index from its first node on, again and again, and so replaces what it finds locked; thread 3 looks for all that
/// was there before or, with `FREEZES`, freezes. Catches a key that a search does not find, an index that is broken at rest,
/// and one that changes after the freeze.
pub(super) struct Upkeep<const FREEZES: bool>(Memtable);

/// What is there from the start.
const OLD: [u8; 6] = [20, 60, 100, 140, 180, 220];
/// What the writers store, in this order and in the reverse.
const NEW: [[u8; 6]; 2] = [[30, 70, 110, 150, 190, 230], [10, 50, 90, 130, 170, 210]];

impl<const FREEZES: bool> Upkeep<FREEZES> {
    fn find(&self, keys: &[u8]) {
        for key in keys {
            assert_eq!(self.0.get(&[*key], 1), Lookup::Value(&[*key]), "I3 broken");
        }
    }

    /// Stores keys until the table is frozen. Returns what was stored.
    fn store(&self, keys: impl Iterator<Item = u8>) -> Vec<u8> {
        let stored = keys.take_while(|key| match self.0.put(&[*key], 1, &[*key]) {
            Ok(()) => true,
            Err(refusal) => {
                assert_eq!(refusal, InsertError::Sealed);
                false
            }
        });
        stored.collect()
    }
}

impl<const FREEZES: bool> Program for Upkeep<FREEZES> {
    type Seen = Vec<u8>;

    fn new() -> Self {
        let memtable: Memtable = table(config(2));
        OLD.iter().for_each(|key| memtable.put(&[*key], 1, &[*key]).expect("the table has room"));
        Self(memtable)
    }

    fn thread(&self, number: usize) -> Vec<u8> {
        match number {
            0 => return self.store(NEW[0].into_iter()),
            1 => return self.store(NEW[1].into_iter().rev()),
            2 if FREEZES => self.find(&OLD),
            2 => (0..3).for_each(|_| _ = self.0.list().index.mend(number, Predecessor::HEAD, 4)),
            _ if FREEZES => {
                // Lookups beside it may still mend the index, so whether it is whole is asked at rest.
                let frozen = self.0.freeze();
                return frozen.all_versions().map(|version| version.key[0]).collect();
            }
            _ => self.find(&OLD),
        }
        Vec::new()
    }

    fn at_rest(&self, seen: Vec<Vec<u8>>) {
        self.0.validate();
        let mut stored = [&OLD[..], &seen[0], &seen[1]].concat();
        stored.sort_unstable();
        assert!(self.0.all_versions().map(|version| version.key[0]).eq(stored.iter().copied()));
        assert!(self.0.all_versions().rev().map(|version| version.key[0]).eq(stored.iter().rev().copied()));
        self.find(&stored);
        if FREEZES {
            assert_eq!(seen[3], stored, "I7 broken: when freeze returned, and acknowledged");
        }
    }
}

/// I6: however the threads take turns, blocks that are replaced take a bounded part of the table. All threads mend the index
/// without end, so that each meets locks of the others, and two store beside it. Catches mends that fill a table with blocks
/// that nobody uses any more.
pub(super) struct Mends(Memtable);

/// Mends of a thread: were each to replace a block, these would not fit.
const MENDS: usize = 16;

impl Program for Mends {
    type Seen = ();

    fn new() -> Self {
        let memtable: Memtable = table(config(2));
        OLD.iter().for_each(|key| memtable.put(&[*key], 1, &[*key]).expect("the table has room"));
        Self(memtable)
    }

    fn thread(&self, number: usize) {
        let mut keys = NEW.get(number).into_iter().flatten();
        for _ in 0..MENDS {
            self.0.list().index.mend(number, Predecessor::HEAD, 2);
            if let Some(key) = keys.next() {
                self.0.put(&[*key], 1, &[*key]).expect("the table has room");
            }
        }
    }

    fn at_rest(&self, _: Vec<()>) {
        self.0.validate();
        let stats = self.0.stats();
        // A part for what was replaced, one for what writers could not use because of that, and each aligned; and what is in use.
        let most = stats.effective_max_memory_bytes / 2;
        assert!(stats.memory_usage <= most, "I6 broken: {} bytes used of {most}", stats.memory_usage);
    }
}
