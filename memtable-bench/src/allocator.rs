//! The allocator of all subjects alike, since rounds run in processes of this program. With the peers it is mimalloc, for C and C++ code too.

#[cfg(feature = "peers")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Its name, unless it is the system's.
pub(crate) const NAME: Option<&str> = if cfg!(feature = "peers") { Some("mimalloc") } else { None };

/// Gives free memory back to the system, so that it counts as growth of the process when a table takes it.
#[allow(unsafe_code)]
pub(crate) fn give_back() {
    // SAFETY: frees what no allocation has; every call is allowed.
    #[cfg(feature = "peers")]
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
}
