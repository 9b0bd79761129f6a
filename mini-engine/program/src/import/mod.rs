//! The parts of an import: lines of the input, batches of records, rejected lines, and the end by a signal.

pub(crate) mod batch;
pub(crate) mod interrupt;
pub(crate) mod lines;
pub(crate) mod rejects;
