//! The contents of a data block: its entries in columns, so that each entry is found by its index and read without those before it.
//!
//! ```text
//! block    values, keys, tags, value offsets, key offsets, footer
//! keys     the keys, or for each bundle: the prefix that its keys share, then the rest of each key
//! tags     for each entry: seqno * 2 + kind, less the smallest of the block, in as few bytes as the largest needs
//! offsets  u16 or u32 each: the start of each value, or part of a key, in its column; then the end of the column. If all have one length: this, u32
//! footer   number of entries u32, log2 of the entries of a bundle u8 (255: no bundles), lengths of an offset of keys u8, of values u8, of a tag u8
//!          (top bit: the block is plain), smallest tag u64
//! ```
//!
//! Entries are in strict entry order. A *plain* block has one version of each key, and each is a value that does not expire: a scan need not examine
//! its entries. An entry that expires is stored as a tombstone with instant and value. What is the same for all entries takes no room in them.
//!
//! All keys of a block form one bundle, or every 16 do, whichever is shorter: random keys share two or three bytes whatever their neighbours, paths
//! most of theirs with a few neighbours only. If prefixes save less than a thirty-second of the block, the keys are stored whole: then a key is a
//! slice of the block. Pebble's columnar blocks (`sstable/colblk`, 2024) store keys, offsets and constants in the same way.
//!
//! C1: [`Columns::of`] accepts only columns that fill the block. The offsets within them are untrusted until [`Columns::check`] has seen them: before
//! that, an entry may be empty, or lie anywhere in the block, but no access panics.

mod builder;
mod key;
mod layout;
mod samples;

pub(crate) use builder::BlockBuilder;
pub(crate) use key::KeyBuffer;
pub(crate) use layout::{Columns, Decoded, Place};
pub(crate) use samples::KeySamples;

#[cfg(test)]
mod tests;
