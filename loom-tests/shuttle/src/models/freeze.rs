//! I7: what was acknowledged is in the frozen table, what was refused is not, and nothing comes later.

use super::{config, table};
use crate::schedules::{Program, THREADS};
use crate::{ConcurrentSkipList, InsertError, Kind, Memtable, Op};

/// Threads 0 and 1 insert and thread 2 deletes until they are refused, all through two shards; thread 3 freezes and looks.
pub(super) struct Seal(ConcurrentSkipList);

/// Keys that are there from the start, to be deleted.
const OLD: [[u8; 1]; 3] = [[3], [6], [9]];

impl Seal {
    /// Keys, and whether they are tombstones.
    fn entries(&self) -> Vec<(u8, bool)> {
        self.0.iter().map(|entry| (entry.key[0], entry.is_tombstone)).collect()
    }
}

/// Says whether a write went through; if not, the list must be frozen.
fn accepted(result: Result<(), InsertError>) -> bool {
    result.inspect_err(|refusal| assert_eq!(*refusal, InsertError::Sealed)).is_ok()
}

impl Program for Seal {
    type Seen = Vec<(u8, bool)>;

    fn new() -> Self {
        let list: ConcurrentSkipList = table(config(2));
        OLD.iter().for_each(|key| assert!(list.insert(key, b"")));
        Self(list)
    }

    fn thread(&self, number: usize) -> Self::Seen {
        let Self(list) = self;
        match number {
            0 | 1 => {
                let keys = (0..4).map(|i| i * 3 + 1 + number as u8);
                keys.take_while(|key| accepted(list.try_insert(&[*key], b"v"))).map(|key| (key, false)).collect()
            }
            2 => {
                let keys = OLD.iter().take_while(|key| accepted(list.insert_tombstone(&key[..])));
                keys.map(|key| (key[0], true)).collect()
            }
            _ => {
                list.freeze();
                assert!(list.is_sealed());
                self.entries()
            }
        }
    }

    fn at_rest(&self, mut seen: Vec<Self::Seen>) {
        self.0.validate();
        assert!(!accepted(self.0.try_insert(b"late", b"")));
        let frozen = seen.pop().unwrap_or_default();
        let mut acknowledged = seen.concat();
        let deleted: Vec<_> = acknowledged.iter().filter(|(_, dead)| *dead).map(|(key, _)| *key).collect();
        acknowledged.extend(OLD.iter().map(|key| (key[0], false)).filter(|(key, _)| !deleted.contains(key)));
        acknowledged.sort_unstable();
        assert_eq!(frozen, acknowledged, "I7 broken: in the list when freeze returned, and acknowledged");
        assert_eq!(self.entries(), acknowledged, "I7 broken: in the list later, and acknowledged");
    }
}

/// Threads 0 and 1 reserve batches through one shard and apply them or, every other one, drop them; threads 2 and 3 freeze
/// and look.
pub(super) struct Drain(Memtable);

impl Program for Drain {
    type Seen = u64;

    fn new() -> Self {
        let memtable: Memtable = table(config(1));
        memtable.put(b"z", 0, b"").expect("the table has room");
        Self(memtable)
    }

    fn thread(&self, number: usize) -> u64 {
        let Self(memtable) = self;
        if number >= 2 {
            let frozen = memtable.freeze();
            let count = frozen.all_versions().count();
            assert_eq!(count % 3, 1, "I7 broken: a batch was cut");
            assert_eq!(frozen.put(b"late", 99, b""), Err(InsertError::Sealed));
            return count as u64;
        }
        let mut stored = 0;
        for round in 0..4 {
            let keys = [0, 1, 2].map(|i| [i, number as u8]);
            let ops = keys.each_ref().map(|key| Op::Put { key, value: b"v" });
            match memtable.reserve(&ops) {
                Err(refusal) => {
                    assert_eq!(refusal, InsertError::Sealed);
                    break;
                }
                Ok(dropped) if round % 2 == 1 => drop(dropped),
                Ok(reservation) => stored += reservation.apply(10 * round) as u64,
            }
        }
        stored
    }

    fn at_rest(&self, seen: Vec<u64>) {
        self.0.validate();
        assert!(self.0.is_frozen());
        let acknowledged = 1 + seen[0] + seen[1];
        assert_eq!(
            [seen[2], seen[3]],
            [acknowledged; THREADS - 2],
            "I7 broken: when freeze returned, and acknowledged"
        );
        assert_eq!(self.0.len() as u64, acknowledged);
        assert!(self.0.all_versions().all(|version| version.kind == Kind::Value));
    }
}
