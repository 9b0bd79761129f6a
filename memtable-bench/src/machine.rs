//! The machine and the build that a result names, and the memory that is available for a measurement.

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use memmap2::{MmapMut, MmapOptions};
use serde::{Deserialize, Serialize};

/// Whether this is an optimised build; figures of any other build mean nothing.
pub(crate) const OPTIMISED: bool = !cfg!(debug_assertions);

/// The smallest page size.
const PAGE: usize = 4096;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    /// The processor's name, where the system reports it (Linux on most architectures).
    pub(crate) model: Option<String>,
    pub(crate) os: String,
    pub(crate) architecture: String,
}

impl Machine {
    pub(crate) fn this() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        Self {
            cores: thread::available_parallelism().map_or(1, usize::from),
            model: model.map(|(_, name)| name.trim().to_owned()),
            os: std::env::consts::OS.into(),
            architecture: std::env::consts::ARCH.into(),
        }
    }
}

/// The commit that is checked out where this program was built, followed by `-changed` if files differ from it. `None` if that directory, git or a
/// repository is missing.
pub(crate) fn commit() -> Option<String> {
    let mut git = Command::new("git");
    // Runs in the source directory: the current one may be another repository. Without tags, the result is the commit.
    git.args(["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--exclude=*", "--abbrev=40"]);
    let output = git.arg("--dirty=-changed").stdin(Stdio::null()).output().ok()?;
    let commit = output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()?;
    Some(commit.trim().to_owned())
}

/// The bytes that a process can use without swapping or being killed, where the system reports them (Linux).
pub(crate) fn memory_available() -> Option<u64> {
    let system = bytes_of("/proc/meminfo", "MemAvailable:")?;
    // `/proc/meminfo` does not contain a container's limit. Without a limit this file contains "max", which is not a number.
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|max| max.trim().parse().ok());
    Some(group.map_or(system, |group: u64| group.min(system)))
}

/// Resets the peak of resident memory (Linux). Returns the present resident bytes.
pub(crate) fn reset_peak() -> Option<u64> {
    // 5 resets the peak; see proc(5).
    fs::write("/proc/self/clear_refs", "5").ok()?;
    bytes_of("/proc/self/status", "VmRSS:")
}

/// The peak of resident memory since [`reset_peak`], in bytes.
pub(crate) fn peak() -> Option<u64> {
    bytes_of("/proc/self/status", "VmHWM:")
}

/// Anonymous resident memory of this process, in bytes (Linux).
pub fn anonymous() -> Option<u64> {
    bytes_of("/proc/self/status", "RssAnon:")
}

/// The writes of this process so far, as the system counts them (Linux).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Io {
    /// System calls.
    pub(crate) write_calls: u64,
    /// Bytes of pages that were or will be written to a disk. A page that changes again before it is written counts once.
    pub(crate) disk_bytes: u64,
}

impl Io {
    pub(crate) fn now() -> Option<Self> {
        let number = |field| number("/proc/self/io", field);
        Some(Self { write_calls: number("syscw:")?, disk_bytes: number("write_bytes:")? })
    }
}

/// The bytes that the files in a directory take on the disk, where the system reports them (Unix).
pub(crate) fn disk_space(directory: &Path) -> io::Result<Option<u64>> {
    let mut bytes = Some(0);
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let own = match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => disk_space(&entry.path())?,
            Ok(metadata) => allocated(&metadata),
            // The file was removed after the directory was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(0),
            Err(error) => return Err(error),
        };
        bytes = bytes.zip(own).map(|(bytes, own)| bytes + own);
    }
    Ok(bytes)
}

#[cfg(unix)]
fn allocated(metadata: &Metadata) -> Option<u64> {
    Some(std::os::unix::fs::MetadataExt::blocks(metadata) * 512)
}

#[cfg(not(unix))]
fn allocated(_metadata: &Metadata) -> Option<u64> {
    None
}

fn bytes_of(file: &str, field: &str) -> Option<u64> {
    number(file, field)?.checked_mul(1024)
}

/// The number behind `field`; a unit of kB is converted.
fn number(file: &str, field: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let number = text.lines().find_map(|line| line.strip_prefix(field))?;
    number.trim_end_matches("kB").trim().parse().ok()
}

/// Touches `bytes` of memory and frees them, so that the machine has these pages before a clock runs. Does nothing where the system refuses.
///
/// The host of a virtual machine may provide memory only when a page is first touched, and take it away when the page
/// is free. Without this call, the time of a growing table includes the host's work, which differs in each round.
pub(crate) fn prefault(bytes: usize) {
    drop(touched(bytes));
}

fn touched(bytes: usize) -> Option<MmapMut> {
    let mut memory = MmapOptions::new().len(bytes.max(1)).map_anon().ok()?;
    // Huge pages cause fewer faults. A system without them works as well.
    #[cfg(target_os = "linux")]
    drop(memory.advise(memmap2::Advice::HugePage));
    memory.chunks_mut(PAGE).for_each(|page| page[0] = 1);
    Some(memory)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_and_what_memory_and_disk_it_takes_is_counted() {
        // Catches calls counted as bytes, omitted files in subdirectories, blocks and kibibytes counted as bytes, pages that are mapped but never
        // touched, and an old peak, which would hide a table.
        let directory = tempfile::tempdir().expect("a directory");
        let below = directory.path().join("below");
        fs::create_dir(&below).expect("made");
        let before = Io::now().expect("this system tells");
        for of in [directory.path(), &below] {
            fs::write(of.join("file"), vec![1; 1 << 20]).expect("written");
        }
        assert!(Io::now().expect("it tells").write_calls >= before.write_calls + 2);
        let space = disk_space(directory.path()).expect("read").expect("it tells");
        assert!((2 << 20..3 << 20).contains(&space), "{space}");
        assert!(anonymous() > Some(100_000));
        let before = reset_peak().expect("it tells");
        let memory = touched(64 << 20).expect("64 MiB are there");
        assert!(peak() >= Some(before + memory.len() as u64 / 2), "{before}, {:?}", peak());
    }
}
