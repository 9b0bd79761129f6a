//! A disk that is really full: a file system in memory of a few MiB, mounted by each test. Needs the right to mount; where
//! it is not given the tests say loudly that they tested nothing.
#![cfg(target_os = "linux")]

mod engine;
mod import;
mod mount;
mod program;
mod server;
