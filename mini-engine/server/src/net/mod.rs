//! Sockets and threads: one event loop that serves all clients, and the threads that wait in its place.

mod address;
mod connection;
mod event_loop;
mod limits;
mod listener;
mod long_wait;
mod server;
mod worker;

pub use listener::{Address, TlsReloader};
pub use server::{Server, Stopper};

#[cfg(test)]
mod tests;
