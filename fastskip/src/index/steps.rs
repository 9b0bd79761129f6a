//! The steps of changing a block; a test can stop a writer for ever at each of them.

/// Called before each change that is visible to other threads. In tests a thread may stop here; otherwise the function does nothing.
#[cfg(not(test))]
#[inline(always)]
pub(super) const fn step() {}

#[cfg(test)]
pub(crate) use tests::{Stopper, counted, step};

#[cfg(test)]
mod tests;
