//! The clients of this node: a task for each connection.
//!
//! A connection takes its requests in order. Writes that follow each other go to their groups together, and so do reads behind one barrier; a read
//! waits for the writes before it, so a client sees what it wrote. Replies are in the order of the requests.

mod budget;
mod cluster_command;
mod connection;
mod house;
mod listener;
mod turn;

pub(crate) use listener::{Doors, run};
