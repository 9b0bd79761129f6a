//! Corrupts the index at random, for tests: every answer must stay right, whatever the hints are (I3). Compiled with the feature
//! `scramble` only.
//!
//! Everything that I2 allows may occur: a hint is any node of the list, a child is any block of the level below, a `next` any block of the level, a
//! lower bound any node. Partial keys, prefixes and the number of used slots are arbitrary.

use super::block::{Block, BlockId, Locked, Relative, Rows, SlotContent, bias};
use super::tree::Index;
use crate::key::{PartialKey, four_bytes};
use crate::node::Predecessor;
use crate::nodes::Schema;
use crate::tuning::SLOTS;

/// The generator splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

impl<S: Schema, T> Index<S, T> {
    /// Corrupts about half of the blocks, chosen by `seed`. Other threads may use the list meanwhile: every node or block that a slot or a bound
    /// names was linked or written before, and is published as usual.
    pub(crate) fn scramble_hints(&self, seed: u64) {
        let mut random = Random(seed);
        let nodes: Vec<_> = self.all_places();
        let levels = self.blocks_by_level();
        for (level, blocks) in levels.iter().enumerate() {
            let below = level.checked_sub(1).map_or(&[][..], |below| &levels[below]);
            for id in blocks {
                let chosen = random.below(2) == 0;
                if let Some(block) = chosen.then(|| self.block(*id).try_lock()).flatten() {
                    self.scramble(block, &mut random, &nodes, blocks, below);
                }
            }
        }
    }

    fn scramble(
        &self,
        mut block: Locked<'_>,
        random: &mut Random,
        nodes: &[Predecessor],
        beside: &[BlockId],
        below: &[BlockId],
    ) {
        let prefix = if random.below(2) == 0 { block.prefix() } else { random.one_of(&[0, 1, 2, 3, 255]) };
        // A new count, or a few slots more or less than there were: the old ones still have contents that I2 allows.
        let count = if random.below(2) == 0 { 1 + random.below(SLOTS) } else { block.count() };
        let next = if random.below(2) == 0 { block.block().next() } else { Some(random.one_of(beside)) };
        let lower = if random.below(4) == 0 { random.one_of(nodes) } else { block.block().lower() };
        let old: Vec<_> = (0..block.count()).map(|slot| self.contents(block.block(), slot)).collect();
        block.cut(0);
        block.set_prefix(prefix);
        if block.rows() > Rows::Two && random.below(2) == 0 {
            block.set_tied();
        }
        block.block().scramble_bounds(lower, next);
        for slot in 0..count {
            let (partial, hint, child) = match old.get(slot) {
                Some(old) if random.below(2) == 0 => *old,
                _ => self.false_contents(random, prefix, nodes, below),
            };
            let mut any = || PartialKey(random.next() as u32);
            let relative = block.is_tied().then(|| Relative { own: any(), next: None });
            match child {
                Some(child) => block.insert(slot, partial, SlotContent::Child(child, hint), relative),
                None => block.insert(slot, partial, SlotContent::Hint(hint), relative),
            }
        }
    }

    /// The partial key of a slot, its separator, and its child if it is above the leaves.
    fn contents(&self, block: Block<'_>, slot: usize) -> (i32, Predecessor, Option<BlockId>) {
        let is_leaf = block.header().level() == 0;
        let hint = if is_leaf { block.hint(slot) } else { None };
        let child = if is_leaf { None } else { block.child(slot) };
        let separator = hint.or_else(|| block.separator(block.header(), slot));
        (block.partial(slot), separator.unwrap_or(Predecessor::HEAD), child)
    }

    /// The same, chosen at random.
    fn false_contents(
        &self,
        random: &mut Random,
        prefix: u32,
        nodes: &[Predecessor],
        below: &[BlockId],
    ) -> (i32, Predecessor, Option<BlockId>) {
        let true_of_some = four_bytes(self.nodes.key_of(Some(random.one_of(nodes))), prefix as usize);
        let any = random.next() as u32;
        let partial = random.one_of(&[true_of_some, true_of_some, 0, u32::MAX, any]);
        let child = if below.is_empty() { None } else { Some(random.one_of(below)) };
        (bias(partial), random.one_of(nodes), child)
    }

    /// The head, and every node.
    fn all_places(&self) -> Vec<Predecessor> {
        let mut places = vec![Predecessor::HEAD];
        while let Some(next) = places.last().and_then(|last| self.nodes.after(*last)) {
            places.push(next.into());
        }
        places
    }

    /// The blocks that are in the tree, leaves first, each once.
    fn blocks_by_level(&self) -> Vec<Vec<BlockId>> {
        let mut levels: Vec<Vec<BlockId>> = self.root().map(|root| vec![root]).into_iter().collect();
        while let Some(above) = levels.last().filter(|above| self.block(above[0]).header().level() > 0) {
            let mut level: Vec<BlockId> = Vec::new();
            for block in above.iter().map(|id| self.block(*id)) {
                let children = (0..block.header().count()).filter_map(|slot| block.child(slot));
                children.for_each(|child| {
                    if !level.contains(&child) {
                        level.push(child)
                    }
                });
            }
            levels.push(level);
        }
        levels.reverse();
        levels
    }
}
