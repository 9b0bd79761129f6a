//! Bytes of a table that are no entries: footer, properties, range tombstones.

pub(super) mod footer;
pub(super) mod properties;
pub(super) mod range_block;
