//! [`View`]: the entries that a reader sees. A list shows one for each key; a memtable every version, or the newest of each key.

use crate::nodes::{NodeRef, Schema};

/// How a reader sees the nodes of a list.
pub(crate) trait View<'a>: Copy {
    /// The schema of the nodes.
    type Schema: Schema;
    /// What a node is shown as.
    type Item;

    /// What `node` is shown as; `None` if it is hidden. With [`at`](Self::at), only nodes with a greater version may be hidden.
    fn item(self, node: NodeRef<'a, Self::Schema>) -> Option<Self::Item>;

    /// The version at which each key is shown once: its first node with no greater version. `None` shows a key's nodes one by one.
    fn at(self) -> Option<u64>;
}
