//! The lending cursor over a memtable, borrowing it or keeping it alive.

use core::fmt;

use super::Memtable;
use super::versions::{Version, Versioned};
use crate::list::schema::NodeRef;
use crate::list::{List, Position};
use crate::node::{Kind, Target};

impl Memtable {
    /// A cursor over every version, on none at first.
    #[must_use]
    pub fn cursor(&self) -> MemtableCursor<&Self> {
        MemtableCursor::new(self)
    }

    /// A cursor over every version that keeps the table alive by itself, on none at first.
    #[must_use]
    pub fn owned_cursor(&self) -> OwnedCursor {
        MemtableCursor::new(self.clone())
    }
}

/// A position among all versions of a memtable, keys ascending and of a key the newest first.
///
/// It is on a version or, at first and past either end, on none; from there only a seek or a move to an end leads back.
/// What it lends lives as long as the borrow of the cursor. `H` is how it holds the table: [`OwnedCursor`] keeps it
/// alive, `MemtableCursor<&Memtable>` borrows it.
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

/// A cursor that keeps its memtable alive: `'static` and [`Send`].
pub type OwnedCursor = MemtableCursor<Memtable>;

/// How a [`MemtableCursor`] can hold its table. Sealed: a cursor's position is an offset in one table, so what it holds must
/// be that table at every call.
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

    /// Whether the cursor is on a version. The methods that move it return the same.
    #[must_use]
    pub fn valid(&self) -> bool {
        self.position.node(self.list()).is_some()
    }

    /// Goes to the first version. O(1).
    pub fn seek_to_first(&mut self) -> bool {
        self.move_by(Position::seek_to_first)
    }

    /// Goes to the last version. Expected O(log n).
    pub fn seek_to_last(&mut self) -> bool {
        self.move_by(Position::seek_to_last)
    }

    /// Goes to the newest version of `key` not newer than `seqno`, or else the first version behind it. Expected O(log n).
    pub fn seek(&mut self, key: &[u8], seqno: u64) -> bool {
        self.move_by(|position, list| position.seek(list, Target { key, version: seqno }))
    }

    /// Goes to the version `seqno` of `key`, or else the last version before it. Expected O(log n).
    pub fn seek_for_prev(&mut self, key: &[u8], seqno: u64) -> bool {
        self.move_by(|position, list| position.seek_for_prev(list, Target { key, version: seqno }))
    }

    /// Goes one version on. O(1).
    #[expect(clippy::should_implement_trait, reason = "a lending cursor: what it lends cannot outlive the next step")]
    pub fn next(&mut self) -> bool {
        self.move_by(Position::next)
    }

    /// Goes one version back. Amortised O(1).
    pub fn prev(&mut self) -> bool {
        self.move_by(Position::prev)
    }

    /// The key.
    ///
    /// # Panics
    /// If the cursor is not [`valid`](Self::valid), as all that follow.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.node().key()
    }

    /// The sequence number.
    #[must_use]
    pub fn seqno(&self) -> u64 {
        self.node().version()
    }

    /// Whether it is a put or a delete.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.node().entry().2
    }

    /// The value; empty for a tombstone.
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
