//! Tests the server over loopback: with the `redis` crate as a client, with bytes that no client library sends, and with kills.
//!
//! No test waits for a fixed time: a test waits for a reply, for the end of a connection or for the end of the process. If none of these comes, the
//! test fails after `PATIENCE`.

mod bounds;
mod commands;
mod compare;
mod kills;
mod shutdown;
mod tools;
mod transports;
