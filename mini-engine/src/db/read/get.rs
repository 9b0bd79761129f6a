//! Point reads: pin a view, then search its sources from new to old. Reads take no lock.

use super::point_read::{PointRead, view_first};
use super::quarantine::check_key;
use crate::codec::key_hash;
use crate::db::core::Core;
use crate::error::Result;
use crate::types::{Kind, Millis, Slice, shown_slice};

/// Reads the current view at the number that is visible now.
#[inline]
pub(crate) fn read_now<T>(core: &Core, read: impl FnOnce(PointRead<'_>) -> Result<T>) -> Result<T> {
    core.check_open()?;
    let (view, seqno) = view_first(|| core.view.load(), || core.visible());
    read(PointRead { core, view: &view, seqno, instant: None, quarantined: view.version.quarantined() })
}

impl PointRead<'_> {
    /// The newest value of `key`.
    #[inline(always)]
    pub(crate) fn get(self, key: &[u8]) -> Result<Option<Slice>> {
        newest(self, key, |value, _| Slice::from(value), |value, _| value)
    }

    /// The newest value of `key`, and the instant at which it expires, if it does.
    pub(crate) fn get_with_expiry(self, key: &[u8]) -> Result<Option<(Slice, Option<Millis>)>> {
        newest(self, key, |value, at| (Slice::from(value), at), |value, at| (value, at))
    }

    /// Like [`get_with_expiry`](Self::get_with_expiry), but no value is copied.
    pub(crate) fn contains_with_expiry(self, key: &[u8]) -> Result<Option<((), Option<Millis>)>> {
        newest(self, key, |_, at| ((), at), |_, at| ((), at))
    }

    /// Whether the key has a value: like [`get`](Self::get), but no value is copied.
    pub(crate) fn contains(self, key: &[u8]) -> Result<bool> {
        Ok(newest(self, key, |_, _| (), |_, _| ())?.is_some())
    }
}

/// The newest value, converted by `copy` from a memtable, and by `share` from a table. Both closures also get the instant at which the value expires.
///
/// Sources are searched from new to old and the first one that has the key decides: every version of a key in a source is newer than its versions in
/// later sources (V4 of the version). An error of a table ends the read, which could otherwise return an older version, or a removed one (rule 9).
#[inline(always)]
fn newest<T>(
    read: PointRead<'_>,
    key: &[u8],
    copy: impl Fn(&[u8], Option<Millis>) -> T,
    share: impl Fn(Slice, Option<Millis>) -> T,
) -> Result<Option<T>> {
    let PointRead { core, view, seqno, .. } = read;
    core.store.counters.gets.add(1);
    if seqno > view.before_active
        && let Some(found) = view.active.get(key, seqno, || read.now(), &copy)
    {
        return Ok(found);
    }
    newest_flushed(read, key, copy, share)
}

/// The rest of [`newest`], after the active memtable: the frozen memtables, then the tables.
#[inline(never)]
fn newest_flushed<T>(
    read: PointRead<'_>,
    key: &[u8],
    copy: impl Fn(&[u8], Option<Millis>) -> T,
    share: impl Fn(Slice, Option<Millis>) -> T,
) -> Result<Option<T>> {
    let PointRead { view, seqno, .. } = read;
    for frozen in &view.frozen {
        if let Some(found) = frozen.memtable.get(key, seqno, || read.now(), &copy) {
            return Ok(found);
        }
    }
    let hash = key_hash(key);
    for run in view.runs.iter() {
        let Some(table) = run.find(key).filter(|table| table.min_seqno() <= seqno) else { continue };
        if let Some((kind, found, value)) = table.get(key, hash, seqno)? {
            check_key(read, key, Some(found))?;
            return Ok(match kind {
                Kind::Value => Some(share(value, None)),
                Kind::Tombstone => None,
                Kind::Expiring => shown_slice(kind, value, || read.now()).map(|(value, at)| share(value, at)),
            });
        }
    }
    check_key(read, key, None)?;
    Ok(None)
}
