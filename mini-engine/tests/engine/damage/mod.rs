//! Files that are damaged, missing or cannot be read.

mod aside;
mod dropped;
mod files;
mod merges;
mod quarantine;
mod salvage;
mod unreadable;
