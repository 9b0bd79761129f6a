//! Marks memory that must not be accessed, for address sanitizer.
//!
//! An arena is one mapping, so a sanitizer does not notice an access that runs past a node into the next one. With `--cfg fastskip_poisoned` and
//! `-Zsanitizer=address`, words are poisoned when they are allocated, and a node's bytes are unpoisoned when it is written. One poisoned word stays
//! between any two nodes. Without the flag, this file compiles to nothing. `.ci/sanitize` uses the flag.

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
    // SAFETY: changes only the reports of the sanitizer.
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
    // SAFETY: changes only the reports of the sanitizer.
    unsafe {
        __asan_unpoison_memory_region(at.cast(), len);
    }
    #[cfg(not(fastskip_poisoned))]
    let _ = (at, len);
}

#[cfg(test)]
mod tests;
