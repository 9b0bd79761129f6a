//! Estimates the number and the size of the nodes in a range, for splits and plans of queries.
//!
//! The estimate descends level by level. It reads the blocks of a level that lie in the range; if they have more than [`SAMPLES`] slots in the range, it
//! goes on with this number of slots, evenly spaced, each of which stands for an equal part of all (systematic sampling, as PostgreSQL samples pages).
//! So the error of a level depends on how much its blocks differ, not on the levels above. In the leaves the nodes from each chosen hint to the next one
//! are counted. Short ranges are counted by a walk along the list.

use alloc::vec::Vec;
use core::ops::{Bound, Range};

use super::block::{BlockId, ReadBlock};
use super::descent::{By, Path};
use super::tree::Index;
use crate::bounds::KeyBounds;
use crate::mem::arena::Pending;
use crate::mem::storage::WORD;
use crate::node::{NodeId, Predecessor, Schema, Side, Target};

/// The number of nodes up to which a range is counted.
const COUNTED: usize = 128;

/// The number of slots of a level that are followed.
const SAMPLES: usize = 128;

/// The maximum number of nodes that a sample counts: more only if hints are missing.
const GAP: usize = 64;

/// The number of nodes, and the bytes of their entries.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
}

impl<S: Schema, T: Pending> Index<S, T> {
    /// Estimates the nodes within `bounds`. O(log n).
    pub(crate) fn estimate(&self, bounds: &impl KeyBounds) -> Estimate {
        let first =
            self.first_within(bounds.start_bound(), false).unwrap_or_else(|| self.nodes.after(Predecessor::HEAD));
        let end = self.first_within(bounds.end_bound(), true).flatten();
        let Some(first) = first.filter(|first| end.is_none_or(|end| self.nodes.is_before((*first).into(), end.into())))
        else {
            return Estimate::default();
        };
        let (counted, is_whole) = self.count(first.into(), [end, None], COUNTED);
        if is_whole {
            return counted;
        }
        let edge = |node: NodeId| self.edge(self.nodes.node(node).target());
        let sampled = self.sampled([edge(first), end.and_then(edge)]).unwrap_or_default();
        Estimate { entries: sampled.entries.max(counted.entries), bytes: sampled.bytes.max(counted.bytes) }
    }

    /// The first node at or after a lower bound, or (`is_end`) the first one behind an upper bound; `None` for no bound.
    fn first_within(&self, bound: Bound<&[u8]>, is_end: bool) -> Option<Option<NodeId>> {
        let (key, past) = match bound {
            Bound::Unbounded => return None,
            Bound::Included(key) => (key, is_end),
            Bound::Excluded(key) => (key, !is_end),
        };
        let found = self.lower_bound(Target { key, version: if past { 0 } else { u64::MAX } });
        // The last version of the key may be the target itself.
        let is_last = |id: &NodeId| past && self.nodes.node(*id).version() == 0;
        Some(found.with_key().filter(is_last).map_or(found.first, |last| self.nodes.after(last)))
    }

    /// Counts the nodes from `first` to the first one of `ends`, at most `most`. Returns whether that was all.
    fn count(&self, first: Predecessor, ends: [Option<NodeId>; 2], most: usize) -> (Estimate, bool) {
        let (mut counted, mut at) = (Estimate::default(), first.node().or_else(|| self.nodes.after(first)));
        while let Some(node) = at.filter(|_| !ends.contains(&at)) {
            if counted.entries == most {
                return (counted, false);
            }
            counted.entries += 1;
            counted.bytes += self.nodes.words_in_use(node) as usize * WORD;
            at = self.nodes.after(node);
        }
        (counted, true)
    }

    /// The path to the last hint at or before a target.
    fn edge<'k>(&self, target: Target<'k>) -> Option<(Path, Target<'k>)> {
        Some((self.path_to(target, By::Keys(Side::AtOrBefore), &mut ())?, target))
    }

    /// The slots of a block between the edges of the range. At the upper edge, a leaf's last hint does not count: few nodes follow it.
    fn slots_within(&self, block: ReadBlock<'_>, [lower, upper]: &[Option<(Path, Target<'_>)>; 2]) -> Range<usize> {
        let count = block.header.count();
        let on_edge = |edge: &Option<(Path, Target<'_>)>| {
            let (path, target) = edge.as_ref()?;
            let is_on_path = path.steps().iter().any(|step| step.block == block.id());
            is_on_path.then(|| self.last_slot(block, *target, Side::AtOrBefore, 1..count, &mut ()))
        };
        let is_inner = usize::from(block.header.level() > 0);
        on_edge(lower).unwrap_or(0)..on_edge(upper).map_or(count, |slot| slot + is_inner)
    }

    /// The estimate for the nodes between two edges, by samples.
    fn sampled(&self, edges: [Option<(Path, Target<'_>)>; 2]) -> Option<Estimate> {
        // Blocks of one level, each with the number of blocks for which it stands.
        let mut blocks: Vec<(BlockId, f64)> = vec![(self.root()?, 1.0)];
        loop {
            let parts = blocks.iter().map(|&(id, weight)| (self.read(id), weight));
            let parts: Vec<_> =
                parts.map(|(block, weight)| (block, self.slots_within(block, &edges), weight)).collect();
            let few = parts.iter().map(|(_, slots, _)| slots.len()).sum::<usize>() <= SAMPLES;
            let step = parts.iter().map(|(_, slots, weight)| slots.len() as f64 * weight).sum::<f64>() / SAMPLES as f64;
            let (mut passed, mut chosen) = (0.0, Vec::with_capacity(SAMPLES));
            for (block, slots, weight) in parts {
                for slot in slots {
                    // The number of steps whose middle lies in this slot.
                    let steps = ((passed + weight) / step + 0.5) as u64 - (passed / step + 0.5) as u64;
                    passed += weight;
                    if few || steps > 0 {
                        chosen.push((block, slot, if few { weight } else { steps as f64 * step }));
                    }
                }
            }
            if self.read(blocks.first()?.0).header.level() == 0 {
                return Some(self.sum_of_gaps(chosen));
            }
            blocks = chosen.iter().filter_map(|(block, slot, weight)| Some((block.child(*slot)?, *weight))).collect();
        }
    }

    /// The nodes behind the hints of some slots of leaves, each with the number of hints for which it stands.
    fn sum_of_gaps(&self, slots: Vec<(ReadBlock<'_>, usize, f64)>) -> Estimate {
        let (mut entries, mut bytes) = (0.0, 0.0);
        for (leaf, slot, weight) in slots {
            // A leaf may have hints behind the first one of the next leaf: the nodes there belong to that leaf.
            let end = leaf.next().and_then(|next| self.block(next).hint(0));
            let is_own = |hint: &Predecessor| end.is_none_or(|end| self.nodes.is_before(*hint, end));
            if let Some(hint) = leaf.hint(slot).filter(is_own) {
                let next = if slot + 1 < leaf.header.count() { leaf.hint(slot + 1) } else { end };
                let gap = self.count(hint, [next, end].map(|end| end.and_then(Predecessor::node)), GAP).0;
                entries += weight * gap.entries as f64;
                bytes += weight * gap.bytes as f64;
            }
        }
        Estimate { entries: entries as usize, bytes: bytes as usize }
    }
}
