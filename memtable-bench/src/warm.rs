//! Makes sure that memory is there before a clock runs.
//!
//! The host of a virtual machine may back the machine's memory only when a page is first touched, and take it away again
//! when the page is free: then a table that grows measures the host, a different one each round. So a round touches as much
//! memory as its table will need and gives it back, and the system hands out the same pages again.

use memmap2::{MmapMut, MmapOptions};

/// A page of the smallest kind.
const PAGE: usize = 4096;

/// Touches `bytes` and gives them back. Where the system refuses them, the round runs without.
pub(crate) fn touch(bytes: usize) {
    drop(touched(bytes));
}

fn touched(bytes: usize) -> Option<MmapMut> {
    let mut memory = MmapOptions::new().len(bytes.max(1)).map_anon().ok()?;
    advise_huge_pages(&memory);
    for page in memory.chunks_mut(PAGE) {
        page[0] = 1;
    }
    Some(memory)
}

/// Fewer faults. A system without huge pages does as well.
#[cfg(target_os = "linux")]
fn advise_huge_pages(memory: &MmapMut) {
    drop(memory.advise(memmap2::Advice::HugePage));
}

#[cfg(not(target_os = "linux"))]
fn advise_huge_pages(_: &MmapMut) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn touched_memory_is_resident() {
        // Catches pages that are mapped and never touched. Other tests run in this process, so only a lower bound holds.
        const BYTES: usize = 64 << 20;
        let memory = touched(BYTES).expect("64 MiB are there");
        assert!(crate::resident::start() >= Some(memory.len() as u64));
    }

    #[test]
    fn nothing_and_far_too_much_are_no_harm() {
        // Catches a mapping of no bytes, or one that no system has, taken for granted.
        touch(0);
        touch(usize::MAX / 2);
    }
}
