//! The program as its users see it: started as a process, and tested by its stdout, stderr, exit code, and the replies of its server.

mod bench;
#[cfg(all(target_os = "linux", feature = "cluster"))]
mod cluster;
mod commands;
mod dump;
#[cfg(target_os = "linux")]
mod full_disk;
mod import;
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
