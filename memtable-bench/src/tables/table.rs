//! What a table does while the clock runs.

use crate::spec::Shape;

/// Operations of a batch.
const BATCH: usize = 256;

/// What is stored under a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    /// Its position in the order of inserts, from 0.
    pub(crate) number: u64,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// A table that many threads use. The trait is generic, so that the clock sees the table and no calls through a vtable.
///
/// A table implements the operations of the workloads that `Subject::can` allows it; the others are never called.
#[rustfmt::skip]
pub(crate) trait Table: Sync + Sized {
    /// An empty table for rounds of this shape.
    fn new(shape: &Shape) -> Self;

    /// Stores the records; returns how many the table says it took.
    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize;

    /// Calls `each` with every key and value, in order. Each table can do this: its contents are checked with it.
    fn scan(&self, each: impl FnMut(&[u8], &[u8]));

    /// What `read` makes of the key's value, which it sees in place: a table that lends need not copy.
    fn get<R>(&self, _key: &[u8], _read: impl FnOnce(&[u8]) -> R) -> Option<R> { unable() }

    /// Calls `each` with the value of every key that is there, in the order of the keys.
    fn get_many<'k>(&self, _keys: impl Iterator<Item = &'k [u8]>, _each: impl FnMut(&[u8])) { unable() }

    /// Calls `each` with the first `most` keys that are not below `from`, and their values, in order.
    fn seek(&self, _from: &[u8], _most: usize, _each: impl FnMut(&[u8], &[u8])) { unable() }

    /// Calls `each` with every key and value, the last one first.
    fn scan_back(&self, _each: impl FnMut(&[u8], &[u8])) { unable() }

    /// Deletes the key, which was stored before `seqno`. True if the table says that the key was there.
    fn delete(&self, _key: &[u8], _seqno: u64) -> bool { unable() }

    /// Refuses all further writes, then calls `each` with every key and value in order, as a flush reads them.
    fn freeze_and_scan(&self, _each: impl FnMut(&[u8], &[u8])) { unable() }

    /// Puts into order what was stored without.
    fn sort(&self) { unable() }

    /// The bytes it uses by its own account, if it keeps one: keys, values and all that comes with them.
    fn memory_used(&self) -> Option<u64> { None }

    /// How often a compare-and-swap found its link changed since the writer read it, if the table counts that.
    fn cas_failures(&self) -> Option<u64> { None }
}

fn unable() -> ! {
    unreachable!("Subject::can excludes this workload")
}

/// Calls `each` with the items in batches.
pub(super) fn in_batches<T>(mut items: impl Iterator<Item = T>, each: impl FnMut(Vec<T>)) {
    let batches = std::iter::repeat_with(|| items.by_ref().take(BATCH).collect());
    batches.take_while(|batch: &Vec<T>| !batch.is_empty()).for_each(each);
}

/// A [`Table`] around another type: a line for each operation. The first name is that of the wrapped table; `insert` is said for
/// one record and tells whether the table took it, `insert_all` for all of them.
#[rustfmt::skip]
macro_rules! table {
    ($(#[$doc:meta])* $name:ident $(<const $n:ident: $of:ty>)? ($inner:ty);
     new($shape:ident) => $new:expr; $($op:ident($t:ident $(, $arg:ident)*) => $body:expr;)*) => {
        $(#[$doc])*
        pub(crate) struct $name $(<const $n: $of>)? ($inner);

        #[allow(unused_mut)]
        impl $(<const $n: $of>)? Table for $name $(<$n>)? {
            fn new($shape: &Shape) -> Self { Self($new) }
            $(table!(@$op $t ($($arg),*) $body);)*
        }
    };
    (@insert $t:ident ($record:ident) $body:expr) => { table!(@insert_all $t (records) records.filter(|$record| $body).count()); };
    (@insert_all $t:ident ($records:ident) $body:expr) => {
        fn insert<'a>(&self, mut $records: impl Iterator<Item = Record<'a>>) -> usize { let $t = &self.0; $body }
    };
    (@scan $t:ident ($each:ident) $body:expr) => { fn scan(&self, mut $each: impl FnMut(&[u8], &[u8])) { let $t = &self.0; $body } };
    (@get $t:ident ($key:ident, $read:ident) $body:expr) => {
        fn get<R>(&self, $key: &[u8], $read: impl FnOnce(&[u8]) -> R) -> Option<R> { let $t = &self.0; $body }
    };
    (@get_many $t:ident ($keys:ident, $each:ident) $body:expr) => {
        fn get_many<'k>(&self, $keys: impl Iterator<Item = &'k [u8]>, mut $each: impl FnMut(&[u8])) { let $t = &self.0; $body }
    };
    (@seek $t:ident ($from:ident, $most:ident, $each:ident) $body:expr) => {
        fn seek(&self, $from: &[u8], $most: usize, mut $each: impl FnMut(&[u8], &[u8])) { let $t = &self.0; $body }
    };
    (@scan_back $t:ident ($each:ident) $body:expr) => {
        fn scan_back(&self, mut $each: impl FnMut(&[u8], &[u8])) { let $t = &self.0; $body }
    };
    (@delete $t:ident ($key:ident, $seqno:ident) $body:expr) => {
        fn delete(&self, $key: &[u8], $seqno: u64) -> bool { let $t = &self.0; $body }
    };
    (@freeze_and_scan $t:ident ($each:ident) $body:expr) => {
        fn freeze_and_scan(&self, mut $each: impl FnMut(&[u8], &[u8])) { let $t = &self.0; $body }
    };
    (@sort $t:ident () $body:expr) => { fn sort(&self) { let $t = &self.0; $body } };
    (@memory_used $t:ident () $body:expr) => { fn memory_used(&self) -> Option<u64> { let $t = &self.0; Some($body as u64) } };
    (@cas_failures $t:ident () $body:expr) => { fn cas_failures(&self) -> Option<u64> { let $t = &self.0; Some($body as u64) } };
}
pub(crate) use table;
