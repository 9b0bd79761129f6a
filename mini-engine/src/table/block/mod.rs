//! Blocks: their frames and checksums, and the cursor and the search in data blocks.

pub(super) mod cursor;
pub(super) mod frame;
pub(super) mod lookup;

pub(super) use cursor::Cursor;
pub(super) use frame::{Block, BlockLocation, SampledBlock, TRAILER_LEN, is_raw};
pub(super) use lookup::Found;
