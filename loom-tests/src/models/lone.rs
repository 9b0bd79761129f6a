//! I1, I6: the data that a lone writer of a shard leaves to the next one: a run that saves searches, and counts that are increased without
//! a read-modify-write. Only the gate orders the accesses of the two writers.

use crate::Memtable;
use crate::check::Program;
use crate::models::table::{MEETINGS, holding, put, settled, store_and_look, through};

/// Two threads store behind the existing keys, then each searches for the other's key. The shard of thread 0 has the last two nodes as a run, so
/// the thread needs no search. Thread 1 writes through the same shard or, with two shards, through another, so that the run of thread 0 lacks
/// the node that thread 1 links.
pub(super) fn run(shards: usize) -> Program<Memtable> {
    Program::new(move || holding(shards, &[b"a", b"c", b"e"]))
        // The second key comes between the run's last node and the first key.
        .threads(2, |memtable, number| store_and_look(memtable, [b"i", b"g"], number))
        .at_rest(|memtable| {
            assert_eq!(settled(memtable), "acegi");
            through(0, || [b"k", b"m"].iter().for_each(|key| put(memtable, *key, b"")));
            assert_eq!(settled(memtable), "acegikm");
        })
        .expects(MEETINGS)
}

/// Two threads store in one shard, one after the other or at once, and search for the other's key.
pub(super) fn counts() -> Program<Memtable> {
    Program::new(|| holding(1, &[b"a"]))
        .threads(2, |memtable, number| store_and_look(memtable, [b"k", b"l"], number))
        .at_rest(|memtable| {
            memtable.validate();
            let stats = memtable.stats();
            assert_eq!((stats.entries, stats.avg_key_size), (3, 1.0), "I6 broken: a count was lost");
        })
        .expects(MEETINGS)
}
