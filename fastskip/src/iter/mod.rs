//! Iteration over the entries that a reader sees: [`walk`] decides which nodes are visible; [`cursor`] and [`range`] have the public types.

pub(crate) mod cursor;
pub(crate) mod owned;
mod position;
pub(crate) mod range;
mod readahead;
pub(crate) mod source;
pub(crate) mod walk;
