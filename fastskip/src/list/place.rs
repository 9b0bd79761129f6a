//! Finds where a writer's nodes belong: behind the shard's last one without a search, or else by searching.

use super::Pass;
use super::splice::{Splice, Step};
use crate::height::Gap;
use crate::key::{self, Piece};
use crate::node::{HEAD, NIL, Node};
use crate::search::{Schema, Target};
use crate::trail::{Footprint, Trail};

impl<S: Schema> Pass<'_, S> {
    /// Where `target` belongs, and how many levels it is to be linked at, at most `most`. `Err` is the node that already
    /// stands there.
    #[inline]
    pub(super) fn locate(
        &self,
        target: Target<'_>,
        coins: u64,
        most: usize,
        splice: &mut Splice,
    ) -> Result<usize, u32> {
        if let Some(height) = self.follow(target, coins, most, splice) {
            return Ok(height);
        }
        self.list().locate(target, splice)?;
        Ok(splice.height(coins, most))
    }

    /// As [`locate`](Self::locate), if the shard's last nodes came in order and the target belongs right behind the last
    /// one. Then what precedes it on each level is known, and O(1) nodes are looked at.
    #[inline]
    fn follow(&self, target: Target<'_>, coins: u64, most: usize, splice: &mut Splice) -> Option<usize> {
        let trail = self.trail().filter(|trail| trail.is_followed())?;
        splice.top = 0;
        splice.steps[0] = self.step_behind(target, trail.at(0), 0)?;
        let mut height = 1;
        while height < most.min(self.list().levels() + 1) {
            let footprint = trail.at(height);
            // SAFETY: the head, or a node that was linked at this level.
            let above = unsafe { Node { storage: self.list().storage(), off: footprint.node }.next(height) };
            let below = &splice.steps[height - 1];
            let gap = Gap { left: below.moves.into(), right: below.link.to != above.to };
            if !gap.is_split(coins >> height & 1 == 1) {
                break;
            }
            let Some(step) = self.step_behind(target, footprint, height) else { break };
            splice.steps[height] = step;
            splice.top = height;
            height += 1;
        }
        Some(height)
    }

    /// Whether `target` belongs right behind the shard's last node, as far as a look at that node shows.
    pub(super) fn is_next(&self, target: Target<'_>) -> bool {
        let last = self.trail().map_or(NIL, Trail::last);
        last != NIL && self.step_behind(target, Footprint { node: last, moves: 0 }, 0).is_some()
    }

    /// The step from a footprint to `target`, if the target precedes what comes next there.
    #[inline]
    fn step_behind(&self, target: Target<'_>, footprint: Footprint, level: usize) -> Option<Step> {
        let list = self.list();
        let shared = if footprint.node == HEAD {
            key::compare(&[], target.key, 0).1
        } else {
            let node = list.node(footprint.node);
            let (by_key, shared) = key::compare(node.key(), target.key, 0);
            if by_key.then_with(|| target.version.cmp(&node.version())).is_ge() {
                return None;
            }
            shared
        };
        // SAFETY: the head, or a node that was linked at this level.
        let link = unsafe { Node { storage: list.storage(), off: footprint.node }.next(level) };
        let precedes = link.to == NIL || link.piece > Piece::of(target.key, shared);
        precedes.then_some(Step { node: footprint.node, shared: shared as u8, moves: footprint.moves, link })
    }

    /// Remembers that `off` was linked with a tower of `height` at `splice`.
    #[inline]
    pub(super) fn remember(&self, splice: &Splice, off: u32, height: usize) {
        let Some(trail) = self.trail() else { return };
        let is_behind = splice.steps[0].node == trail.last();
        if is_behind {
            if !trail.is_followed() {
                for (level, step) in splice.steps.iter().enumerate() {
                    // Above the splice its steps say what is true there of every target: the head precedes it.
                    trail.set(level, Footprint { node: step.node, moves: step.moves });
                }
            }
            for level in 0..height - 1 {
                trail.set(level, Footprint { node: off, moves: 0 });
            }
            let moves = splice.steps[height - 1].moves.saturating_add(1);
            trail.set(height - 1, Footprint { node: off, moves });
        }
        trail.set_last(off, is_behind);
    }
}
