//! [`View`]: the entries that a reader sees. A list shows one for each key; a memtable every version, or the newest of each key.

use crate::nodes::{NodeRef, Schema};

/// The view of a list that a reader has.
pub(crate) trait View<'a>: Copy {
    /// The schema of the nodes.
    type Schema: Schema;
    /// The item that a shown node yields.
    type Item;

    /// What `node` is shown as; `None` if it is hidden. With [`at`](Self::at), only nodes with a greater version may be hidden.
    fn item(self, node: NodeRef<'a, Self::Schema>) -> Option<Self::Item>;

    /// The version at which each key is shown once: its first node with no greater version. `None` shows a key's nodes one by one.
    fn at(self) -> Option<u64>;
}
