//! A reader of every file of a database, written from `docs/src/formats.md` alone: it shares nothing with the engine but the libraries for
//! checksums and compression. It must find exactly what was written. Of databases that were cut off or damaged, it must say what the engine says.

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
