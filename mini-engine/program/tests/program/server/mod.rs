//! Drives the server over loopback: with the `redis` crate as clients do, with bytes that no client library sends, and with kills.
//!
//! Nothing here waits for a time: a test waits for a reply, for the end of a connection or for the end of the process. A server that
//! gives none of them fails a test after `PATIENCE`.

mod bounds;
mod commands;
mod kills;
mod shutdown;
mod tools;
