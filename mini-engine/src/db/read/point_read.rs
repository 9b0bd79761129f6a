//! [`PointRead`]: the view, the sequence number and the instant of a read of keys.

use crate::db::core::{Core, View};
use crate::table::TableMeta;
use crate::types::{Millis, SeqNo};

/// A point read: the view that it searches, and the sequence number and the instant at which it does.
#[derive(Clone, Copy)]
pub(crate) struct PointRead<'a> {
    pub(super) core: &'a Core,
    pub(super) view: &'a View,
    pub(super) seqno: SeqNo,
    /// `None` for the instant at which the read meets an entry that expires: most never do.
    pub(super) instant: Option<Millis>,
    /// The tables that reads must not pass.
    pub(super) quarantined: &'a [TableMeta],
}

impl PointRead<'_> {
    /// The instant by which entries have expired.
    pub(super) fn now(self) -> Millis {
        // Read after the view was pinned (K3 of the clock).
        self.instant.unwrap_or_else(|| self.core.clock.now())
    }
}

/// Rule 16, where no number is registered: the view is pinned first, and the visible number is loaded after that. In the other order, a compaction
/// in between could install a view that has only versions newer than the number, and the key would seem to be absent.
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
        // Catches the two loads exchanged. In this test, a write and a compaction happen after each load, so that the view of time t has versions
        // from t on.
        let time = Cell::new(0);
        let tick = || time.replace(time.get() + 1);
        let (oldest_in_view, seqno) = view_first(tick, tick);
        assert!(seqno >= oldest_in_view, "{seqno} in a view from {oldest_in_view} on");
    }
}
