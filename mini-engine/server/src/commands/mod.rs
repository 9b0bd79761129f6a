//! Commands of clients: a function for each, and one table of all commands.

mod client;
mod command;
mod connection;
mod expiry;
mod info;
mod key_names;
mod keys;
mod limiters;
mod lua;
mod ordered;
pub(crate) mod scripts;
mod server;
pub(crate) mod slots;
mod strings;
mod table;
pub(crate) mod transaction;
mod words;

pub(crate) use command::{Command, Scope};
pub(crate) use key_names::Named;
#[cfg(test)]
pub(crate) use limiters::KNOWN as LIMITERS;
#[cfg(test)]
pub(crate) use table::writing;
pub(crate) use table::{find, of_pipelines};
