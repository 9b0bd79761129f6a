//! I1: walks that fetch the next entries in advance, during writes: they keep the order, yield nothing twice, and miss nothing that was there
//! when they began.

use crate::Memtable;
use crate::check::Program;
use crate::models::table::{holding, put};

const OLD: &[u8] = b"acegikmoqs";

/// Where a walk begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum From {
    Front,
    Back,
    /// From both ends in turns.
    Both,
}

impl From {
    fn keys(self, memtable: &Memtable) -> Vec<u8> {
        let mut walk = memtable.all_versions().map(|version| version.key[0]);
        let (mut front, mut back) = (Vec::new(), Vec::new());
        match self {
            Self::Front => front.extend(walk),
            Self::Back => back.extend(walk.rev()),
            Self::Both => {
                while let Some(key) = walk.next() {
                    front.push(key);
                    back.extend(walk.next_back());
                }
            }
        }
        front.extend(back.into_iter().rev());
        front
    }
}

/// Thread 0 stores two keys amid ten others; thread 1 walks over all of them.
pub(super) fn walk(from: From) -> Program<Memtable> {
    Program::new(|| holding(1, &OLD.chunks(1).collect::<Vec<_>>()))
        .thread(|memtable| [b"j", b"n"].into_iter().for_each(|key| put(memtable, key, b"")))
        .thread(move |memtable| {
            let keys = from.keys(memtable);
            assert!(keys.is_sorted_by(|a, b| a < b), "I1 broken: {}", keys.escape_ascii());
            let (old, new): (Vec<_>, Vec<_>) = keys.into_iter().partition(|key| OLD.contains(key));
            assert_eq!(old, OLD, "a walk misses what was there");
            format!("met {}", new.escape_ascii())
        })
        .at_rest(move |memtable| {
            memtable.validate();
            assert_eq!(from.keys(memtable), b"acegijkmnoqs");
        })
        .expects(match from {
            From::Front => &["met ", "met j", "met jn", "met n"],
            // The walk passes the second key before the first, so a walk that meets the second meets both.
            From::Back | From::Both => &["met ", "met j", "met jn"],
        })
}
