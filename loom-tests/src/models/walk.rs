//! I1: walks that fetch what comes next in advance, beside a writer: they keep the order, yield nothing twice, and miss
//! nothing that was there when they began.

use crate::Memtable;
use crate::check::Program;
use crate::models::table::{config, table, through};

/// Thread 0 stores two keys amid ten others; thread 1 walks over all of them, `FORWARD`, backward or, with `BOTH`, from
/// both ends in turns.
pub(super) struct Walk<const FORWARD: bool, const BOTH: bool>(Memtable);

impl<const FORWARD: bool, const BOTH: bool> Walk<FORWARD, BOTH> {
    fn keys(&self) -> Vec<u8> {
        let mut walk = self.0.all_versions().map(|version| version.key[0]);
        if BOTH {
            let (mut front, mut back) = (Vec::new(), Vec::new());
            while let Some(key) = walk.next() {
                front.push(key);
                back.extend(walk.next_back());
            }
            front.extend(back.into_iter().rev());
            front
        } else if FORWARD {
            walk.collect()
        } else {
            let mut keys: Vec<_> = walk.rev().collect();
            keys.reverse();
            keys
        }
    }
}

impl<const FORWARD: bool, const BOTH: bool> Program for Walk<FORWARD, BOTH> {
    const THREADS: usize = 2;

    fn new() -> Self {
        let memtable: Memtable = table(config(1));
        through(0, || b"acegikmoqs".iter().for_each(|key| memtable.put(&[*key], 1, b"").expect("the table has room")));
        Self(memtable)
    }

    fn thread(&self, number: usize) -> String {
        if number == 0 {
            [b"j", b"n"].into_iter().for_each(|key| self.0.put(key, 1, b"").expect("the table has room"));
            return String::new();
        }
        let keys = self.keys();
        assert!(keys.is_sorted_by(|a, b| a < b), "I1 broken: {}", keys.escape_ascii());
        let (old, new): (Vec<_>, Vec<_>) = keys.into_iter().partition(|key| b"acegikmoqs".contains(key));
        assert_eq!(old, b"acegikmoqs", "a walk misses what was there");
        format!("met {}", new.escape_ascii())
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        assert_eq!(self.keys(), b"acegijkmnoqs");
        String::new()
    }
}

/// Any of the two that are stored meanwhile.
pub(super) const WALK: &[&str] = &["met ", "met j", "met jn", "met n"];
/// The second is passed before the first, so who meets the second meets both.
pub(super) const WALK_BACK: &[&str] = &["met ", "met j", "met jn"];
