//! I5: a snapshot shows the same entries at every read, and has all that its thread saw before.

use super::{config, table};
use crate::schedules::Program;
use crate::{ConcurrentSkipList, Snapshot};

/// Keys that writers store and delete.
const KEYS: [&[u8]; 4] = [b"b", b"d", b"f", b"h"];

/// Keys, values, and whether they are tombstones.
type Entries = Vec<(Vec<u8>, Vec<u8>, bool)>;

/// The entries that `snapshot` shows in a scan in either direction; lookups must show the same.
fn look(snapshot: &Snapshot<'_>) -> Entries {
    let entry = |entry: crate::Entry<'_>| (entry.key.to_vec(), entry.value.to_vec(), entry.is_tombstone);
    let forward: Entries = snapshot.iter().map(entry).collect();
    let mut backward: Entries = snapshot.iter().rev().map(entry).collect();
    backward.reverse();
    assert_eq!(forward, backward, "I5 broken: forward, and backward after it");
    for key in KEYS {
        let scanned = forward.iter().find(|entry| entry.0 == key).map(|entry| (&entry.1[..], entry.2));
        assert_eq!(snapshot.get(key), scanned, "I5 broken: a lookup, and the scan before it");
    }
    forward
}

/// Thread 0 inserts and deletes; thread 1 does the same in another order and so helps unfinished writes of thread 0. Threads 2 and 3 take snapshots
/// and read each twice.
pub(super) fn snapshots() -> Program<ConcurrentSkipList, usize> {
    Program {
        new: || {
            let list: ConcurrentSkipList = table(config(2));
            assert!(list.insert(b"d", b"old") && list.insert(b"x", b""));
            list
        },
        thread: |list, number| match number {
            0 => KEYS.iter().map(|key| usize::from(list.insert(key, b"0")) + usize::from(list.delete(key))).sum(),
            1 => {
                let write = |key: &&[u8]| usize::from(list.delete(key)) + usize::from(list.insert(key, b"1"));
                KEYS.iter().rev().map(write).sum()
            }
            _ => {
                let (first, second) = (list.snapshot(), list.snapshot());
                let (of_first, of_second) = (look(&first), look(&second));
                assert_eq!(look(&first), of_first, "I5 broken: a snapshot changed");
                assert_eq!(look(&second), of_second, "I5 broken: a snapshot changed");
                let later = |entry: &(Vec<u8>, Vec<u8>, bool)| {
                    of_second.iter().any(|other| (&other.0, &other.1) == (&entry.0, &entry.1) && other.2 >= entry.2)
                };
                assert!(of_first.iter().all(later), "I5 broken: a later snapshot lacks something");
                0
            }
        },
        at_rest: |list, seen| {
            list.validate();
            let stats = list.stats();
            assert_eq!(stats.entries, 5);
            // Each key but "d" is inserted by one call, and each is deleted at most once.
            assert_eq!(seen.iter().sum::<usize>(), 3 + stats.tombstones);
        },
    }
}

/// Thread 0 inserts and deletes; threads 1 and 2 read, take a snapshot and read it; thread 3 only takes snapshots, so that stamps differ.
pub(super) fn seen_before() -> Program<ConcurrentSkipList, ()> {
    Program {
        new: || {
            let list: ConcurrentSkipList = table(config(2));
            assert!(list.insert(b"a", b""));
            list
        },
        thread: |list, number| match number {
            0 => KEYS.iter().for_each(|key| assert!(list.insert(key, b"v") && list.delete(key))),
            1 | 2 => {
                for key in KEYS {
                    let seen = list.get(key);
                    let found = list.snapshot().get(key);
                    let has_all = match (seen, found) {
                        (None, _) => true,
                        (Some(_), None) => false,
                        (Some((_, was_dead)), Some((_, is_dead))) => is_dead >= was_dead,
                    };
                    assert!(has_all, "I5 broken: {seen:?} was seen, then a snapshot says {found:?}");
                }
            }
            _ => (0..4).for_each(|_| assert!(list.snapshot().get(b"a").is_some())),
        },
        at_rest: |list, _| {
            list.validate();
            assert_eq!((list.len(), list.stats().tombstones), (1, 4));
        },
    }
}
