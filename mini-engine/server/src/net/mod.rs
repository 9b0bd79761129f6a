//! Sockets and threads: one event loop that serves all clients, and the threads that wait in its place.

mod address;
mod connection;
mod event_loop;
mod limits;
mod long_wait;
mod server;
mod stream;
mod worker;

pub use server::{Server, Stopper};
pub use stream::Address;

#[cfg(test)]
mod tests;
