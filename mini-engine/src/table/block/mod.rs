//! Blocks: their frames and checksums, the entries of data blocks, and the search in them.

pub(super) mod cursor;
pub(super) mod entry;
pub(super) mod frame;
pub(super) mod key_heads;
pub(super) mod lookup;
