//! Files that are damaged, missing or cannot be read.

mod aside;
mod compactions;
mod dropped;
mod files;
mod keyspaces;
mod quarantine;
mod salvage;
mod unreadable;
