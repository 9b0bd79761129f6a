//! The tables that are measured.

mod lists;
mod maps;
mod own;
#[cfg(feature = "skl")]
mod skl;
mod table;

pub(crate) use lists::{CrossbeamList, PublishedList, Tree};
pub(crate) use maps::{LockedHashMap, LockedTree, LockedVec, ShardedTree};
pub(crate) use own::{Fastskip, VersionedTable};
#[cfg(feature = "skl")]
pub(crate) use skl::SklList;
#[cfg(test)]
pub(crate) use table::table;
pub(crate) use table::{Record, Table};
