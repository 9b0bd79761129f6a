//! Writes tables.

pub(super) mod builder;
