//! Point reads: pin a view, then ask its sources from new to old. No lock is taken.

use super::quarantine::check_key;
use crate::codec::key_hash;
use crate::db::core::{Core, View};
use crate::error::Result;
use crate::types::{Kind, SeqNo, Slice};

/// The newest value of `key` in `view` that is not newer than `seqno`.
pub(crate) fn get(core: &Core, view: &View, key: &[u8], seqno: SeqNo) -> Result<Option<Slice>> {
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
pub(crate) fn get_now(core: &Core, key: &[u8]) -> Result<Option<Slice>> {
    core.check_open()?;
    let (view, seqno) = view_first(|| core.view.load(), || core.visible());
    get(core, &view, key, seqno)
}

/// Whether `key` has a value now.
pub(crate) fn contains_now(core: &Core, key: &[u8]) -> Result<bool> {
    core.check_open()?;
    let (view, seqno) = view_first(|| core.view.load(), || core.visible());
    contains(core, &view, key, seqno)
}

/// Rule 16, for all readers: the view is pinned first, the visible number loaded after. In the other order a merge in
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
        // Catches the two loads exchanged. The world here: a write and a merge after each load, so that the view of
        // time t has versions from t on.
        let time = Cell::new(0);
        let tick = || time.replace(time.get() + 1);
        let (oldest_in_view, seqno) = view_first(tick, tick);
        assert!(seqno >= oldest_in_view, "{seqno} in a view from {oldest_in_view} on");
    }
}
