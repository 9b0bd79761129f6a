//! [`PointRead`]: the moment of a read of keys, and [`ViewRead`], the same with a view.

use std::sync::Arc;

use crate::db::core::{Core, View};
use crate::epoch::pin;
use crate::error::Result;
use crate::table::TableMeta;
use crate::types::{KeyspaceRef, Millis, SeqNo};

/// A point read: of the present moment, or of a snapshot's.
#[derive(Clone, Copy)]
pub(crate) struct PointRead<'a> {
    pub(super) core: &'a Core,
    /// The keyspace of the keys, unless it cannot be dropped.
    pub(super) keyspace: Option<&'a KeyspaceRef>,
    pub(super) snapshot: Option<PointOfSnapshot<'a>>,
}

/// The moment of a snapshot, and the quarantined tables which its reads must not ignore.
#[derive(Clone, Copy)]
pub(super) struct PointOfSnapshot<'a> {
    pub(super) seqno: SeqNo,
    pub(super) instant: Millis,
    pub(super) quarantined: &'a [TableMeta],
    /// The view of a snapshot whose versions nobody keeps in later views.
    pub(super) view: Option<&'a Arc<View>>,
}

/// A point read of one view.
#[derive(Clone, Copy)]
pub(super) struct ViewRead<'a> {
    pub(super) core: &'a Core,
    pub(super) view: &'a View,
    pub(super) seqno: SeqNo,
    /// The instant of the read; with `None`, the clock is read when an entry that expires is found, which is rare.
    pub(super) instant: Option<Millis>,
    /// The quarantined tables, which reads must not ignore.
    pub(super) quarantined: &'a [TableMeta],
}

impl<'a> PointRead<'a> {
    /// The read in `view`, the present one.
    #[inline]
    pub(super) fn of<'v>(self, view: &'v View) -> Result<ViewRead<'v>>
    where
        'a: 'v,
    {
        // A view without the entries of a dropped keyspace is published after the keyspace is marked.
        self.keyspace.map_or(Ok(()), KeyspaceRef::check)?;
        Ok(self.at(view, self.snapshot.map_or_else(|| self.core.visible().min(view.upto), |snapshot| snapshot.seqno)))
    }

    /// The read in `view` at a number that was visible after the view was loaded.
    #[inline]
    pub(super) fn at<'v>(self, view: &'v View, seqno: SeqNo) -> ViewRead<'v>
    where
        'a: 'v,
    {
        let quarantined = self.snapshot.map_or_else(|| view.version.quarantined(), |snapshot| snapshot.quarantined);
        ViewRead { core: self.core, view, seqno, instant: self.snapshot.map(|snapshot| snapshot.instant), quarantined }
    }
}

impl ViewRead<'_> {
    /// The instant at which expiry is judged.
    pub(super) fn now(self) -> Millis {
        // The clock is read after the view was pinned (K3 of the clock).
        self.instant.unwrap_or_else(|| self.core.clock.now())
    }
}

/// Rule 16, for reads without a registered number: the view is pinned first, and the visible number is loaded after that. In the other order, a
/// compaction in between could install a view that has only versions newer than the number, and the key would seem to be absent.
pub(super) fn view_first<V>(view: impl FnOnce() -> V, visible: impl FnOnce() -> SeqNo) -> (V, SeqNo) {
    let view = view();
    (view, visible())
}

/// The present view and the visible number, for a reader of several keys: the view has all writes up to the number. A number that was loaded after a
/// rotation or an ingest may count writes that an older view lacks, although it has later ones in the memtable that both share. Ends when no rotation
/// and no ingest comes in between.
pub(super) fn view_with_all_writes(core: &Core) -> (Arc<View>, SeqNo) {
    loop {
        let (view, seqno) = view_first(|| core.view.get(), || core.visible());
        if core.view.load(&pin()).has_writes_of(&view) {
            let seqno = seqno.min(view.upto);
            return (view, seqno);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn rule_16_the_number_is_never_older_than_what_the_view_can_show() {
        // Catches the two loads in the wrong order. In this test, a write and a compaction happen after each load, so that the view of time t has
        // only versions from t on.
        let time = Cell::new(0);
        let tick = || time.replace(time.get() + 1);
        let (oldest_in_view, seqno) = view_first(tick, tick);
        assert!(seqno >= oldest_in_view, "{seqno} in a view from {oldest_in_view} on");
    }
}
