//! I6: room that a reservation did not use is allocated again or counted as waste, and never both. The storage checks that pieces do not overlap.

use crate::check::Program;
use crate::models::table::{config, put, through, unhinted};
use crate::{Memtable, Op};

const BATCH: [Op<'_>; 2] = [Op::Put { key: b"k", value: b"v" }, Op::Delete { key: b"l" }];

/// Thread 0 reserves room and drops it, then reserves again and stores; thread 1 stores in the same shard. If the shard's chunk is
/// `nearly_full`, it runs out meanwhile.
pub(super) fn give_back(nearly_full: bool) -> Program<Memtable> {
    let before = if nearly_full { 6 } else { 1 };
    Program::new(move || {
        let memtable: Memtable = unhinted(config(1));
        // A key behind all later ones, so that no search steps over its versions.
        for seqno in 0..before {
            through(0, || memtable.put(b"z", seqno, b"")).expect("the table has room");
        }
        memtable
    })
    .thread(|memtable| {
        drop(memtable.reserve(&BATCH).expect("the table has room"));
        let stored = memtable.reserve(&BATCH).expect("the table has room").apply(1).stored;
        assert_eq!(stored, BATCH.len());
    })
    .thread(|memtable| put(memtable, b"m", b""))
    .at_rest(move |memtable| {
        memtable.validate();
        assert_eq!(memtable.len() as u64, before + 3);
        // If the other thread has allocated in between, the returned room cannot rejoin the chunk and becomes a spare piece.
        assert_eq!(memtable.stats().memory_wasted, 0);
    })
}
