//! Point reads: pin the view, then search its sources from new to old. Reads of memory take no lock.

use super::point_read::{PointRead, ViewRead};
use super::quarantine::check_key;
use crate::codec::key_hash;
use crate::db::core::Core;
use crate::epoch::{Pin, pin};
use crate::error::Result;
use crate::table::TableEntry;
use crate::types::{KeyspaceRef, Kind, Millis, Slice, shown_slice};

/// Begins a read of the present moment.
#[inline]
pub(crate) fn read_now<'a, T>(
    core: &'a Core,
    keyspace: Option<&'a KeyspaceRef>,
    read: impl FnOnce(PointRead<'a>) -> Result<T>,
) -> Result<T> {
    core.check_open()?;
    read(PointRead { core, keyspace, snapshot: None })
}

impl PointRead<'_> {
    /// The newest value of `key`.
    #[inline(always)]
    pub(crate) fn get(self, key: &[u8]) -> Result<Option<Slice>> {
        newest(self, key, |value, _| Slice::copy_of(value), |value, _| value)
    }

    /// The newest value of `key`, and the instant at which it expires, if it does.
    pub(crate) fn get_with_expiry(self, key: &[u8]) -> Result<Option<(Slice, Option<Millis>)>> {
        newest(self, key, |value, at| (Slice::copy_of(value), at), |value, at| (value, at))
    }

    /// Like [`get_with_expiry`](Self::get_with_expiry), but no long value is copied.
    pub(crate) fn contains_with_expiry(self, key: &[u8]) -> Result<Option<((), Option<Millis>)>> {
        newest(self, key, |_, at| ((), at), |_, at| ((), at))
    }

    /// Whether the key has a value: like [`get`](Self::get), but no long value is copied.
    pub(crate) fn contains(self, key: &[u8]) -> Result<bool> {
        Ok(newest(self, key, |_, _| (), |_, _| ())?.is_some())
    }
}

/// The newest value, converted by `copy` from a memtable, and by `share` from a table. Both closures also get the instant at which the value expires.
///
/// Sources are searched from new to old and the first one that has the key decides: every version of a key in a source is newer than its versions in
/// later sources (V4 of the version). An error of a table ends the read, which could otherwise return an older version, or a removed one (rule 9).
///
/// The reader is pinned as long as it reads memory. If it must read a file, it takes a count of the view, and continues with the run that it has reached.
#[inline(always)]
fn newest<T>(
    read: PointRead<'_>,
    key: &[u8],
    copy: impl Fn(&[u8], Option<Millis>) -> T,
    share: impl Fn(Slice, Option<Millis>) -> T,
) -> Result<Option<T>> {
    if let Some(view) = read.snapshot.and_then(|snapshot| snapshot.view) {
        return newest_held(read.of(view)?, key, copy, share);
    }
    let pin = pin();
    let view = read.core.view.load(&pin);
    let of_view = read.of(view.get())?;
    let seqno = of_view.seqno;
    read.core.store.counters.gets.add(1);
    if seqno > view.before_active
        && let Some(found) = view.active.get(key, seqno, || of_view.now(), &copy)
    {
        return Ok(found);
    }
    match newest_flushed(of_view, &pin, key, &copy, &share) {
        Searched::Whole(found) => found,
        Searched::UpTo(run) => {
            let view = view.to_arc();
            drop(pin);
            newest_in_runs(read.at(&view, seqno), run, key, &share)
        }
    }
}

/// How far a pinned read could search.
enum Searched<T> {
    Whole(Result<Option<T>>),
    /// Up to the run with this index, for which it needs a file.
    UpTo(usize),
}

/// The rest of [`newest`], after the active memtable: the frozen memtables, then the tables.
#[inline(never)]
fn newest_flushed<T>(
    read: ViewRead<'_>,
    pin: &Pin,
    key: &[u8],
    copy: impl Fn(&[u8], Option<Millis>) -> T,
    share: impl Fn(Slice, Option<Millis>) -> T,
) -> Searched<T> {
    for frozen in &read.view.frozen {
        if let Some(found) = frozen.memtable.get(key, read.seqno, || read.now(), &copy) {
            return Searched::Whole(Ok(found));
        }
    }
    let hash = key_hash(key);
    for (at, run) in read.view.runs.iter().enumerate() {
        let Some(table) = run.find(key).filter(|table| table.min_seqno() <= read.seqno) else { continue };
        match table.get_pinned(pin, key, hash, read.seqno) {
            Some(Ok(None)) => {}
            Some(Ok(Some(found))) => return Searched::Whole(shown(read, key, found, share)),
            Some(Err(error)) => return Searched::Whole(Err(error)),
            None => return Searched::UpTo(at),
        }
    }
    Searched::Whole(check_key(read, key, None).map(|()| None))
}

/// The rest of [`newest_flushed`], from run `at` on, for a reader that is not pinned.
#[cold]
fn newest_in_runs<T>(
    read: ViewRead<'_>,
    at: usize,
    key: &[u8],
    share: impl Fn(Slice, Option<Millis>) -> T,
) -> Result<Option<T>> {
    let hash = key_hash(key);
    for run in read.view.runs.iter().skip(at) {
        let Some(table) = run.find(key).filter(|table| table.min_seqno() <= read.seqno) else { continue };
        if let Some(found) = table.get(key, hash, read.seqno)? {
            return shown(read, key, found, share);
        }
    }
    check_key(read, key, None).map(|()| None)
}

/// The newest value of `key`, for a reader that is not pinned.
pub(super) fn get_held(read: ViewRead<'_>, key: &[u8]) -> Result<Option<Slice>> {
    newest_held(read, key, |value, _| Slice::copy_of(value), |value, _| value)
}

/// Like [`newest`], in a view that the reader holds.
#[cold]
fn newest_held<T>(
    read: ViewRead<'_>,
    key: &[u8],
    copy: impl Fn(&[u8], Option<Millis>) -> T,
    share: impl Fn(Slice, Option<Millis>) -> T,
) -> Result<Option<T>> {
    read.core.store.counters.gets.add(1);
    let frozen = read.view.frozen.iter().map(|frozen| &frozen.memtable);
    let mut memtables = std::iter::once(&read.view.active).chain(frozen);
    let in_memory = memtables.find_map(|memtable| memtable.get(key, read.seqno, || read.now(), &copy));
    in_memory.map_or_else(|| newest_in_runs(read, 0, key, share), Ok)
}

/// The value of an entry of a table, if it has one at the instant of the read.
#[inline(always)]
fn shown<T>(
    read: ViewRead<'_>,
    key: &[u8],
    (kind, found, value): TableEntry,
    share: impl Fn(Slice, Option<Millis>) -> T,
) -> Result<Option<T>> {
    check_key(read, key, Some(found))?;
    Ok(match kind {
        Kind::Value => Some(share(value, None)),
        Kind::Tombstone => None,
        Kind::Expiring => shown_slice(kind, value, || read.now()).map(|(value, at)| share(value, at)),
    })
}
