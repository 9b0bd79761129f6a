//! Iteration over what a reader sees of a table: [`walk`] decides which nodes are shown, [`cursor`] and [`range`] are the types that users hold.

pub(crate) mod cursor;
pub(crate) mod owned;
mod position;
pub(crate) mod range;
mod readahead;
pub(crate) mod source;
pub(crate) mod walk;
