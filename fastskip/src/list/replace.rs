//! Replaces what a linked node shows, in a table where the last write of a key and version wins (I10, `node/read.rs`).

use super::counts::Totals;
use super::writer::{NodeAlloc, Outcome, Writer};
use crate::error::InsertError;
use crate::node::{Kind, NewNode, Node, NodeId, Record};
use crate::nodes::Schema;

impl<S: Schema> Writer<'_, S> {
    /// Takes the words of a replaceable node, and writes it.
    pub(super) fn write_replaceable(
        &self,
        new: &NewNode<'_>,
        entries: u64,
        alloc: &mut impl NodeAlloc,
    ) -> Result<NodeId, InsertError> {
        let start = alloc.take(1 + new.words(S::META_WORDS), entries)?;
        // SAFETY: the first of the words that were just taken.
        let start = unsafe { Node::write_latest(self.nodes().storage(), start) };
        // SAFETY: the others, taken for this node.
        Ok(unsafe { new.write(self.nodes().storage(), start, S::meta(new.version).as_ref()) })
    }

    /// Lets `by`, which is written and was not linked, show instead of `present`, and gives back the `entries` that were taken for it. Never
    /// waits: one swap.
    pub(super) fn replace_by(&self, present: NodeId, by: NodeId, entries: u64) -> Outcome {
        let nodes = self.nodes();
        // Counted before it shows, and taken back after another one shows instead: so no count is taken back before it was made.
        self.state.counts.stored(parts(nodes.node(by).own_record().0), self.is_alone);
        let before = nodes.node(present).replace(by);
        let holder = before.unwrap_or(present);
        self.state.counts.not_stored(parts(nodes.node(holder).own_record().0), self.is_alone);
        // The node that is linked keeps its place, with its key.
        let kept = if holder == present { nodes.words_of_replaced(present) } else { 0 };
        self.waste(entries, nodes.words_of(holder) - kept);
        Outcome::Replaced(present)
    }
}

/// What statistics count of an entry beside the entry and its key.
fn parts(Record { value, kind, .. }: Record<'_>) -> Totals {
    Totals { entries: 0, ..Totals::entry(0, value.len(), kind == Kind::Tombstone) }
}
