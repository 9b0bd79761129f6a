//! Links nodes, bottom up. Nothing else writes links.

use super::Pass;
use super::splice::{Splice, Step};
use crate::key::{self, Piece};
use crate::node::{Link, NIL, Node};
use crate::search::{Finger, Schema, Target};
use crate::sync::{Ordering, ord};

impl<S: Schema> Pass<'_, S> {
    /// Links the written, unlinked node `off` with a tower of `height` where `splice` says. `Err` is the node that
    /// stands for the target already; then `off` stays unlinked.
    #[inline]
    pub(super) fn commit(&self, target: Target<'_>, splice: &Splice, off: u32, height: usize) -> Result<(), u32> {
        self.link(target, splice.steps[0], off, 0)?;
        for (level, step) in splice.steps.iter().enumerate().take(height).skip(1) {
            let raised = self.link(target, *step, off, level);
            assert!(raised.is_ok(), "I1 broken: the target was linked twice");
        }
        let list = self.list();
        if height > list.levels() {
            list.levels.fetch_max(height as u32, Ordering::Relaxed);
        }
        Ok(())
    }

    #[inline(always)]
    fn link(&self, target: Target<'_>, mut step: Step, off: u32, level: usize) -> Result<(), u32> {
        let storage = self.list().storage();
        let node = Node { storage, off };
        loop {
            let onward = Link { piece: self.piece_from(target.key, step), to: step.link.to };
            // SAFETY: our own node, whose tower is higher than `level`.
            // Relaxed: the CAS below publishes it.
            unsafe { node.link(level) }.store(onward.pack(), Ordering::Relaxed);
            let to_us = Link { piece: Piece::of(target.key, step.shared()), to: off };
            let before = Node { storage, off: step.node };
            // ORDERING(link.commit, link.raise): Release; pairs with `link.next`. Weaker: a reader that follows the link
            // could read bytes, meta words or links of the node before they are written (loom `publish`, `tower`).
            // SAFETY: the head, or reached at this level or above by the search (I2).
            let swung = unsafe { before.link(level) }.compare_exchange(
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
            step = self.relocate(target, step, level)?;
        }
    }

    /// Somebody linked at `step` first: walks on from there. What precedes the target keeps preceding it.
    #[cold]
    fn relocate(&self, target: Target<'_>, step: Step, level: usize) -> Result<Step, u32> {
        self.count_cas_failure();
        let mut finger = Finger::<S>::resume(self.list().storage(), target, level, step.node, step.shared());
        let stop = finger.walk();
        if stop.found { Err(stop.link.to) } else { Ok(Step::of(&finger, stop.link)) }
    }

    /// The piece of a link from the new node N, with `key`, to the successor B that `step` found behind A.
    ///
    /// A's own link says what B shares with A (q) and goes on with, and the search knows what N shares with A (r). Since
    /// A < N < B, q <= r. Where q < r, or where N and B part right behind q, B relates to N as it does to A, so the old
    /// piece is the new one and B is not touched.
    #[inline(always)]
    fn piece_from(&self, key: &[u8], step: Step) -> Piece {
        let old = step.link.piece;
        if step.link.to == NIL || old.shared() < step.shared() {
            return old;
        }
        if old.more_shared(Piece::of(key, step.shared())) == 0 {
            return old;
        }
        let next = self.list().node(step.link.to).key();
        Piece::of(next, key::compare(key, next, step.shared()).1)
    }
}
