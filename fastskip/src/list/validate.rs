//! Checks what must hold of a list whenever no writer is inside.

use super::state::List;
use crate::mem::storage::WORD;
use crate::nodes::Schema;

impl<S: Schema> List<S> {
    /// Panics with the invariant's number if one does not hold: order (1), hints (2), accounting (6), partial key (9).
    /// With `tidy`, what keeps searches quick is checked too; wrong hints may break that, and nothing else.
    pub(crate) fn validate(&self, tidy: bool) {
        let nodes = self.index.nodes.validate();
        let words = |&id| match self.node(id).latest() {
            Some(latest) => self.nodes().words_of_replaced(id) + self.nodes().words_of(latest),
            None => self.nodes().words_of(id),
        };
        let words: u64 = nodes.iter().map(words).map(u64::from).sum();
        let stats = self.stats();
        let used = (stats.memory_usage - stats.memory_wasted - stats.memory_index) / WORD;
        assert_eq!(words, used as u64, "I6 broken: words of nodes, and words used less waste and index");
        assert_eq!(nodes.len(), stats.entries, "I6 broken: nodes linked, and entries counted");
        self.index.validate(&nodes, tidy);
    }
}
