//! Tests of the program from outside: it runs as a process, and its stdout, stderr, exit code and server replies are checked.

mod bench;
#[cfg(all(target_os = "linux", feature = "cluster"))]
mod cluster;
mod commands;
mod dump;
#[cfg(target_os = "linux")]
mod full_disk;
mod import;
mod keyspaces;
#[cfg(unix)]
mod kill;
mod readers;
mod recovered;
mod refused;
mod salvage;
mod scan;
#[cfg(unix)]
mod server;
mod support;
