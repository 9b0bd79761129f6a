//! Iteration: positions that move both ways, and what a view shows on the way.

pub(crate) mod cursor;
pub(crate) mod owned;
mod position;
mod range;
mod readahead;
mod view;

pub(crate) use range::{Ends, Range, impl_range_iterator};
pub(crate) use view::View;
