//! The index of a table, which leads to a data block: filters, fence pointers, the groups of both.

pub(super) mod eytzinger;
pub(super) mod fences;
pub(super) mod file_end;
pub(super) mod filter;
pub(super) mod partition;
pub(super) mod rates;
#[cfg(test)]
pub(super) mod theory;
