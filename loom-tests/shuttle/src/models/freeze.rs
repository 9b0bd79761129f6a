//! I7: the frozen table has every acknowledged entry and no refused one, and nothing is added later.

use super::{config, table};
use crate::schedules::{Program, THREADS};
use crate::{ConcurrentSkipList, InsertError, Kind, Memtable, Op};

/// Keys, and whether they are tombstones.
type Entries = Vec<(u8, bool)>;

fn entries(list: &ConcurrentSkipList) -> Entries {
    list.iter().map(|entry| (entry.key[0], entry.is_tombstone)).collect()
}

/// Whether a write was accepted; if not, the list must be frozen.
fn accepted<T>(result: Result<T, InsertError>) -> bool {
    result.inspect_err(|refusal| assert_eq!(*refusal, InsertError::Frozen)).is_ok()
}

/// Threads 0 and 1 insert and thread 2 deletes until the list refuses, all in two shards; thread 3 freezes and reads.
pub(super) fn seal() -> Program<ConcurrentSkipList, Entries> {
    // Stored before the threads start, to be deleted.
    const OLD: [[u8; 1]; 3] = [[3], [6], [9]];
    Program {
        new: || {
            let list: ConcurrentSkipList = table(config(2));
            OLD.iter().for_each(|key| assert!(list.insert(key, b"")));
            list
        },
        thread: |list, number| match number {
            0 | 1 => {
                let keys = (0..4).map(|i| i * 3 + 1 + number as u8);
                keys.take_while(|key| accepted(list.try_insert(&[*key], b"v"))).map(|key| (key, false)).collect()
            }
            2 => {
                let delete = |key: &&[u8; 1]| match key[0] {
                    6 => accepted(list.try_delete(&key[..]).map(|is_deleted| assert!(is_deleted))),
                    _ => accepted(list.insert_tombstone(&key[..])),
                };
                let keys = OLD.iter().take_while(delete);
                keys.map(|key| (key[0], true)).collect()
            }
            _ => {
                list.freeze();
                assert!(list.is_sealed());
                entries(list)
            }
        },
        at_rest: |list, mut seen| {
            list.validate();
            assert!(!accepted(list.try_insert(b"late", b"")));
            let frozen = seen.pop().unwrap_or_default();
            let mut acknowledged = seen.concat();
            let deleted: Vec<_> = acknowledged.iter().filter(|(_, dead)| *dead).map(|(key, _)| *key).collect();
            acknowledged.extend(OLD.iter().map(|key| (key[0], false)).filter(|(key, _)| !deleted.contains(key)));
            acknowledged.sort_unstable();
            assert_eq!(frozen, acknowledged, "I7 broken: in the list when freeze returned, and acknowledged");
            assert_eq!(entries(list), acknowledged, "I7 broken: in the list later, and acknowledged");
        },
    }
}

/// Threads 0 and 1 reserve batches in one shard, and apply and drop them in turns; threads 2 and 3 freeze and read.
pub(super) fn drain() -> Program<Memtable, u64> {
    Program {
        new: || {
            let memtable: Memtable = table(config(1));
            memtable.put(b"z", 0, b"").expect("the table has room");
            memtable
        },
        thread: |memtable, number| {
            if number >= 2 {
                let frozen = memtable.freeze();
                let count = frozen.all_versions().count();
                assert_eq!(count % 3, 1, "I7 broken: a batch was cut");
                assert_eq!(frozen.put(b"late", 99, b""), Err(InsertError::Frozen));
                return count as u64;
            }
            let mut stored = 0;
            for round in 0..4 {
                let keys = [0, 1, 2].map(|i| [i, number as u8]);
                let ops = keys.each_ref().map(|key| Op::Put { key, value: b"v" });
                match memtable.reserve(&ops) {
                    Err(refusal) => {
                        assert_eq!(refusal, InsertError::Frozen);
                        break;
                    }
                    Ok(dropped) if round % 2 == 1 => drop(dropped),
                    Ok(reservation) => stored += reservation.apply(10 * round).stored as u64,
                }
            }
            stored
        },
        at_rest: |memtable, seen| {
            memtable.validate();
            assert!(memtable.is_frozen());
            let acknowledged = 1 + seen[0] + seen[1];
            let found = [seen[2], seen[3]];
            assert_eq!(found, [acknowledged; THREADS - 2], "I7 broken: when freeze returned, and acknowledged");
            assert_eq!(memtable.len() as u64, acknowledged);
            assert!(memtable.all_versions().all(|version| version.kind == Kind::Value));
        },
    }
}
