//! Commands of clients: a function for each, and one table of all.

mod client;
mod command;
mod connection;
mod expiry;
mod glob;
mod info;
mod keys;
mod ordered;
mod scripts;
mod server;
mod strings;
mod table;
pub(crate) mod transaction;
mod words;

pub(crate) use command::Command;
pub(crate) use table::{find, of_pipelines};
