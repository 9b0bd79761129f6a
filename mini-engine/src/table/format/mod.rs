//! The parts of a table that are not entries: footer, properties, range tombstones.

pub(super) mod footer;
pub(super) mod properties;
pub(super) mod range_block;

pub(super) use footer::{FOOTER_LEN, Footer, Handle, file_name};
pub(super) use properties::{Properties, TableMeta};
