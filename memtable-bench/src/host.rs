//! The machine: what a result has to name, and how much memory there is to measure in.

use std::fs;
use std::thread;

/// How many threads can run at once.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The processor's name, where the system tells (Linux on most architectures).
pub(crate) fn model() -> Option<String> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The bytes that can be used without swapping or being killed, where the system tells (Linux).
pub(crate) fn memory_available() -> Option<u64> {
    let system = available_of(&fs::read_to_string("/proc/meminfo").ok()?)?;
    // A container's own limit does not show in there. Without one it reads "max", which is no number.
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|max| max.trim().parse().ok());
    Some(group.map_or(system, |group: u64| group.min(system)))
}

fn available_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_in_bytes() {
        // Catches kibibytes taken for bytes, and total or free memory taken for what is available.
        let meminfo = "MemTotal:  24000000 kB\nMemFree:  900 kB\nMemAvailable:   20000000 kB\nBuffers: 7 kB\n";
        assert_eq!(available_of(meminfo), Some(20_480_000_000));
        assert_eq!(available_of("MemTotal: 1 kB\n"), None);
    }
}
