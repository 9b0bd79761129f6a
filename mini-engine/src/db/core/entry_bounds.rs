//! [`EntryBounds`]: keys outside of which there is no entry.
//!
//! Each entry that is popped leaves a tombstone at its end of the order, and each pop would walk over those of all earlier pops. So a pop notes the
//! key that it has found at the end, and the next one begins there.
//!
//! N1 No key before `first` and none after `last` has a value, once all writes that have a number are visible. A pop checks that under the write
//! lock before it notes a key, and a write widens the bounds in the step that assigns its number. A bulk load keeps conditional writes waiting, and
//! resets the bounds.
//! N2 The bounds describe the present. Reads at older numbers do not use them. They are in memory only: an open starts without any.

use std::ops::Bound;

use fastskip::{Kind, Op};

use crate::types::Slice;

/// An end of the order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Edge {
    First,
    Last,
}

/// The known bounds of the keys of all entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryBounds {
    first: Option<Slice>,
    last: Option<Slice>,
}

impl EntryBounds {
    /// Notes that nothing lies past `key` at this end.
    pub(crate) fn set(&mut self, edge: Edge, key: Slice) {
        match edge {
            Edge::First => self.first = Some(key),
            Edge::Last => self.last = Some(key),
        }
    }

    /// Widens the bounds to include the keys that `ops` store.
    pub(crate) fn include(&mut self, ops: &[Op<'_>]) {
        if self.first.is_none() && self.last.is_none() {
            return;
        }
        for key in ops.iter().filter(|op| op.kind() == Kind::Value).map(Op::key) {
            if self.first.as_deref().is_some_and(|first| key < first) {
                self.first = Some(Slice::from(key));
            }
            if self.last.as_deref().is_some_and(|last| key > last) {
                self.last = Some(Slice::from(key));
            }
        }
    }

    /// The range in which all entries lie.
    pub(crate) fn as_range(&self) -> (Bound<Slice>, Bound<Slice>) {
        let bound = |key: &Option<Slice>| key.clone().map_or(Bound::Unbounded, Bound::Included);
        (bound(&self.first), bound(&self.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_move_out_for_what_is_stored_and_never_in() {
        // Catches an entry that is stored outside, after which pops would not find it; and a tombstone that widens the bounds.
        let mut bounds = EntryBounds::default();
        let put = |key: &'static str| Op::Put { key: key.as_bytes(), value: b"" };
        let included = |key: &str| Bound::Included(Slice::from(key.as_bytes()));
        bounds.include(&[put("a")]);
        assert_eq!(bounds.as_range(), (Bound::Unbounded, Bound::Unbounded));
        bounds.set(Edge::First, Slice::from(&b"m"[..]));
        bounds.include(&[put("x"), Op::Delete { key: b"a" }]);
        assert_eq!(bounds.as_range(), (included("m"), Bound::Unbounded));
        bounds.include(&[put("n"), put("k"), put("l")]);
        bounds.set(Edge::Last, Slice::from(&b"p"[..]));
        bounds.include(&[put("o"), put("r"), put("q")]);
        assert_eq!(bounds.as_range(), (included("k"), included("r")));
    }
}
