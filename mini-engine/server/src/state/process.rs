//! Figures of this process, from the system. A figure is zero if the system does not report it.

use std::fs::read_to_string;

/// Linux reports the time of processes in hundredths of a second, whatever its own clock rate is (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// The bytes of the process that are in memory, including mapped files.
pub(crate) fn resident_bytes() -> u64 {
    kibibytes("/proc/self/status", "VmRSS:")
}

/// The size of the machine's memory, in bytes.
pub(crate) fn memory_of_machine() -> u64 {
    kibibytes("/proc/meminfo", "MemTotal:")
}

fn kibibytes(file: &str, name: &str) -> u64 {
    let find = || {
        let text = read_to_string(file).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    find().unwrap_or(0) * 1024
}

/// The processor time of the process in seconds: in its own code, and in the system on its behalf.
pub(crate) fn cpu_seconds() -> [f64; 2] {
    let find = || {
        let text = read_to_string("/proc/self/stat").ok()?;
        // The name of the program, in parentheses, may contain spaces.
        let (_, fields) = text.rsplit_once(") ")?;
        let ticks: Vec<f64> = fields.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse().ok()).collect();
        <[f64; 2]>::try_from(ticks).ok()
    };
    find().unwrap_or_default().map(|ticks| ticks / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_says_what_the_process_takes() {
        // Catches a field that is missed, or mistaken for the next one.
        assert!(memory_of_machine() > resident_bytes() && resident_bytes() > 1 << 20);
        let [mut user, _] = cpu_seconds();
        let before = user;
        while user == before {
            std::hint::black_box((0..100_000u64).sum::<u64>());
            [user, _] = cpu_seconds();
        }
        assert!(user > before);
    }
}
