//! The allocator of all subjects that the program measures: with the feature `peers` it is mimalloc, see `main.rs`. Benches by criterion have the
//! system's.

/// The name of the allocator, unless it is the system's.
pub(crate) const NAME: Option<&str> = if cfg!(feature = "peers") { Some("mimalloc") } else { None };

/// Gives free memory back to the system, so that a table that takes this memory makes the process grow.
#[allow(unsafe_code)]
pub(crate) fn give_back() {
    // SAFETY: frees only memory without an allocation; every call is allowed.
    #[cfg(feature = "peers")]
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
}
