//! Directories for tests: in memory, where the system has enough room there. And addresses.
//!
//! The engine syncs all the time, which on a device takes longer than everything else. No test needs a device: `MemFs` simulates power cuts, and
//! the page cache survives a killed process. With `TMPDIR` set, tests use that directory, as those of the engine and of kills do in `.ci/run`:
//! `TMPDIR=/var/tmp cargo test -p mini-engine` runs them on a disk.

use std::io::Result;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is removed with its contents when this is dropped.
#[derive(Debug)]
pub struct TempDir(tempfile::TempDir);

impl TempDir {
    /// A new, empty directory.
    ///
    /// # Errors
    /// The error of the file system if it cannot be created.
    pub fn new() -> Result<TempDir> {
        static PARENT: OnceLock<PathBuf> = OnceLock::new();
        tempfile::TempDir::new_in(PARENT.get_or_init(parent)).map(TempDir)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

fn parent() -> PathBuf {
    let in_memory = Path::new("/dev/shm");
    let is_chosen = std::env::var_os("TMPDIR").is_some();
    if !is_chosen && has_room(in_memory) { in_memory.to_path_buf() } else { std::env::temp_dir() }
}

/// Whether many tests at once can work in `dir`. Containers often have 64 MiB there, which is not enough.
#[cfg(target_os = "linux")]
fn has_room(dir: &Path) -> bool {
    const WANTED: u64 = 1 << 30;
    let has_space = rustix::fs::statvfs(dir).is_ok_and(|found| found.f_bavail * found.f_frsize >= WANTED);
    has_space && tempfile::TempDir::new_in(dir).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn has_room(_: &Path) -> bool {
    false
}

/// A free address on loopback, for a server that is stopped and started again. Its port is below those that the system assigns to connections, so
/// that no connection takes it while the server is down.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const PORTS: u32 = 20_000;
    loop {
        let next = (std::process::id() * 101 + NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, (10_000 + next) as u16));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
