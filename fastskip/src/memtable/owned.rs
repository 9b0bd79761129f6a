//! Versions that keep their memtable alive, and the iterator that yields them.

use core::ops::RangeBounds;

use super::table::Memtable;
use super::version::{Version, Versioned, Visible, shown};
use crate::bounds::KeyBounds;
use crate::iter::Ends;
use crate::iter::owned::{Kept, OwnedBytes, impl_owned_entry, impl_owned_iterator, step};
use crate::list::LazyList;
use crate::node::Kind;
use crate::sync::Arc;

/// Reading what outlives the handle.
impl Memtable {
    /// As [`get_version`](Self::get_version); the version keeps the table alive. Expected O(log n).
    ///
    /// ```
    /// # use fastskip::Memtable;
    /// let memtable = Memtable::new();
    /// memtable.put(b"a", 1, b"x")?;
    /// let version = memtable.get_owned(b"a", 9).unwrap();
    /// drop(memtable);
    /// assert_eq!((version.value(), version.seqno()), (&b"x"[..], 1));
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    #[must_use]
    pub fn get_owned(&self, key: &[u8], seqno: u64) -> Option<OwnedVersion> {
        OwnedVersion::attach(&self.list, |table| Version::find(table, key, seqno))
    }

    /// As [`range`](Self::range); the iterator and what it yields keep the table alive.
    ///
    /// ```
    /// # let memtable = fastskip::Memtable::new();
    /// memtable.put(b"a", 1, b"x")?;
    /// memtable.put(b"b", 2, b"y")?;
    /// let mut versions = memtable.owned_range(b"a"..=b"z", 2);
    /// drop(memtable);
    /// let last = versions.next_back().unwrap();
    /// let first = std::thread::spawn(move || versions.next()).join().unwrap().unwrap();
    /// assert_eq!((first.key(), last.key()), (&b"a"[..], &b"b"[..]));
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    #[must_use]
    pub fn owned_range(&self, bounds: impl KeyBounds, seqno: u64) -> OwnedVersions {
        OwnedVersions::new(self, Some(seqno), Ends::new(bounds))
    }

    /// As [`versions`](Self::versions); the iterator and what it yields keep the table alive.
    #[must_use]
    pub fn owned_versions<K: AsRef<[u8]>>(&self, bounds: impl RangeBounds<(K, u64)>) -> OwnedVersions {
        OwnedVersions::new(self, None, Ends::between(&bounds))
    }

    /// As [`versions_of`](Self::versions_of); the iterator and what it yields keep the table alive.
    #[must_use]
    pub fn owned_versions_of(&self, bounds: impl KeyBounds) -> OwnedVersions {
        OwnedVersions::new(self, None, Ends::new(bounds))
    }

    /// As [`all_versions`](Self::all_versions), as a flush on a thread of its own needs them; the iterator and what it yields keep the
    /// table alive.
    ///
    /// ```
    /// # let memtable = fastskip::Memtable::new();
    /// memtable.put(b"a", 1, b"x")?;
    /// memtable.put(b"a", 2, b"y")?;
    /// let mut versions = memtable.owned_all_versions();
    /// let mut seqnos = Vec::new();
    /// while let Some(version) = versions.next_ref() {
    ///     seqnos.push(version.seqno);
    /// }
    /// assert_eq!(seqnos, [2, 1]);
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    #[must_use]
    pub fn owned_all_versions(&self) -> OwnedVersions {
        self.owned_versions_of(..)
    }
}

/// A [`Version`] that keeps its table alive, by one counted reference. Nothing is copied. Its contents never change, even if the version is replaced later.
///
/// While one lives, the table cannot be [reset](Memtable::reset), and none of its memory is freed; so do not keep one for long.
#[derive(Clone)]
pub struct OwnedVersion {
    kept: Kept<2>,
    seqno: u64,
    kind: Kind,
    tag: u8,
}

impl OwnedVersion {
    #[inline]
    pub(super) fn attach(
        table: &Arc<LazyList<Versioned>>,
        find: impl for<'a> FnOnce(&'a LazyList<Versioned>) -> Option<Version<'a>>,
    ) -> Option<Self> {
        let (kept, (seqno, kind, tag)) = Kept::attach(table, |table| {
            let Version { key, seqno, kind, tag, value } = find(table)?;
            Some(([key, value], (seqno, kind, tag)))
        })?;
        Some(Self { kept, seqno, kind, tag })
    }

    /// The sequence number of the write.
    #[must_use]
    pub fn seqno(&self) -> u64 {
        self.seqno
    }

    /// Whether the write was a put or a delete.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The six bits that belong to the engine; 0 unless the write gave others.
    #[must_use]
    pub fn tag(&self) -> u8 {
        self.tag
    }

    /// The version, borrowed.
    #[must_use]
    pub fn as_version(&self) -> Version<'_> {
        Version { key: self.key(), seqno: self.seqno, kind: self.kind, tag: self.tag, value: self.value() }
    }
}

impl_owned_entry!(OwnedVersion, Version, as_version);

/// A double-ended iterator like [`Versions`](crate::Versions) that keeps its memtable alive. It is `'static` and [`Send`].
///
/// What it yields keeps the table alive too, and so counts a reference. A loop that only looks at each version, as a flush does,
/// borrows it instead: `while let Some(version) = versions.next_ref()`.
#[derive(Clone)]
pub struct OwnedVersions {
    table: Arc<LazyList<Versioned>>,
    at: Visible,
    ends: Option<Ends>,
}

impl OwnedVersions {
    fn new(memtable: &Memtable, at: Option<u64>, ends: Ends) -> Self {
        Self { table: Arc::clone(&memtable.list), at: Visible { at }, ends: Some(ends) }
    }
}

impl_owned_iterator!(OwnedVersions, OwnedVersion, Version, shown);
