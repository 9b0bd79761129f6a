//! Iteration over entries: the trait that memtables and tables implement, and the iterators built on it.
//!
//! [`EntryIter`] is one sorted sequence of entries with all their versions, and [`MergeIter`] is the sorted union of several. [`VisibleIter`] shows
//! only the entries that a snapshot sees: the newest visible version of each key, without tombstones and without entries that range tombstones hide
//! ([`Hidden`]).

mod batch;
mod hidden;
mod merge;
mod visible;

use crate::error::Result;
use crate::types::{Kind, MAX_SEQNO, SeqNo, Slice};

pub(crate) use batch::{Batch, Direction, Wanted};
pub(crate) use hidden::{Hidden, RangeSource, RangesInMemory};
pub(crate) use merge::MergeIter;
pub(crate) use visible::VisibleIter;

/// One sorted sequence of entries: keys ascend, and within a key sequence numbers descend.
///
/// An iterator is invalid at first; a seek positions it, or leaves it invalid if there is no such entry. `key`, `seqno`, `kind` and `value` may be
/// called on valid iterators only: otherwise they return empty values or panic. `next` and `prev` do nothing on an invalid iterator. After an error
/// the iterator is invalid.
pub(crate) trait EntryIter: Send {
    fn valid(&self) -> bool;
    fn key(&self) -> &[u8];
    fn seqno(&self) -> SeqNo;
    fn kind(&self) -> Kind;
    /// The value; empty for a tombstone.
    fn value(&self) -> &[u8];
    /// The value, which outlives the iterator: a copy, unless the source can share it.
    fn value_slice(&self) -> Slice {
        Slice::from(self.value())
    }
    fn seek_to_first(&mut self) -> Result<()>;
    fn seek_to_last(&mut self) -> Result<()>;
    /// Moves to the first entry at or after `(key, seqno)`: the newest version of `key` with a number <= `seqno`, or otherwise the first entry of a
    /// later key.
    fn seek(&mut self, key: &[u8], seqno: SeqNo) -> Result<()>;
    /// Moves to the last entry at or before `(key, seqno)`: the oldest version of `key` with a number >= `seqno`, or otherwise the last entry of an
    /// earlier key.
    fn seek_for_prev(&mut self, key: &[u8], seqno: SeqNo) -> Result<()>;
    /// Moves to the first entry of a key after `key`.
    fn seek_past(&mut self, key: &[u8]) -> Result<()> {
        self.seek(key, 0)?;
        while self.valid() && self.key() == key {
            self.next()?;
        }
        Ok(())
    }
    /// Moves to the last entry of a key before `key`.
    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.seek_for_prev(key, MAX_SEQNO)?;
        while self.valid() && self.key() == key {
            self.prev()?;
        }
        Ok(())
    }
    fn next(&mut self) -> Result<()>;
    fn prev(&mut self) -> Result<()>;
    /// Whether `next` moved here from an entry with the same key. The result is undefined after other moves.
    fn repeats(&self) -> bool;
    /// Like `next`. If the entries that follow are `wanted`, may fill `batch` with them, as far as they are in one block, and move to the last of them
    /// (B2); the first of them is never a version of the current key. An invalid iterator is at its end.
    #[inline]
    fn next_batch(&mut self, _batch: &mut Batch, _wanted: &Wanted<'_>) -> Result<Next> {
        self.next()?;
        Ok(Next::entry_of(self))
    }
    /// Fills `batch` with the current entry and those that follow in this direction and are `wanted`, as far as they are in one block. Moves as B2
    /// says. In forward direction the current entry must be the newest version of its key that is to be shown. Returns false, and does not move, if
    /// there are no wanted entries.
    #[inline]
    fn fill(&mut self, _direction: Direction, _batch: &mut Batch, _wanted: &Wanted<'_>) -> bool {
        false
    }
}

/// Where a move of a scan has led.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// To the last entry of a batch.
    Batch,
    /// To the next entry; `repeats` is like [`EntryIter::repeats`].
    Entry { seqno: SeqNo, kind: Kind, repeats: bool },
    /// Past the last entry.
    End,
}

impl Next {
    /// The entry to which `next` has moved the iterator.
    #[inline]
    pub(crate) fn entry_of(iter: &(impl EntryIter + ?Sized)) -> Self {
        match iter.valid() {
            true => Self::Entry { seqno: iter.seqno(), kind: iter.kind(), repeats: iter.repeats() },
            false => Self::End,
        }
    }
}

/// Implements [`EntryIter`] for an enum of iterators: a closed set needs no virtual call for each entry.
macro_rules! impl_entry_iter {
    ($name:ident { $($variant:ident),+ }) => {
        impl $crate::iter::EntryIter for $name {
            $crate::iter::impl_entry_iter!(@calls [$($variant)+]
                fn valid(&self) -> bool;
                fn repeats(&self) -> bool;
                fn key(&self) -> &[u8];
                fn seqno(&self) -> $crate::types::SeqNo;
                fn kind(&self) -> $crate::types::Kind;
                fn value(&self) -> &[u8];
                fn value_slice(&self) -> $crate::types::Slice;
                fn seek_to_first(&mut self) -> $crate::error::Result<()>;
                fn seek_to_last(&mut self) -> $crate::error::Result<()>;
                fn next(&mut self) -> $crate::error::Result<()>;
                fn prev(&mut self) -> $crate::error::Result<()>;
            );

            #[inline]
            fn next_batch(
                &mut self,
                batch: &mut $crate::iter::Batch,
                wanted: &$crate::iter::Wanted<'_>,
            ) -> $crate::error::Result<$crate::iter::Next> {
                match self { $(Self::$variant(inner) => inner.next_batch(batch, wanted)),+ }
            }

            fn fill(
                &mut self,
                direction: $crate::iter::Direction,
                batch: &mut $crate::iter::Batch,
                wanted: &$crate::iter::Wanted<'_>,
            ) -> bool {
                match self { $(Self::$variant(inner) => inner.fill(direction, batch, wanted)),+ }
            }

            fn seek(&mut self, key: &[u8], seqno: $crate::types::SeqNo) -> $crate::error::Result<()> {
                match self { $(Self::$variant(inner) => inner.seek(key, seqno)),+ }
            }

            fn seek_for_prev(&mut self, key: &[u8], seqno: $crate::types::SeqNo) -> $crate::error::Result<()> {
                match self { $(Self::$variant(inner) => inner.seek_for_prev(key, seqno)),+ }
            }
        }
    };
    (@calls $variants:tt $(fn $call:ident($($receiver:tt)+) -> $result:ty;)+) => {
        $($crate::iter::impl_entry_iter!(@call $variants $call ($($receiver)+) $result);)+
    };
    (@call [$($variant:ident)+] $call:ident (&self) $result:ty) => {
        #[inline]
        fn $call(&self) -> $result {
            match self { $(Self::$variant(inner) => inner.$call()),+ }
        }
    };
    (@call [$($variant:ident)+] $call:ident (&mut self) $result:ty) => {
        #[inline]
        fn $call(&mut self) -> $result {
            match self { $(Self::$variant(inner) => inner.$call()),+ }
        }
    };
}

pub(crate) use impl_entry_iter;

/// Forwards all calls to the iterator in a field of type `Option`; if it is `None`, the [`EntryIter`] is invalid.
macro_rules! show_entry_of {
    ($field:ident: $inner:ident) => {
        #[inline]
        fn valid(&self) -> bool {
            self.$field.as_ref().is_some_and($inner::valid)
        }

        #[inline]
        fn key(&self) -> &[u8] {
            self.$field.as_ref().map_or(&[], $inner::key)
        }

        #[inline]
        fn seqno(&self) -> $crate::types::SeqNo {
            self.$field.as_ref().map_or(0, $inner::seqno)
        }

        #[inline]
        fn kind(&self) -> $crate::types::Kind {
            self.$field.as_ref().map_or($crate::types::Kind::Tombstone, $inner::kind)
        }

        #[inline]
        fn value(&self) -> &[u8] {
            self.$field.as_ref().map_or(&[], $inner::value)
        }

        fn value_slice(&self) -> $crate::types::Slice {
            self.$field.as_ref().map_or_else($crate::types::Slice::default, $inner::value_slice)
        }
    };
}

pub(crate) use show_entry_of;

#[cfg(test)]
pub(crate) mod model;
#[cfg(test)]
mod tests;
