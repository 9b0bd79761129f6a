//! Corrupts the index at random, for tests: every answer must stay right, whatever the hints are (I3). Compiled only with the feature `scramble`.
//!
//! Every content that I2 allows may occur: a hint is any node of the list, a child is any block of the level below, a `next` is any block of the same
//! level, and a lower bound is any node. Partial keys, prefixes and the number of used slots are arbitrary.

use alloc::vec::Vec;

use super::block::{BlockId, Locked, Relative, Rows, SlotContent};
use super::tree::Index;
use crate::key::PartialKey;
use crate::node::{Predecessor, Schema};
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
    /// Corrupts about half of the blocks, chosen by `seed`. Other threads may use the list at the same time: every node or block that a slot or a
    /// bound names was linked or written before, and is published as usual.
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
        let prefix = if random.below(2) == 0 { block.header.prefix() } else { random.one_of(&[0, 1, 2, 3, 255]) };
        // A new count, or a few slots more or fewer than before: the old slots still have contents that I2 allows.
        let count = if random.below(2) == 0 { 1 + random.below(SLOTS) } else { block.header.count() };
        let next = if random.below(2) == 0 { block.next() } else { Some(random.one_of(beside)) };
        let lower = if random.below(4) == 0 { random.one_of(nodes) } else { block.lower() };
        let slots = 0..block.header.count();
        let old: Vec<_> = slots.map(|slot| Some((block.partial(slot), block.content(slot)?))).collect();
        block.set_count(0);
        block.set_prefix(prefix);
        if block.header.rows() > Rows::Two && random.below(2) == 0 {
            block.set_tied();
        }
        block.scramble_bounds(lower, next);
        for slot in 0..count {
            let (partial, content) = match old.get(slot).copied().flatten() {
                Some(old) if random.below(2) == 0 => old,
                _ => {
                    let true_of_some =
                        block.header.partial_of(self.nodes.sort_key_of(Some(random.one_of(nodes))).as_ref());
                    let any = random.next() as i32;
                    let partial = random.one_of(&[true_of_some, true_of_some, i32::MIN, i32::MAX, any]);
                    let child = if below.is_empty() { None } else { Some(random.one_of(below)) };
                    let separator = random.one_of(nodes);
                    let hint = SlotContent::Hint(separator);
                    (partial, child.map_or(hint, |child| SlotContent::Child(child, separator)))
                }
            };
            let mut any = || PartialKey(random.next() as u32);
            let relative = block.header.is_tied().then(|| Relative { own: any(), next: None });
            block.insert(slot, partial, content, relative);
        }
    }

    /// The head and every node.
    fn all_places(&self) -> Vec<Predecessor> {
        let mut places = vec![Predecessor::HEAD];
        while let Some(next) = places.last().and_then(|last| self.nodes.after(*last)) {
            places.push(next.into());
        }
        places
    }

    /// The blocks of the tree, each once, leaves first.
    fn blocks_by_level(&self) -> Vec<Vec<BlockId>> {
        let mut levels: Vec<Vec<BlockId>> = self.root().map(|root| vec![root]).into_iter().collect();
        while let Some(above) = levels.last().filter(|above| self.block(above[0]).load_header().level() > 0) {
            let mut level: Vec<BlockId> = Vec::new();
            for block in above.iter().map(|id| self.read(*id)) {
                let children = (0..block.header.count()).filter_map(|slot| block.child(slot));
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
