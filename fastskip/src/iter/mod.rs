//! Iteration: positions that move in both directions, and views that decide which nodes are shown.

pub(crate) mod cursor;
pub(crate) mod owned;
mod position;
mod range;
mod readahead;
mod view;

pub(crate) use range::{Ends, Range, impl_range_iterator};
pub(crate) use view::View;
