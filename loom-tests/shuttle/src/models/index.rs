//! I2, I3, I7: the index under concurrent writers that split its blocks and replace blocks that stay locked.

use super::{config, table};
use crate::node::Predecessor;
use crate::schedules::Program;
use crate::{InsertError, Lookup, Memtable};

/// The keys stored before the threads start.
const OLD: [u8; 6] = [20, 60, 100, 140, 180, 220];
/// The keys that the writers store, in this order and in the reverse.
const NEW: [[u8; 6]; 2] = [[30, 70, 110, 150, 190, 230], [10, 50, 90, 130, 170, 210]];

fn filled() -> Memtable {
    let memtable: Memtable = table(config(2));
    OLD.iter().for_each(|key| assert!(memtable.put(&[*key], 1, &[*key]).is_ok()));
    memtable
}

fn find(memtable: &Memtable, keys: &[u8]) {
    for key in keys {
        assert_eq!(memtable.get(&[*key], 1), Lookup::Value(&[*key]), "I3 broken");
    }
}

/// Stores keys until the table is frozen. Returns the stored keys.
fn store(memtable: &Memtable, keys: impl Iterator<Item = u8>) -> Vec<u8> {
    let stored = keys.take_while(|key| {
        let put = memtable.put(&[*key], 1, &[*key]);
        put.inspect_err(|refusal| assert_eq!(*refusal, InsertError::Frozen)).is_ok()
    });
    stored.collect()
}

/// Threads 0 and 1 store alternating keys, one ascending and one descending, so that both split the same blocks. Thread 2 repeatedly repairs the
/// index from its first node on, and so replaces blocks that it finds locked. Thread 3 searches for all keys stored before or, with `FREEZES`,
/// freezes. Catches a key that a search does not find, an index that is broken at rest, and an index that changes after the freeze.
pub(super) fn upkeep<const FREEZES: bool>() -> Program<Memtable, Vec<u8>> {
    Program {
        new: filled,
        thread: |memtable, number| {
            match number {
                0 => return store(memtable, NEW[0].into_iter()),
                1 => return store(memtable, NEW[1].into_iter().rev()),
                2 if FREEZES => find(memtable, &OLD),
                2 => (0..3).for_each(|_| {
                    _ = memtable.list.for_writes(0).expect("room").index.mend(number, Predecessor::HEAD, 4)
                }),
                _ if FREEZES => {
                    // Concurrent lookups may still repair the index, so it is checked for completeness only at rest.
                    let frozen = memtable.freeze();
                    return frozen.all_versions().map(|version| version.key[0]).collect();
                }
                _ => find(memtable, &OLD),
            }
            Vec::new()
        },
        at_rest: |memtable, seen| {
            memtable.validate();
            let mut stored = [&OLD[..], &seen[0], &seen[1]].concat();
            stored.sort_unstable();
            assert!(memtable.all_versions().map(|version| version.key[0]).eq(stored.iter().copied()));
            assert!(memtable.all_versions().rev().map(|version| version.key[0]).eq(stored.iter().rev().copied()));
            find(memtable, &stored);
            if FREEZES {
                assert_eq!(seen[3], stored, "I7 broken: when freeze returned, and acknowledged");
            }
        },
    }
}

/// I6: replaced blocks take a bounded part of the table, in every schedule. All threads repair the index without end, so that each finds locks of
/// the others, and two also store. Catches repairs that fill a table with blocks that are no longer used.
pub(super) fn mends() -> Program<Memtable, ()> {
    // The number of repairs of a thread: if each repair replaced a block, the blocks would not fit.
    const MENDS: usize = 16;
    Program {
        new: filled,
        thread: |memtable, number| {
            let mut keys = NEW.get(number).into_iter().flatten();
            for _ in 0..MENDS {
                memtable.list.for_writes(0).expect("room").index.mend(number, Predecessor::HEAD, 2);
                if let Some(key) = keys.next() {
                    memtable.put(&[*key], 1, &[*key]).expect("the table has room");
                }
            }
        },
        at_rest: |memtable, _| {
            memtable.validate();
            let stats = memtable.stats();
            // The sum of three parts: the aligned replaced blocks, the aligned space that they made unusable for writers, and the space in use.
            let most = stats.effective_max_memory_bytes / 2;
            assert!(stats.memory_usage <= most, "I6 broken: {} bytes used of {most}", stats.memory_usage);
        },
    }
}
