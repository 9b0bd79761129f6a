//! I6: room that a reservation did not use is handed out again or counted as waste, and never twice. That pieces do not
//! overlap is watched by the storage.

use crate::check::Program;
use crate::models::table::{config, through, unhinted};
use crate::{Memtable, Op};

const BATCH: [Op<'_>; 2] = [Op::Put { key: b"k", value: b"v" }, Op::Delete { key: b"l" }];

/// Thread 0 reserves room and drops it, then reserves again and stores; thread 1 stores through the same shard. With
/// `NEARLY_FULL`, the shard's chunk ends meanwhile.
pub(super) struct GiveBack<const NEARLY_FULL: bool>(Memtable);

impl<const NEARLY_FULL: bool> GiveBack<NEARLY_FULL> {
    const BEFORE: u64 = if NEARLY_FULL { 6 } else { 1 };
}

impl<const NEARLY_FULL: bool> Program for GiveBack<NEARLY_FULL> {
    const THREADS: usize = 2;

    fn new() -> Self {
        let memtable: Memtable = unhinted(config(1));
        // Behind all that comes, so that no search walks over them.
        for seqno in 0..Self::BEFORE {
            through(0, || memtable.put(b"z", seqno, b"")).expect("the table has room");
        }
        Self(memtable)
    }

    fn thread(&self, number: usize) -> String {
        if number == 1 {
            self.0.put(b"m", 1, b"").expect("the table has room");
            return String::new();
        }
        drop(self.0.reserve(&BATCH).expect("the table has room"));
        let stored = self.0.reserve(&BATCH).expect("the table has room").apply(1);
        assert_eq!(stored, BATCH.len());
        String::new()
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        assert_eq!(self.0.len() as u64, Self::BEFORE + 3);
        match self.0.stats().memory_wasted {
            0 => "nothing wasted",
            _ => "some wasted",
        }
        .to_owned()
    }
}

/// What does not go back to the chunk, because the other thread has taken room in between, is a spare piece.
pub(super) const GIVE_BACK: &[&str] = &["nothing wasted"];
