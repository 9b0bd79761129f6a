//! Blocks: their frames and checksums, the entries of data blocks, and the search in them.

pub(super) mod cursor;
pub(super) mod entry;
pub(super) mod frame;
pub(super) mod key_heads;
pub(super) mod lookup;

pub(super) use cursor::{BlockBuilder, Cursor, entry_len_bound};
pub(super) use entry::Decoded;
pub(super) use frame::{Block, BlockLocation, OwnBlock, TRAILER_LEN, is_raw};
pub(super) use key_heads::KeyHeads;
pub(super) use lookup::{Found, lookup};
