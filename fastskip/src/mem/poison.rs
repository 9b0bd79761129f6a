//! Marks memory that must not be touched for address sanitizer.
//!
//! An arena is one mapping, so a sanitizer does not notice when a node's bytes are overrun into its neighbour's. With `--cfg fastskip_poisoned` and
//! `-Zsanitizer=address`, words are poisoned when they are allocated, a node's bytes are unpoisoned when it is written, and a poisoned word stays
//! between any two nodes. Without the flag, this file compiles to nothing. `.ci/sanitize` uses it.

/// The number of words that stay poisoned after each node.
pub(crate) const REDZONE_WORDS: usize = if cfg!(fastskip_poisoned) { 1 } else { 0 };

#[cfg(fastskip_poisoned)]
unsafe extern "C" {
    fn __asan_poison_memory_region(at: *const core::ffi::c_void, len: usize);
    fn __asan_unpoison_memory_region(at: *const core::ffi::c_void, len: usize);
}

/// Poisons the `len` bytes at `at`.
#[inline(always)]
pub(crate) fn poison(at: *const u8, len: usize) {
    #[cfg(fastskip_poisoned)]
    // SAFETY: changes nothing but what the sanitizer reports.
    unsafe {
        __asan_poison_memory_region(at.cast(), len);
    }
    #[cfg(not(fastskip_poisoned))]
    let _ = (at, len);
}

/// Unpoisons the `len` bytes at `at`, which is aligned to 8 bytes.
#[inline(always)]
pub(crate) fn unpoison(at: *const u8, len: usize) {
    #[cfg(fastskip_poisoned)]
    // SAFETY: changes nothing but what the sanitizer reports.
    unsafe {
        __asan_unpoison_memory_region(at.cast(), len);
    }
    #[cfg(not(fastskip_poisoned))]
    let _ = (at, len);
}

#[cfg(all(test, fastskip_poisoned))]
mod tests {
    use std::env;
    use std::process::Command;

    use crate::{Lookup, Memtable};

    /// Tells the process that is started to fail the length of the value that it overruns.
    const OVERRUN: &str = "FASTSKIP_OVERRUN";

    /// Reads one byte past the value of a node that has a neighbour.
    fn overrun(len: usize) {
        let memtable = Memtable::builder().shards(1).build();
        let value = vec![7; len];
        for seqno in 1..3 {
            memtable.put(b"key", seqno, &value).unwrap();
        }
        let Lookup::Value(found) = memtable.get(b"key", 1) else { panic!("the value that was just stored") };
        // SAFETY: one past the end of a slice.
        let past = unsafe { found.as_ptr().add(found.len()) };
        // SAFETY: none; the test checks that this is reported. The byte is mapped, so without a report it is read.
        std::hint::black_box(unsafe { past.read_volatile() });
    }

    /// Catches a build in which overruns of nodes, into their padding or the word behind, go unnoticed.
    #[test]
    fn overrun_of_a_node_is_reported() {
        if let Ok(len) = env::var(OVERRUN) {
            return overrun(len.parse().unwrap());
        }
        // One byte for either length and three for the key: values that leave from 7 to 0 bytes of padding.
        for len in 4..12 {
            let mut child = Command::new(env::current_exe().unwrap());
            child.args(["--exact", "mem::poison::tests::overrun_of_a_node_is_reported"]).env(OVERRUN, len.to_string());
            let output = child.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && said.contains("use-after-poison"), "value of {len} bytes: {said}");
        }
    }
}
