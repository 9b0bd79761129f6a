//! Finds where a writer's nodes belong: behind the shard's last one without a search, or else by searching.

use super::height::Gap;
use super::splice::{Splice, Step};
use super::trail::{Footprint, Trail};
use crate::key::{self, PartialKey};
use crate::list::List;
use crate::list::schema::Schema;
use crate::node::{Node, NodeId, Target};

impl<S: Schema> List<S> {
    /// Where `target` belongs, and how many levels it is to be linked at, at most `most`. `Err` is the node that already
    /// stands there. `trail` is the shard's, for who may touch it.
    #[inline]
    pub(in crate::list) fn locate(
        &self,
        trail: Option<&Trail>,
        target: Target<'_>,
        coins: u64,
        most: usize,
        splice: &mut Splice,
    ) -> Result<usize, NodeId> {
        if let Some(height) = self.follow(trail, target, coins, most, splice) {
            return Ok(height);
        }
        self.search(target, splice)?;
        Ok(splice.height(coins, most))
    }

    /// As [`locate`](Self::locate), if the shard's last nodes came in order and the target belongs right behind the last
    /// one. Then what precedes it on each level is known, and O(1) nodes are looked at.
    #[inline]
    fn follow(
        &self,
        trail: Option<&Trail>,
        target: Target<'_>,
        coins: u64,
        most: usize,
        splice: &mut Splice,
    ) -> Option<usize> {
        let trail = trail.filter(|trail| trail.is_followed())?;
        splice.top = 0;
        splice.steps[0] = self.step_behind(target, trail.at(0), 0)?;
        let mut height = 1;
        while height < most.min(self.levels() + 1) {
            let footprint = trail.at(height);
            // SAFETY: the head, or a node that was linked at this level.
            let above = unsafe { Node::new(self.storage(), footprint.node).next(height) };
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
    pub(in crate::list) fn is_next(&self, trail: Option<&Trail>, target: Target<'_>) -> bool {
        let last = trail.and_then(Trail::last);
        last.is_some_and(|last| self.step_behind(target, Footprint { node: last.into(), moves: 0 }, 0).is_some())
    }

    /// The step from a footprint to `target`, if the target precedes what comes next there.
    #[inline]
    fn step_behind(&self, target: Target<'_>, footprint: Footprint, level: usize) -> Option<Step> {
        let shared = if let Some(node) = footprint.node.node() {
            let node = self.node(node);
            let (by_key, shared) = key::compare(node.key(), target.key, 0);
            if by_key.then_with(|| target.version.cmp(&node.version())).is_ge() {
                return None;
            }
            shared
        } else {
            key::compare(&[], target.key, 0).1
        };
        // SAFETY: the head, or a node that was linked at this level.
        let link = unsafe { Node::new(self.storage(), footprint.node).next(level) };
        let precedes = link.to.is_none() || link.partial > PartialKey::of(target.key, shared);
        precedes.then_some(Step { node: footprint.node, shared: shared as u8, moves: footprint.moves, link })
    }
}

impl Trail {
    /// Remembers that `node` was linked with a tower of `height` at `splice`.
    #[inline]
    pub(in crate::list) fn remember(&self, splice: &Splice, node: NodeId, height: usize) {
        let is_behind = self.last().is_some_and(|last| splice.steps[0].node == last.into());
        if is_behind {
            if !self.is_followed() {
                for (level, step) in splice.steps.iter().enumerate() {
                    // Above the splice its steps say what is true there of every target: the head precedes it.
                    self.set(level, Footprint { node: step.node, moves: step.moves });
                }
            }
            for level in 0..height - 1 {
                self.set(level, Footprint { node: node.into(), moves: 0 });
            }
            let moves = splice.steps[height - 1].moves.saturating_add(1);
            self.set(height - 1, Footprint { node: node.into(), moves });
        }
        self.set_last(node, is_behind);
    }
}
