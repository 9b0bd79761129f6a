//! Drives the server over loopback: with the `redis` crate as clients do, with bytes that no client library sends, and with kills.
//!
//! No test waits for a fixed time: a test waits for a reply, for the end of a connection or for the end of the process. If the server gives none of
//! them, the test fails after `PATIENCE`.

mod bounds;
mod commands;
mod kills;
mod shutdown;
mod tools;
mod transports;
