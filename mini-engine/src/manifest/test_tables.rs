//! Table descriptions for the tests of versions, edits and plans.

use std::cell::Cell;

use crate::table::{Expiring, TableMeta};
use crate::types::SeqNo;

/// A table with the sequence numbers `min..=max`.
pub(crate) fn table(number: u64, min: SeqNo, max: SeqNo) -> TableMeta {
    TableMeta {
        number,
        size: 4096,
        entries: 10,
        tombstones: 1,
        smallest: b"a".as_slice().into(),
        largest: b"zz".as_slice().into(),
        min_seqno: min,
        max_seqno: max,
        narrowed: false,
        range_tombstones: 0,
        expiring: Expiring::default(),
    }
}

/// A table with the keys `from..=to`.
pub(crate) fn table_of_keys(number: u64, from: &str, to: &str) -> TableMeta {
    let (smallest, largest) = (from.as_bytes().into(), to.as_bytes().into());
    TableMeta { smallest, largest, ..table(number, number * 10, number * 10 + 9) }
}

thread_local! {
    static LISTED: Cell<usize> = const { Cell::new(0) };
}

/// Counts tables of a run that are handed out to be visited.
pub(crate) fn count_listed(tables: usize) {
    LISTED.set(LISTED.get() + tables);
}

/// Runs `step`, and returns the number of tables that it may have visited on this thread.
pub(crate) fn listed(step: impl FnOnce()) -> usize {
    let before = LISTED.get();
    step();
    LISTED.get() - before
}
