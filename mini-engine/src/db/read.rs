//! Point reads: from a pinned view, newest source first, no lock.

use std::sync::Arc;

use super::quarantine::check_key;
use super::read_many;
use super::state::Core;
use super::view::View;
use crate::codec::key_hash;
use crate::error::Result;
use crate::types::{Kind, SeqNo, Slice};

/// The newest value of `key` in `view` that is not newer than `seqno`.
pub(super) fn get(core: &Core, view: &View, key: &[u8], seqno: SeqNo) -> Result<Option<Slice>> {
    newest(core, view, key, seqno, |value| Slice::from(value), |value| value)
}

/// Whether there is one: as [`get`], and no value is copied.
pub(super) fn contains(core: &Core, view: &View, key: &[u8], seqno: SeqNo) -> Result<bool> {
    Ok(newest(core, view, key, seqno, |_| (), |_| ())?.is_some())
}

/// What `copy` makes of the newest value if a memtable has it, and `share` if a table does.
///
/// Sources are asked from new to old and the first that knows the key decides: every version of a key in a source is newer
/// than its versions in the sources after it (V4 of the version). An error of a table ends the read: going on would return
/// an older version, or a removed one (rule 9).
fn newest<T>(
    core: &Core,
    view: &View,
    key: &[u8],
    seqno: SeqNo,
    copy: impl Fn(&[u8]) -> T,
    share: impl Fn(Slice) -> T,
) -> Result<Option<T>> {
    core.store.counters.gets.add(1);
    let frozen = view.frozen.iter().map(|frozen| &frozen.memtable);
    for memtable in std::iter::once(&view.active).chain(frozen) {
        if let Some(found) = memtable.get(key, seqno, &copy) {
            return Ok(found);
        }
    }
    let hash = key_hash(key);
    for run in view.runs.iter() {
        let Some(table) = run.find(key).filter(|table| table.meta().min_seqno <= seqno) else { continue };
        if let Some((kind, found, value)) = table.get(key, hash, seqno)? {
            check_key(core, view, key, Some(found), seqno)?;
            return Ok((kind == Kind::Value).then(|| share(value)));
        }
    }
    check_key(core, view, key, None, seqno)?;
    Ok(None)
}

/// The newest value of `key` as of now.
pub(super) fn get_now(core: &Core, key: &[u8]) -> Result<Option<Slice>> {
    core.check_open()?;
    let (view, seqno) = view_first(|| core.view.load(), || core.visible());
    get(core, &view, key, seqno)
}

/// Whether `key` has a value now.
pub(super) fn contains_now(core: &Core, key: &[u8]) -> Result<bool> {
    core.check_open()?;
    let (view, seqno) = view_first(|| core.view.load(), || core.visible());
    contains(core, &view, key, seqno)
}

/// The newest values of `keys`, all as of now.
pub(super) fn get_many_now<K: AsRef<[u8]>>(core: &Core, keys: &[K]) -> Result<Vec<Option<Slice>>> {
    core.check_open()?;
    let (view, seqno) = view_first(|| core.view.load(), || core.visible());
    read_many::get_many(core, &view, keys, seqno)
}

/// A view, and the sequence number at which it is read: all that a snapshot or an iterator sees. Keeps the directory's
/// lock, the memtables and the open tables alive. Fields drop in this order: the files before the lock.
pub(super) struct Pinned {
    pub(super) view: Arc<View>,
    pub(super) seqno: SeqNo,
    pub(super) core: Arc<Core>,
}

impl std::fmt::Debug for Pinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pinned").field("seqno", &self.seqno).field("core", &self.core).finish_non_exhaustive()
    }
}

impl Pinned {
    /// Pins the database as it is now, as a live snapshot.
    pub(super) fn now(core: &Arc<Core>) -> Result<Arc<Pinned>> {
        core.check_open()?;
        let (view, seqno) = core.snapshots.register(|| consistent(|| core.view.load_full(), || core.visible()));
        Ok(Arc::new(Pinned { view, seqno, core: core.clone() }))
    }

    /// The newest value of `key` that this sees.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Slice>> {
        get(&self.core, &self.view, key, self.seqno)
    }

    /// Whether `key` has a value that this sees.
    pub(super) fn contains(&self, key: &[u8]) -> Result<bool> {
        contains(&self.core, &self.view, key, self.seqno)
    }

    /// The newest values of `keys` that this sees.
    pub(super) fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Slice>>> {
        read_many::get_many(&self.core, &self.view, keys, self.seqno)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.core.snapshots.release(self.seqno);
    }
}

/// Rule 16, for all readers: the view is pinned first, the visible number loaded after. In the other order a merge in
/// between could install a view that has only newer versions than the number, and the key would seem to be gone.
fn view_first<V>(view: impl FnOnce() -> V, visible: impl FnOnce() -> SeqNo) -> (V, SeqNo) {
    let view = view();
    (view, visible())
}

/// A view and a number that belong together: the view holds every write up to the number.
///
/// Between the two a rotation may have taken place, and the number may count writes that went to a memtable the view
/// does not have. They all come after everything in the view, so that the reader would still see one moment of the
/// past, but under a wrong number. If the view is still current when the number is known, all writes up to the number
/// are in it.
fn consistent<V>(view: impl Fn() -> Arc<V>, visible: impl Fn() -> SeqNo) -> (Arc<V>, SeqNo) {
    loop {
        let (pinned, seqno) = view_first(&view, &visible);
        if Arc::ptr_eq(&pinned, &view()) {
            return (pinned, seqno);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn rule_16_the_number_is_never_older_than_what_the_view_can_show() {
        // Catches the two loads exchanged. The world here: a write and a merge after each load, so that the view of
        // time t has versions from t on.
        let time = Cell::new(0);
        let tick = || time.replace(time.get() + 1);
        let (oldest_in_view, seqno) = view_first(tick, tick);
        assert!(seqno >= oldest_in_view, "{seqno} in a view from {oldest_in_view} on");
    }

    #[test]
    fn a_pinned_number_counts_no_write_that_the_pinned_view_does_not_have() {
        // Catches a snapshot whose number says more than it shows, when a rotation comes between the two loads.
        let views = [Arc::new(5), Arc::new(9)];
        let rotated = Cell::new(false);
        let current = || views[usize::from(rotated.get())].clone();
        let (last_in_view, seqno) = consistent(current, || {
            rotated.set(true);
            9
        });
        assert_eq!((*last_in_view, seqno), (9, 9));
    }
}
