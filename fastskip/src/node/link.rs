//! Links nodes into the list; the only writer of links.
//!
//! To insert N between A and B: store N's own link to B, then change A's link from B to N by CAS. That CAS is the commit.
//!
//! ```text
//!   A --------> B          A ----> N ----> B        A's CAS fails if anyone linked there meanwhile: then walk on from A,
//!        N ---->                                    which still precedes N, and try again with the same node.
//! ```

use super::id::{Link, NodeId};
use super::read::{self, Schema};
use super::store::Nodes;
use super::walk::Splice;
use super::write::Target;
use crate::key::{self, PartialKey};
use crate::order::Order;
use crate::sync::{Ordering, ord};

impl<S: Schema, T> Nodes<S, T> {
    /// Links the written but unlinked node `id` at `splice`, or at the place where the node belongs by now. `Err` holds the node that already has the
    /// target's key and version; then `id` stays unlinked. Calls `failed` whenever another thread changed the link first.
    #[inline(always)]
    pub(crate) fn commit(
        &self,
        target: Target<'_>,
        splice: &mut Splice,
        id: NodeId,
        mut failed: impl FnMut(),
    ) -> Result<(), NodeId> {
        loop {
            let onward = Link { partial: self.partial_from(target.key, splice), to: splice.next.to };
            // Relaxed: the CAS below publishes it.
            // SAFETY: our own node.
            unsafe { read::link(self.storage(), id) }.store(onward.pack(), Ordering::Relaxed);
            let to_us = Link { partial: PartialKey::of::<S::Order>(target.key, splice.shared), to: Some(id) };
            // ORDERING(link.commit): Release; pairs with `link.next`. Weaker: a reader that follows the link could read bytes, meta words or the link
            // of the new node before they are written (loom `publish`). SAFETY: the head, or a linked node.
            let swung = unsafe { read::link(self.storage(), splice.prev) }.compare_exchange(
                splice.next.pack(),
                to_us.pack(),
                ord("link.commit", Ordering::Release),
                Ordering::Relaxed,
            );
            if swung.is_ok() {
                return Ok(());
            }
            failed();
            self.walk_on(target, splice, &mut ())?;
        }
    }

    /// The partial key of a link from the new node N, whose key is `key`, to the successor B that was found behind A.
    ///
    /// A's own link has the length q of the prefix that B shares with A, and the bytes that follow; the search has the length r of the prefix that N
    /// shares with A. Since A < N < B, q <= r. If q < r, or if N and B differ directly after q bytes, B relates to N as it relates to A: then the old
    /// partial key is also the new one, and B is not read.
    #[inline(always)]
    fn partial_from(&self, key: &[u8], splice: &Splice) -> PartialKey {
        let old = splice.next.partial;
        let Some(next) = splice.next.to.filter(|_| old.shared() >= splice.shared) else { return old };
        if old.more_shared(PartialKey::of::<S::Order>(key, splice.shared)) == 0 {
            return old;
        }
        let (key, next) = (S::Order::sort_key(key), self.node(next).sort_key());
        PartialKey::new(next.as_ref(), key::compare(key.as_ref(), next.as_ref(), splice.shared).1)
    }
}
