//! I6: the counts of a table always match contents that the table had.

use crate::ConcurrentSkipList;
use crate::check::Program;
use crate::models::table::{config, table, through};

/// Thread 0 inserts, thread 1 deletes the key that it finds, thread 2 reads the counts of a list that always holds a live key.
pub(super) fn deleted() -> Program<ConcurrentSkipList> {
    Program::new(|| {
        let list: ConcurrentSkipList = table(config(2));
        through(1, || assert!(list.insert(b"a", b"")));
        list
    })
    .thread(|list| assert!(list.insert(b"b", b"")))
    // "a" is deleted only once "b" is there, so the list always holds a live key.
    .thread(|list| _ = list.contains_key(b"b") && list.delete(b"a"))
    .thread(|list| {
        let stats = list.stats();
        assert!(stats.tombstones < stats.entries && stats.len > 0, "I6 broken: {stats:?}");
    })
    .at_rest(ConcurrentSkipList::validate)
}
