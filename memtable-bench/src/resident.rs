//! How much memory this process holds, as the system counts it. Linux only; elsewhere nothing is known.

use std::fs;

/// Begins a peak anew: what [`peak`] gives from now on is the most that was resident since. Returns what is resident now, in
/// bytes.
pub(crate) fn start() -> Option<u64> {
    // 5 resets the peak; see proc(5).
    fs::write("/proc/self/clear_refs", "5").ok()?;
    field("VmRSS:")
}

/// The most that was resident since [`start`], in bytes.
pub(crate) fn peak() -> Option<u64> {
    field("VmHWM:")
}

fn field(name: &str) -> Option<u64> {
    kibibytes(&fs::read_to_string("/proc/self/status").ok()?, name)?.checked_mul(1024)
}

fn kibibytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        // Catches the peak of the address space taken for that of memory.
        let status = "Name:\tx\nVmPeak:\t  9000 kB\nVmHWM:\t  1234 kB\nVmRSS:\t  1000 kB\n";
        assert_eq!((kibibytes(status, "VmHWM:"), kibibytes(status, "VmRSS:")), (Some(1234), Some(1000)));
        assert_eq!(kibibytes("VmHWM:\t12 MB\n", "VmHWM:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn touched_memory_is_part_of_the_peak() {
        // Catches a peak of before, which would hide the table. Other tests run in this process, so only a lower bound holds.
        const BYTES: usize = 64 << 20;
        let before = start().expect("this system tells");
        let touched = vec![1_u8; BYTES];
        assert!(peak() >= Some(before + BYTES as u64 / 2), "{before}, {:?}", peak());
        drop(touched);
    }
}
