//! The lending cursor over a memtable. It borrows the memtable or keeps it alive.

use core::fmt;

use super::Memtable;
use super::versions::{Version, Versioned};
use crate::list::schema::NodeRef;
use crate::list::{List, Position};
use crate::node::{Kind, Target};

impl Memtable {
    /// Returns a cursor over all versions that is not yet on any.
    #[must_use]
    pub fn cursor(&self) -> MemtableCursor<&Self> {
        MemtableCursor::new(self)
    }

    /// Returns a cursor over all versions that is not yet on any. It keeps the table alive.
    #[must_use]
    pub fn owned_cursor(&self) -> OwnedCursor {
        MemtableCursor::new(self.clone())
    }
}

/// A cursor over all versions of a memtable: keys ascending, and the versions of a key from newest to oldest.
///
/// A new cursor, and a cursor that has moved past either end, is on no version. From there, only the `seek` methods move it
/// back to a version. The slices that it returns borrow from the cursor. `H` says how the cursor holds the table:
/// [`OwnedCursor`] keeps the table alive, and `MemtableCursor<&Memtable>` borrows it.
///
/// ```
/// use fastskip::{Kind, Memtable};
///
/// let memtable = Memtable::new();
/// memtable.put(b"a", 1, b"x")?;
/// memtable.delete(b"a", 2)?;
/// let mut cursor = memtable.owned_cursor();
/// drop(memtable);
/// assert!(cursor.seek_to_first());
/// assert_eq!((cursor.key(), cursor.seqno(), cursor.kind()), (&b"a"[..], 2, Kind::Tombstone));
/// assert!(cursor.next());
/// assert_eq!((cursor.seqno(), cursor.value()), (1, &b"x"[..]));
/// assert!(!cursor.next());
/// # Ok::<(), fastskip::InsertError>(())
/// ```
#[derive(Clone)]
pub struct MemtableCursor<H> {
    memtable: H,
    position: Position,
}

/// A cursor that keeps its memtable alive. It is `'static` and [`Send`].
pub type OwnedCursor = MemtableCursor<Memtable>;

/// The ways in which a [`MemtableCursor`] can hold its table. This trait is sealed, because the position of a cursor is an
/// offset in one table, so `H` must return the same table at every call.
pub trait Hold: hold::SameTable {}

impl Hold for Memtable {}
impl Hold for &Memtable {}

mod hold {
    use super::Memtable;

    pub trait SameTable {
        #[doc(hidden)]
        fn table(&self) -> &Memtable;
    }

    impl SameTable for Memtable {
        fn table(&self) -> &Memtable {
            self
        }
    }

    impl SameTable for &Memtable {
        fn table(&self) -> &Memtable {
            self
        }
    }
}

impl<H: Hold> MemtableCursor<H> {
    fn new(memtable: H) -> Self {
        Self { memtable, position: Position::new() }
    }

    fn list(&self) -> &List<Versioned> {
        self.memtable.table().list()
    }

    fn move_by(&mut self, step: impl FnOnce(&mut Position, &List<Versioned>)) -> bool {
        step(&mut self.position, self.memtable.table().list());
        self.valid()
    }

    fn node(&self) -> NodeRef<'_, Versioned> {
        self.position.node(self.list()).expect("the cursor is on no version: ask `valid` first")
    }

    /// Whether the cursor is on a version. The methods that move the cursor return the same.
    #[must_use]
    pub fn valid(&self) -> bool {
        self.position.node(self.list()).is_some()
    }

    /// Moves to the first version. O(1).
    pub fn seek_to_first(&mut self) -> bool {
        self.move_by(Position::seek_to_first)
    }

    /// Moves to the last version. Expected O(log n).
    pub fn seek_to_last(&mut self) -> bool {
        self.move_by(Position::seek_to_last)
    }

    /// Moves to the newest version of `key` that is not newer than `seqno`, or to the first version after this position if
    /// there is none. Expected O(log n).
    pub fn seek(&mut self, key: &[u8], seqno: u64) -> bool {
        self.move_by(|position, list| position.seek(list, Target { key, version: seqno }))
    }

    /// Moves to the version `seqno` of `key`, or to the last version before this position if there is none. Expected
    /// O(log n).
    pub fn seek_for_prev(&mut self, key: &[u8], seqno: u64) -> bool {
        self.move_by(|position, list| position.seek_for_prev(list, Target { key, version: seqno }))
    }

    /// Moves to the next version. O(1).
    #[expect(clippy::should_implement_trait, reason = "a lending cursor: what it lends cannot outlive the next step")]
    pub fn next(&mut self) -> bool {
        self.move_by(Position::next)
    }

    /// Moves to the previous version. Amortised O(1).
    pub fn prev(&mut self) -> bool {
        self.move_by(Position::prev)
    }

    /// The key of the current version.
    ///
    /// # Panics
    /// Panics if the cursor is not [`valid`](Self::valid).
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.node().key()
    }

    /// The sequence number of the current version.
    ///
    /// # Panics
    /// Panics if the cursor is not [`valid`](Self::valid).
    #[must_use]
    pub fn seqno(&self) -> u64 {
        self.node().version()
    }

    /// Whether the current version is a put or a delete.
    ///
    /// # Panics
    /// Panics if the cursor is not [`valid`](Self::valid).
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.node().entry().2
    }

    /// The value of the current version; empty for a tombstone.
    ///
    /// # Panics
    /// Panics if the cursor is not [`valid`](Self::valid).
    #[must_use]
    pub fn value(&self) -> &[u8] {
        self.node().entry().1
    }
}

impl<H: Hold> fmt::Debug for MemtableCursor<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.position.node(self.list()).map(Version::of);
        f.debug_struct("MemtableCursor").field("version", &version).finish_non_exhaustive()
    }
}
