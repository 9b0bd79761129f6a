//! Sockets and threads: one loop that serves all clients, and the threads that wait in its place.

mod address;
mod connection;
mod event_loop;
mod limits;
mod server;
mod worker;

pub use server::{Server, Stopper};

#[cfg(test)]
mod tests;
