//! State that a server keeps between requests and that its commands use.

pub(crate) mod clients;
pub(crate) mod clock;
pub(crate) mod context;
pub(crate) mod cursors;
pub(crate) mod damage;
pub(crate) mod job;
pub(crate) mod keyspace;
pub(crate) mod listing;
pub(crate) mod shared;
