//! I1: walks during concurrent writes keep the order, yield nothing twice, and miss nothing that was there when they began.

use std::collections::BTreeSet;

use super::{config, table};
use crate::Memtable;
use crate::schedules::Program;

/// The keys that a walk yields if it goes forward `ahead` times as often as back; with 0, it goes only back.
fn walk(memtable: &Memtable, ahead: usize) -> BTreeSet<u8> {
    let mut walk = memtable.all_versions().map(|version| version.key[0]);
    let (mut front, mut back) = (Vec::new(), Vec::new());
    loop {
        let next: Vec<_> = walk.by_ref().take(ahead).collect();
        front.extend(&next);
        let last = walk.next_back();
        back.extend(last);
        if last.is_none() {
            break;
        }
    }
    front.extend(back.into_iter().rev());
    assert!(front.is_sorted_by(|a, b| a < b), "I1 broken: {front:?}");
    front.into_iter().collect()
}

/// Threads 0 and 1 store between existing keys, one in order, as a run, and one backward; threads 2 and 3 walk in either direction and from both
/// ends.
pub(super) fn walks() -> Program<Memtable, ()> {
    // The existing keys; the writers store keys between them.
    const OLD: [u8; 12] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120];
    Program {
        new: || {
            let memtable: Memtable = table(config(2));
            OLD.iter().for_each(|key| assert!(memtable.put(&[*key], 1, b"").is_ok()));
            memtable
        },
        thread: |memtable, number| {
            let put = |key: u8| assert!(memtable.put(&[key], 1, b"v").is_ok());
            match number {
                0 => [25, 26, 27, 65, 66, 125].into_iter().for_each(put),
                1 => [115, 95, 85, 64, 24, 5].into_iter().for_each(put),
                _ => {
                    let mut known = BTreeSet::from(OLD);
                    for ahead in [usize::MAX, 0, 1, number] {
                        let now = walk(memtable, ahead);
                        assert!(known.is_subset(&now), "I1 broken: {known:?} was there, then {now:?}");
                        known = now;
                    }
                }
            }
        },
        at_rest: |memtable, _| {
            memtable.validate();
            for ahead in [usize::MAX, 0, 1, 2] {
                assert_eq!(walk(memtable, ahead).len(), OLD.len() + 12);
            }
        },
    }
}
