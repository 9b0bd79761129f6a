//! Operations of a table or of an engine while the clock runs.

use std::error::Error;
use std::path::PathBuf;

use mini_engine::Metrics;

use crate::spec::{Shape, Subject};

/// The bytes of a data block, and the filter's bits for each key, for engines where these can be chosen.
pub(crate) const BLOCK_BYTES: usize = 4096;
pub(crate) const FILTER_BITS: u32 = 10;

/// The result of an operation: each engine has errors of its own.
pub(crate) type Done<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// A key and the value stored under it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    /// Its position in the order of writes, from 0.
    pub(crate) number: u64,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// The settings with which a subject is opened. Subjects do not compress.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) subject: Subject,
    pub(crate) shape: Shape,
    /// The directory of a database. It exists, and is empty if there is no database yet.
    pub(crate) dir: PathBuf,
    /// Whether each write is synced before it is acknowledged. If not, a write is passed to the operating system, or not even that: see the book.
    pub(crate) synced: bool,
}

/// A table or a database that many threads use. Generic, so that the clock sees no calls through a vtable.
///
/// A subject implements the operations of the workloads that `Subject::can` allows; the others are never called.
#[rustfmt::skip]
pub(crate) trait Store: Sync + Sized {
    fn open(settings: &Settings) -> Done<Self>;

    fn put(&self, record: Record<'_>) -> Done;

    /// Stores the records as one write. Engines that have no such write store one by one.
    fn put_batch<'a>(&self, mut records: impl Iterator<Item = Record<'a>>) -> Done { records.try_for_each(|record| self.put(record)) }

    /// Returns the result of `read` for the key's value. `read` gets the value in place if the subject can lend it.
    fn get<R>(&self, _key: &[u8], _read: impl FnOnce(&[u8]) -> R) -> Done<Option<R>> { unable() }

    /// Calls `each` with the value of every stored key of `keys`, in the order of `keys`.
    fn get_many(&self, _keys: &[&[u8]], _each: impl FnMut(&[u8])) -> Done { unable() }

    /// Calls `each` with the first `most` keys that are not below `from`, and their values, in order.
    fn scan(&self, _from: &[u8], _most: usize, _each: impl FnMut(&[u8], &[u8])) -> Done { unable() }

    /// Calls `each` with every key and value, in order. Every subject can do this: its contents are checked with it.
    fn scan_all(&self, each: impl FnMut(&[u8], &[u8])) -> Done {
        // Some engines refuse an empty key; no other is below this one.
        self.scan(&[0], usize::MAX, each)
    }

    /// As [`scan_all`](Self::scan_all), in reverse order.
    fn scan_back(&self, _each: impl FnMut(&[u8], &[u8])) -> Done { unable() }

    /// Deletes the key, which was stored before `seqno`. True if the table reports that the key was stored.
    fn delete(&self, _key: &[u8], _seqno: u64) -> Done<bool> { unable() }

    /// Moves 1 from one account to another, in a transaction that reads and writes both. Returns how often it began.
    fn transfer(&self, _from: &[u8], _to: &[u8]) -> Done<u64> { unable() }

    /// Refuses all further writes, then calls `each` with every key and value in order, as a flush reads them.
    fn freeze_and_scan(&self, _each: impl FnMut(&[u8], &[u8])) -> Done { unable() }

    /// Sorts the records of a subject that stores them unordered.
    fn sort(&self) -> Done { Ok(()) }

    /// Returns when everything is on stable storage, and all memtables, if any, are empty.
    fn flush(&self) -> Done { Ok(()) }

    /// Returns when no compaction is due.
    fn settle(&self) -> Done { Ok(()) }

    /// Ends everything: the directory may be opened again.
    fn close(self) -> Done { Ok(()) }

    /// The memory that a table reports, in bytes, if it reports it: keys, values and all overhead.
    fn memory_used(&self) -> Option<u64> { None }

    /// The number of compare-and-swaps that failed because the link changed after the writer read it, if the table counts them.
    fn cas_failures(&self) -> Option<u64> { None }

    /// Our engine's metrics.
    fn metrics(&self) -> Option<Metrics> { None }
}

/// The amount in an account's value.
pub(crate) fn amount(value: &[u8]) -> i64 {
    value.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes))
}

/// The value of an account after its amount has changed.
pub(crate) fn changed(account: Option<impl AsRef<[u8]>>, by: i64) -> Done<Vec<u8>> {
    let mut value = account.ok_or("expected an account, found none")?.as_ref().to_vec();
    let now = amount(&value).wrapping_add(by);
    *value.first_chunk_mut().ok_or("expected an amount, found a shorter value")? = now.to_le_bytes();
    Ok(value)
}

fn unable() -> ! {
    unreachable!("Subject::can excludes this workload")
}

/// Implements [`Store`] for a wrapper of another type, with a line for each operation. The first argument of a line is the wrapped value,
/// and `?` returns its errors. `insert` and `insert_batch` are the writes of a subject that returns whether it has stored everything.
#[rustfmt::skip]
macro_rules! store {
    ($(#[$doc:meta])* $name:ident($inner:ty);
     open($settings:ident) => $open:expr; $($op:ident($s:ident $(, $arg:ident)*) => $body:expr;)*) => {
        $(#[$doc])*
        pub(crate) struct $name($inner);

        #[allow(unused_mut, clippy::unit_arg)]
        impl Store for $name {
            fn open($settings: &Settings) -> Done<Self> { Ok(Self($open)) }
            $(store!(@$op $s ($($arg),*) $body);)*
        }
    };
    (@put $s:ident ($record:ident) $body:expr) => { fn put(&self, $record: Record<'_>) -> Done { let $s = &self.0; $body; Ok(()) } };
    (@insert $s:ident ($record:ident) $body:expr) => {
        fn put(&self, $record: Record<'_>) -> Done { let $s = &self.0; if $body { Ok(()) } else { Err("it refused a record".into()) } }
    };
    (@put_batch $s:ident ($records:ident) $body:expr) => {
        fn put_batch<'a>(&self, mut $records: impl Iterator<Item = Record<'a>>) -> Done { let $s = &self.0; $body; Ok(()) }
    };
    (@insert_batch $s:ident ($records:ident) $body:expr) => {
        store!(@put_batch $s ($records) if !$body { return Err("it refused a record".into()) });
    };
    (@get $s:ident ($key:ident, $read:ident) $body:expr) => {
        fn get<R>(&self, $key: &[u8], $read: impl FnOnce(&[u8]) -> R) -> Done<Option<R>> { let $s = &self.0; Ok($body) }
    };
    (@get_many $s:ident ($keys:ident, $each:ident) $body:expr) => {
        fn get_many(&self, $keys: &[&[u8]], mut $each: impl FnMut(&[u8])) -> Done { let $s = &self.0; Ok($body) }
    };
    (@scan $s:ident ($from:ident, $most:ident, $each:ident) $body:expr) => {
        fn scan(&self, $from: &[u8], $most: usize, mut $each: impl FnMut(&[u8], &[u8])) -> Done { let $s = &self.0; Ok($body) }
    };
    (@delete $s:ident ($key:ident, $seqno:ident) $body:expr) => {
        fn delete(&self, $key: &[u8], $seqno: u64) -> Done<bool> { let $s = &self.0; Ok($body) }
    };
    (@transfer $s:ident ($from:ident, $to:ident) $body:expr) => {
        fn transfer(&self, $from: &[u8], $to: &[u8]) -> Done<u64> { let $s = &self.0; Ok($body) }
    };
    (@close $s:ident () $body:expr) => { fn close(self) -> Done { let $s = self.0; $body; Ok(()) } };
    (@memory_used $s:ident () $body:expr) => { fn memory_used(&self) -> Option<u64> { let $s = &self.0; Some($body as u64) } };
    (@cas_failures $s:ident () $body:expr) => { fn cas_failures(&self) -> Option<u64> { let $s = &self.0; Some($body as _) } };
    (@metrics $s:ident () $body:expr) => { fn metrics(&self) -> Option<Metrics> { let $s = &self.0; Some($body) } };
    // The operations sort, flush and settle, and reads of everything.
    (@$op:ident $s:ident () $body:expr) => { fn $op(&self) -> Done { let $s = &self.0; $body; Ok(()) } };
    (@$op:ident $s:ident ($each:ident) $body:expr) => {
        fn $op(&self, mut $each: impl FnMut(&[u8], &[u8])) -> Done { let $s = &self.0; Ok($body) }
    };
}
pub(crate) use store;
