//! The index of a table, by which a read finds a data block: filters, fence pointers, and partitions, which contain both.

pub(super) mod fences;
pub(super) mod file_end;
pub(super) mod filter;
pub(super) mod heads;
pub(super) mod partition;
pub(super) mod rates;
#[cfg(test)]
pub(super) mod theory;

pub(super) use fences::{FencePlace, Index, IndexBuilder};
pub(super) use file_end::FileEnd;
pub(super) use filter::Filter;
pub(super) use partition::{Partition, PartitionBuilder, last_fence};
