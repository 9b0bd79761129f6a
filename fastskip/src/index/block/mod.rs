//! A block of the index: a sorted row of partial keys, and a row of the nodes or blocks to which they belong.
//!
//! ```text
//! row 0    header | partial key of slot 0, 1 | 2, 3 | ...      4 bytes a slot, the top bit flipped for signed comparison
//! row 1    bounds | slot 0, 1                | 2, 3 | ...      4 bytes a slot: hints (nodes) in a leaf, else blocks
//! row 2    -      | slot 0, 1                | 2, 3 | ...      4 bytes a slot: its difference from the slot before (`ties.rs`)
//! row 3    -      | slot 0, 1                | 2, 3 | ...      4 bytes a slot: the lower bound of its block
//! header   { slots in use: 8 bits, length of the shared prefix: 8, level: 4, rows: 2, tied: 1, unused: 1,
//!            locked: 1, looks at the taken lock: 3, version: 36 }
//! bounds   { lower bound: a node (or the head) at or before all nodes under the slots, the next block of the level }
//! ```
//!
//! A block has two rows. If partial keys tied when the block was made, a leaf has three rows and any other block four. Row 2 is maintained from the
//! first tie in a block on.
//!
//! Blocks only guide searches. A search verifies every node that it finds through them (`search.rs`). So a right answer depends only on this
//! property:
//!
//! I2 hints: once a block is published, each of its fields is empty or holds
//!
//! * in a slot of a leaf, in row 3, and as a lower bound: the head, or a node that was linked before it was stored there;
//! * in a slot above the leaves: a block of the level below that was completely written before;
//! * as `next`: a block of the same level that was completely written before.
//!
//! Blocks are never freed, moved or used for another level while the table lives. `validate` checks this property, and so do the loom models, in
//! which a word that was never written refers to nothing that exists.
//!
//! Only the holder of a block's lock writes the block's slots. The lock is a bit. Threads try to take the lock and never wait for it: a writer that
//! finds it taken leaves the index unchanged. If the lock stays with the same holder, the block is retired (`replace.rs`).

mod header;
mod locked;
mod shared;

pub(super) use header::{Header, Rows, bias};
pub(super) use locked::{Locked, Relative};
pub(crate) use shared::BlockId;
pub(super) use shared::{BLOCK_WORDS, Block, ReadBlock, SlotContent};
