//! The contents of a data block: its entries in columns, so that each entry is found by its index and read without those before it.
//!
//! ```text
//! block    values, keys, tags, value offsets, key offsets, footer
//! keys     for each bundle: the prefix that its keys share, then the rest of each key
//! tags     for each entry: seqno * 2 + kind, less the smallest of the block; 0 to 8 bytes each
//! offsets  u16 or u32 each: the start of each value, or part of a key, in its column; then the end of the column
//! footer   number of entries u32, log2 of the entries of a bundle u8, form u8, smallest tag u64
//! form     bits 0 to 3: bytes of a tag; bit 4: the offsets are u32; bit 5: the block is plain
//! ```
//!
//! Entries are in strict entry order. A *plain* block has one version of each key, and each is a value that does not expire: a scan need not examine
//! its entries. An entry that expires is stored as a tombstone with instant and value. All keys of a block form one bundle, or every 16 do, whichever
//! is shorter: random keys share two or three bytes whatever their neighbours, paths most of theirs with a few neighbours only. Pebble's columnar
//! blocks (`sstable/colblk`, 2024) store keys and offsets in the same way.
//!
//! C1: [`Columns::of`] accepts only columns that fill the block. The offsets within them are untrusted until [`Columns::check`] has seen them: before
//! that, an entry may be empty, or lie anywhere in the block, but no access panics.

mod builder;
mod key;
mod layout;

pub(crate) use builder::BlockBuilder;
pub(crate) use key::KeyBuffer;
pub(crate) use layout::{Columns, Decoded, Place};

#[cfg(test)]
mod tests;
