//! [`EntryBounds`]: keys outside of which a keyspace has no entry.
//!
//! Each entry that is popped leaves a tombstone at its end of the order, and each pop would walk over those of all earlier pops. So a pop notes the
//! key that it has found at the end, and the next one begins there.
//!
//! N1 No key of the keyspace before `first` and none after `last` has a value, once all writes that have a number are visible; also later, since time
//! only removes. A pop checks that under the write lock before it notes a key, and a write widens the bounds in the step that assigns its number. A
//! bulk load keeps conditional writes waiting, and resets the bounds.
//! N2 The bounds describe the present. Reads at older numbers do not use them. They are in memory only: an open starts without any.

use std::collections::BTreeMap;
use std::ops::Bound;

use fastskip::{Kind, Op};

use crate::types::{KeyspaceId, OwnedBounds, Slice, split_stored};

/// An end of the order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Edge {
    First,
    Last,
}

/// The known bounds of the entries of each keyspace from which something was popped.
#[derive(Debug, Default)]
pub(crate) struct EntryBounds(BTreeMap<KeyspaceId, Edges>);

impl EntryBounds {
    /// Those of a keyspace.
    pub(crate) fn of(&mut self, keyspace: KeyspaceId) -> &mut Edges {
        self.0.entry(keyspace).or_default()
    }

    /// Forgets those of a keyspace.
    pub(crate) fn forget(&mut self, keyspace: KeyspaceId) {
        self.0.remove(&keyspace);
    }

    /// Widens the bounds to include the keys that `ops` store.
    pub(crate) fn include(&mut self, ops: &[Op<'_>]) {
        if self.0.is_empty() {
            return;
        }
        // A tombstone that has a value is an entry that expires.
        let stores = |op: &&Op<'_>| op.kind() == Kind::Value || !op.value().is_empty();
        for key in ops.iter().filter(stores).map(Op::key) {
            if let Some(edges) = split_stored(key).and_then(|(keyspace, _)| self.0.get_mut(&keyspace)) {
                edges.include(key);
            }
        }
    }
}

/// The known bounds of the stored keys of a keyspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edges {
    first: Option<Slice>,
    last: Option<Slice>,
}

impl Edges {
    /// Notes that nothing lies past the stored key `key` at this end.
    pub(crate) fn set(&mut self, edge: Edge, key: Slice) {
        match edge {
            Edge::First => self.first = Some(key),
            Edge::Last => self.last = Some(key),
        }
    }

    fn include(&mut self, key: &[u8]) {
        if self.first.as_deref().is_some_and(|first| key < first) {
            self.first = Some(Slice::from(key));
        }
        if self.last.as_deref().is_some_and(|last| key > last) {
            self.last = Some(Slice::from(key));
        }
    }

    /// The range in which all entries of the keyspace lie, whose stored keys lie in `all`.
    pub(crate) fn within(&self, all: OwnedBounds) -> OwnedBounds {
        let bound = |key: &Option<Slice>, all| key.clone().map_or(all, Bound::Included);
        (bound(&self.first, all.0), bound(&self.last, all.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::KeyPrefix;

    #[test]
    fn ends_move_out_for_what_is_stored_in_their_keyspace_and_never_in() {
        // Catches an entry that is stored outside, after which pops would not find it; a tombstone or another keyspace's key that widens
        // the bounds, and an entry that expires and does not.
        let mut bounds = EntryBounds::default();
        let put = |key: &'static [u8]| Op::Put { key, value: b"" };
        let included = |key: &[u8]| Bound::Included(Slice::from(key));
        let (all, of_one) = ((Bound::Unbounded, Bound::Unbounded), KeyPrefix::of(1).bounds(&..));
        bounds.include(&[put(b"a")]);
        assert_eq!(bounds.of(0).within(all.clone()), all);
        bounds.of(0).set(Edge::First, Slice::from(&b"m"[..]));
        bounds.of(1).set(Edge::Last, Slice::from(&b"\xff\x01m"[..]));
        bounds.include(&[put(b"x"), Op::Delete { key: b"a" }, put(b"\xff\x02a"), put(b"\xff\x01c")]);
        assert_eq!(bounds.of(0).within(all.clone()), (included(b"m"), Bound::Unbounded));
        bounds.include(&[put(b"n"), put(b"k"), put(b"l"), put(b"\xff\x01p")]);
        bounds.of(0).set(Edge::Last, Slice::from(&b"p"[..]));
        bounds.include(&[put(b"o"), put(b"r"), put(b"q")]);
        assert_eq!(bounds.of(0).within(all.clone()), (included(b"k"), included(b"r")));
        assert_eq!(bounds.of(1).within(of_one.clone()), (of_one.0.clone(), included(b"\xff\x01p")));
        let stored: [&[u8]; 1] = [&[0; 8]];
        bounds.include(&[Op::Tagged { key: b"s", value: &stored, kind: Kind::Tombstone, tag: 0 }]);
        assert_eq!(bounds.of(0).within(all.clone()), (included(b"k"), included(b"s")));
        bounds.forget(1);
        assert_eq!(bounds.of(1).within(of_one.clone()), of_one);
    }
}
