//! Files that are damaged, missing or cannot be read.

mod dropped;
mod files;
mod merges;
mod quarantine;
mod salvage;
mod unreadable;

pub(crate) use crate::support::newest_table;
