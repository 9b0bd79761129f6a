//! Node ids: offsets that prove that a node was written there; and the links between nodes, each packed into one word.

use core::num::NonZeroU32;

use crate::key::PartialKey;

/// The offset of the head, which consists of a link; word 0 is unused.
const HEAD: u32 = NonZeroU32::MIN.get();
/// The least offset that a node can have.
pub(crate) const FIRST_NODE: u32 = HEAD + 1;

/// A node of one table: its offset in the arena.
///
/// A thread that holds an id may read the node: its bytes and meta words were written before, and remain for the life of the arena (I4, I8). Ids are
/// created only in this folder, in three ways:
///
/// * [`NewNode::write`](super::NewNode::write) returns the id of the node that it wrote;
/// * [`next`](super::next) reads the id from a link, with Acquire;
/// * [`NodeId::from_stored`] restores the id from a word in which it was stored, such as a hint. This function is unsafe: its caller must prove the
///   facts that the other two ways guarantee.
///
/// An id is valid only in its own table, until that table is reset. Ids leave the crate only inside cursors and iterators, which hold their table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeId(NonZeroU32);

impl NodeId {
    /// The id of the node at `off`.
    ///
    /// # Safety
    /// The caller has written a node at `off`, which is not 0.
    #[inline(always)]
    pub(super) unsafe fn of_written(off: u32) -> Self {
        debug_assert!(off > HEAD);
        // SAFETY: not 0, by the caller's promise.
        Self(unsafe { NonZeroU32::new_unchecked(off) })
    }

    /// The id as bits, to be stored in a word of the arena or of a shard, alone or together with other bits. Never 0, so 0 can mean "none".
    #[inline(always)]
    pub(crate) fn to_stored(self) -> u32 {
        self.0.get()
    }

    /// The id whose bits were stored, or `None` for 0.
    ///
    /// # Safety
    /// * `stored` is 0, or the result of [`to_stored`](Self::to_stored) for an id of the table with which the result is used, and that table was not
    ///   reset since.
    /// * All writes of the storing thread before it stored the id happen before this call: the word was stored with Release and loaded with Acquire,
    ///   or a lock or the same thread orders both. After a relaxed load, the node's bytes may not be visible.
    #[inline(always)]
    pub(crate) unsafe fn from_stored(stored: u32) -> Option<Self> {
        NonZeroU32::new(stored).map(Self)
    }
}

/// The start of a link: the head or a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Predecessor(NonZeroU32);

impl Predecessor {
    /// The head, which precedes every key.
    pub(crate) const HEAD: Self = Self(NonZeroU32::MIN);

    /// The number to store: the offset of the predecessor's link. Never 0, so 0 can mean "none".
    #[inline(always)]
    pub(crate) fn to_stored(self) -> u32 {
        self.0.get()
    }

    /// The predecessor that was stored, or `None` for 0.
    ///
    /// # Safety
    /// The same conditions as for [`NodeId::from_stored`].
    #[inline(always)]
    pub(crate) unsafe fn from_stored(stored: u32) -> Option<Self> {
        NonZeroU32::new(stored).map(Self)
    }

    /// The node; `None` for the head.
    #[inline(always)]
    pub(crate) fn node(self) -> Option<NodeId> {
        (self.0.get() != HEAD).then_some(NodeId(self.0))
    }
}

impl From<NodeId> for Predecessor {
    #[inline(always)]
    fn from(node: NodeId) -> Self {
        Self(node.0)
    }
}

/// A link: the successor, and the partial key of the successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) partial: PartialKey,
    /// `None` at the end of a level.
    pub(crate) to: Option<NodeId>,
}

impl Link {
    pub(crate) const END: Self = Self { partial: PartialKey::END, to: None };

    #[inline(always)]
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.partial.0) << 32 | u64::from(self.to.map_or(0, NodeId::to_stored))
    }

    /// # Safety
    /// `word` was made by `pack`; its lower half satisfies the conditions of [`NodeId::from_stored`].
    #[inline(always)]
    pub(super) unsafe fn unpack(word: u64) -> Self {
        // SAFETY: the caller's promise.
        let to = unsafe { NodeId::from_stored(word as u32) };
        Self { partial: PartialKey((word >> 32) as u32), to }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches an id that is restored from a word as another id, and a head that is restored as a node.
    #[test]
    fn ids_come_back_as_stored_and_the_head_is_no_node() {
        // SAFETY: no node is read.
        let restored = |stored| unsafe { NodeId::from_stored(stored) };
        assert_eq!(restored(0), None);
        for stored in [FIRST_NODE, u32::MAX] {
            let id = restored(stored).unwrap();
            assert_eq!((id.to_stored(), Predecessor::from(id).node()), (stored, Some(id)));
        }
        assert_eq!(Predecessor::HEAD.node(), None);
    }

    /// Catches a link that loses bits of either half.
    #[test]
    fn links_come_back_as_packed() {
        // SAFETY: no node is read.
        let last = unsafe { NodeId::from_stored(u32::MAX) };
        for link in [Link::END, Link { partial: PartialKey(0x0102_0304), to: last }] {
            // SAFETY: no node is read.
            assert_eq!(unsafe { Link::unpack(link.pack()) }, link);
        }
    }
}
