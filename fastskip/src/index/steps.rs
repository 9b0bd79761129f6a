//! The steps of changing a block, at each of which a test stops a writer for ever.

/// Called before each change that other threads can see. In tests it is a point at which to stop; otherwise it does nothing.
#[cfg(not(test))]
#[inline(always)]
pub(super) const fn step() {}

#[cfg(test)]
pub(crate) use tests::{Stopper, counted, step};

#[cfg(test)]
mod tests;
