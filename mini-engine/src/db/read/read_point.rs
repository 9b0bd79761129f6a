//! [`ReadPoint`]: what a read sees.

use crate::db::core::{Core, View};
use crate::table::TableMeta;
use crate::types::SeqNo;

/// A view, and the sequence number at which it is read.
#[derive(Clone, Copy)]
pub(crate) struct ReadPoint<'a> {
    pub(super) core: &'a Core,
    pub(super) view: &'a View,
    pub(super) seqno: SeqNo,
    /// The tables that reads must not pass.
    pub(super) quarantined: &'a [TableMeta],
}

/// Rule 16, where no number is registered: the view is pinned first, the visible number loaded after. In the other order a compaction in
/// between could install a view that has only newer versions than the number, and the key would seem to be gone.
pub(super) fn view_first<V>(view: impl FnOnce() -> V, visible: impl FnOnce() -> SeqNo) -> (V, SeqNo) {
    let view = view();
    (view, visible())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn rule_16_the_number_is_never_older_than_what_the_view_can_show() {
        // Catches the two loads exchanged. The world here: a write and a compaction after each load, so that the view of
        // time t has versions from t on.
        let time = Cell::new(0);
        let tick = || time.replace(time.get() + 1);
        let (oldest_in_view, seqno) = view_first(tick, tick);
        assert!(seqno >= oldest_in_view, "{seqno} in a view from {oldest_in_view} on");
    }
}
