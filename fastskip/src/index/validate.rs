//! Checks that the index agrees with the list, while no other thread uses them.

use std::collections::HashMap;

use super::block::BlockId;
use super::tree::Index;
use crate::key::PartialKey;
use crate::mem::arena::Pending;
use crate::node::{NodeId, Predecessor};
use crate::nodes::Schema;
use crate::sync::Ordering;

impl<S: Schema, T: Pending> Index<S, T> {
    /// Checks I2 (hints): every slot under the root names a node of the list, or a block of the level below. Also checks the bound of I6 on
    /// replaced blocks. At rest the index is also tidy: no lock is taken, slots are sorted, and partial keys are those of the keys.
    pub(crate) fn validate(&self, nodes: &[NodeId], tidy: bool) {
        let replaced = self.replaced.load(Ordering::Relaxed);
        let most = self.most_replaced();
        assert!(replaced <= most, "I6 broken: {replaced} words of replaced blocks, {most} allowed");
        let places: HashMap<u32, usize> =
            nodes.iter().enumerate().map(|(place, id)| (id.to_stored(), place + 1)).collect();
        let root = self.root().expect("I2 broken: no root");
        self.validate_block(root, self.block(root).load_header().level(), &places, tidy);
    }

    fn validate_block(&self, id: BlockId, level: u32, places: &HashMap<u32, usize>, tidy: bool) {
        let block = self.read(id);
        let header = block.header;
        let place = |at: Predecessor| {
            at.node()
                .map_or(0, |node| *places.get(&node.to_stored()).expect("I2 broken: a hint is no node of the list"))
        };
        assert_eq!(header.level(), level, "I2 broken: a block of another level");
        assert!(header.count() > 0, "I2 broken: an empty block");
        assert!(!tidy || !header.is_locked() || block.is_retired(), "a block stays locked");
        let slots = 0..header.count();
        let separators = slots.map(|slot| block.separator(slot).expect("I2 broken: an empty slot"));
        let separators: Vec<_> = separators.collect();
        assert!(!tidy || place(block.lower()) <= place(separators[0]), "a slot lies before its block");
        assert!(!tidy || separators.is_sorted_by_key(|&separator| place(separator)), "slots are out of order");
        let mut before = None;
        for (slot, separator) in separators.into_iter().enumerate() {
            let key = self.nodes.key_of(Some(separator));
            assert!(!tidy || block.partial(slot) == header.partial_of(key), "a partial key is not that of its key");
            let is_relative = |before| block.relative(slot) == PartialKey::between(before, key);
            let is_right = !header.is_tied() || before.is_none_or(is_relative);
            assert!(!tidy || is_right, "a slot does not differ from the one before as its block says");
            before = Some(key);
            if level > 0 {
                let child = block.child(slot).expect("I2 broken: an empty slot");
                assert!(!tidy || self.block(child).lower() == separator, "a slot does not begin where its block does");
                self.validate_block(child, level - 1, places, tidy);
            }
        }
    }
}
