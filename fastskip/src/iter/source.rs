//! The source of cursors and iterators: the view that one reader has of a table, held by a borrow or by a counted reference.

use core::fmt;

use crate::list::List;
use crate::node::{NodeRef, Schema};
use crate::sync::Arc;

use self::sealed::Sealed;

mod sealed {
    pub trait Sealed {}
}

/// A table that a [`TableCursor`](crate::TableCursor) or a [`TableIter`](crate::TableIter) reads: the core of a
/// [`Memtable`](crate::Memtable), or a [`ConcurrentSkipList`](crate::ConcurrentSkipList). This trait is sealed.
pub trait TableSource: Send + Sync + Sized + 'static {
    /// An entry, borrowed from the table.
    type Item<'a>: Copy + PartialEq + fmt::Debug;

    /// The contents of an entry other than its key and its value.
    #[doc(hidden)]
    type Rest: Copy;

    /// The sequence number or stamp up to which a reader sees entries.
    #[doc(hidden)]
    type Point: Copy;

    /// The schema of the nodes.
    #[doc(hidden)]
    type Schema: Schema;

    /// The list; `None` if nothing was written to the table yet: it then reads like an empty list.
    #[doc(hidden)]
    fn list(&self) -> Option<&List<Self::Schema>>;

    /// The entry that `node` represents at a point; `None` if the node is hidden. If [`version`](Self::version) returns a version, only nodes with a
    /// greater version may be hidden.
    #[doc(hidden)]
    fn show<'a>(&'a self, node: NodeRef<'a, Self::Schema>, at: Self::Point) -> Option<Self::Item<'a>>;

    /// The version at which each key is shown once: by its first node whose version is not greater. If `None`, each node of a key is shown.
    #[doc(hidden)]
    fn version(at: Self::Point) -> Option<u64>;

    /// The key and the value of an entry, and its other contents.
    #[doc(hidden)]
    fn split(item: Self::Item<'_>) -> ([&[u8]; 2], Self::Rest);

    /// The entry with this key, this value and these other contents.
    #[doc(hidden)]
    fn join(bytes: [&[u8]; 2], rest: Self::Rest) -> Self::Item<'_>;
}

/// The way in which a [`TableCursor`](crate::TableCursor) holds its table: `&T` borrows it, `Arc<T>` keeps it alive. This trait is sealed.
pub trait TableHandle<T: TableSource>: Clone + Sealed {
    /// An entry that the cursor lends: for as long as the table is borrowed, or until the cursor moves.
    type Item<'s>: fmt::Debug
    where
        Self: 's;

    /// Lends the entry that `read` finds in the table; every call passes the same table to `read`.
    #[doc(hidden)]
    fn lend(&self, read: impl for<'t> FnOnce(&'t T) -> Option<T::Item<'t>>) -> Option<Self::Item<'_>>;
}

impl<T: TableSource> Sealed for &T {}
impl<T: TableSource> Sealed for Arc<T> {}

impl<'a, T: TableSource> TableHandle<T> for &'a T {
    type Item<'s>
        = T::Item<'a>
    where
        Self: 's;

    #[inline(always)]
    fn lend(&self, read: impl for<'t> FnOnce(&'t T) -> Option<T::Item<'t>>) -> Option<T::Item<'a>> {
        read(*self)
    }
}

impl<T: TableSource> TableHandle<T> for Arc<T> {
    type Item<'s>
        = T::Item<'s>
    where
        Self: 's;

    #[inline(always)]
    fn lend(&self, read: impl for<'t> FnOnce(&'t T) -> Option<T::Item<'t>>) -> Option<T::Item<'_>> {
        read(self)
    }
}
