//! A reader of every file of a database, written from `docs/src/formats.md` alone. It shares only the libraries for checksums and compression
//! with the engine. It must find exactly the written data, and agree with the engine on truncated or damaged databases.

mod bytes;
mod damaged;
mod database;
mod log;
mod manifest;
mod table;
mod workload;
mod written;

pub(crate) use bytes::checksum;
pub(crate) use written::read;
