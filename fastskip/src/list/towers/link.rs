//! Links nodes, bottom up. Nothing else writes links.

use super::finger::Finger;
use super::splice::{Splice, Step};
use crate::key::{self, PartialKey};
use crate::list::List;
use crate::list::schema::Schema;
use crate::list::stats::Counts;
use crate::node::{Link, Node, NodeId, Target};
use crate::sync::{Ordering, ord};

impl<S: Schema> List<S> {
    /// Links the written, unlinked node `id` with a tower of `height` where `splice` says. `Err` is the node that
    /// stands for the target already; then `id` stays unlinked.
    #[inline]
    pub(in crate::list) fn commit(
        &self,
        target: Target<'_>,
        splice: &Splice,
        id: NodeId,
        height: usize,
        counts: &Counts,
    ) -> Result<(), NodeId> {
        self.link(target, splice.steps[0], id, 0, counts)?;
        for (level, step) in splice.steps.iter().enumerate().take(height).skip(1) {
            let raised = self.link(target, *step, id, level, counts);
            assert!(raised.is_ok(), "I1 broken: the target was linked twice");
        }
        if height > self.levels() {
            self.levels.fetch_max(height as u32, Ordering::Relaxed);
        }
        Ok(())
    }

    #[inline(always)]
    fn link(
        &self,
        target: Target<'_>,
        mut step: Step,
        id: NodeId,
        level: usize,
        counts: &Counts,
    ) -> Result<(), NodeId> {
        loop {
            let onward = Link { partial: self.partial_key_from(target.key, step), to: step.link.to };
            // SAFETY: our own node, whose tower is higher than `level`.
            // Relaxed: the CAS below publishes it.
            unsafe { Node::new(self.storage(), id).link(level) }.store(onward.pack(), Ordering::Relaxed);
            let to_us = Link { partial: PartialKey::of(target.key, step.shared()), to: Some(id) };
            // ORDERING(link.commit, link.raise): Release; pairs with `link.next`. Weaker: a reader that follows the link
            // could read bytes, meta words or links of the node before they are written (loom `publish`, `tower`).
            // SAFETY: the head, or reached at this level or above by the search (I2).
            let swung = unsafe { Node::new(self.storage(), step.node).link(level) }.compare_exchange(
                step.link.pack(),
                to_us.pack(),
                match level {
                    0 => ord("link.commit", Ordering::Release),
                    _ => ord("link.raise", Ordering::Release),
                },
                Ordering::Relaxed,
            );
            if swung.is_ok() {
                return Ok(());
            }
            counts.cas_failed();
            step = self.relocate(target, step, level)?;
        }
    }

    /// Somebody linked at `step` first: walks on from there. What precedes the target keeps preceding it.
    #[cold]
    fn relocate(&self, target: Target<'_>, step: Step, level: usize) -> Result<Step, NodeId> {
        let mut finger = Finger::<S>::resume(self.storage(), target, level, step.node, step.shared());
        let stop = finger.walk();
        match stop.link.to {
            Some(present) if stop.found => Err(present),
            _ => Ok(Step::of(&finger, stop.link)),
        }
    }

    /// The partial key of a link from the new node N, with `key`, to the successor B that `step` found behind A.
    ///
    /// A's own link says what B shares with A (q) and goes on with, and the search knows what N shares with A (r). Since
    /// A < N < B, q <= r. Where q < r, or where N and B part right behind q, B relates to N as it does to A, so the old
    /// partial key is the new one and B is not touched.
    #[inline(always)]
    fn partial_key_from(&self, key: &[u8], step: Step) -> PartialKey {
        let old = step.link.partial;
        let Some(next) = step.link.to else { return old };
        if old.shared() < step.shared() {
            return old;
        }
        if old.more_shared(PartialKey::of(key, step.shared())) == 0 {
            return old;
        }
        let next = self.node(next).key();
        PartialKey::of(next, key::compare(key, next, step.shared()).1)
    }
}
