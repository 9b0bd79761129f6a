//! Links between nodes, each packed into a word.

use super::id::NodeId;
use crate::key::PartialKey;

/// A link: the successor, and how its key compares.
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
    /// `word` was packed; its lower half is as [`NodeId::from_stored`] demands.
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
