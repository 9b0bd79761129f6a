//! A file system in memory of a few MiB, mounted by a test.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proof::TempDir;

use super::skipped;

/// The mounted file system.
pub(crate) struct Mount(TempDir);

impl Mount {
    /// A file system of `bytes`. Where mounting is not allowed, prints that `test` has tested nothing, and returns `None`.
    pub(crate) fn new(bytes: u64, test: &str) -> Option<Mount> {
        let dir = TempDir::new().expect("a temporary directory");
        match mount(dir.path(), &format!("size={bytes}")) {
            Ok(()) => Some(Mount(dir)),
            Err(why) => {
                skipped(test, why);
                None
            }
        }
    }

    pub(crate) fn resize(&self, bytes: u64) {
        mount(self.0.path(), &format!("remount,size={bytes}")).expect("remount");
    }

    /// Makes the file system read-only.
    pub(crate) fn make_read_only(&self) {
        mount(self.0.path(), "remount,ro").expect("remount");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

fn mount(point: &Path, options: &str) -> Result<(), String> {
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(point).stdin(Stdio::null());
    let done = mount.output().map_err(|error| format!("mount does not run: {error}"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let ended = Command::new("umount").arg(self.0.path()).status();
        assert!(ended.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}
