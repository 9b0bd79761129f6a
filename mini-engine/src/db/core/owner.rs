//! Distinguishes the process that opened the database from a fork of it.
//!
//! A forked process has a copy of the memory and shares the files, but does not see later writes of the other process. Both processes would assign
//! the same places of the log to their writes, and one would overwrite acknowledged writes of the other. So a fork writes nothing, and does not stop
//! the workers: it has none.
//!
//! Each write checks this, so the check must not need a system call. On Linux it reads a byte of a page that the kernel zeroes in a fork.

use std::fmt;

#[cfg(any(target_os = "linux", target_os = "android"))]
use memmap2::MmapMut;

/// The process that opened the database.
pub(super) struct Owner {
    /// The page, whose first byte is not 0; `None` if the system has no pages that a fork zeroes.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    page: Option<MmapMut>,
    id: u32,
}

impl Owner {
    pub(super) fn this_process() -> Self {
        Self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            page: wiped_by_a_fork().ok(),
            id: std::process::id(),
        }
    }

    #[inline]
    pub(super) fn is_this_process(&self) -> bool {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(page) = &self.page {
            return page.first() != Some(&0);
        }
        self.id == std::process::id()
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.id)
    }
}

/// A page whose first byte is 1 in this process and 0 in every fork.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[expect(unsafe_code, reason = "no safe interface gives this advice")]
fn wiped_by_a_fork() -> std::io::Result<MmapMut> {
    let mut page = MmapMut::map_anon(1)?;
    let len = page.len();
    // SAFETY: the range is that of a private mapping of our own. The advice changes nothing in this process; in a fork it changes the byte to zero,
    // which is also a valid byte.
    unsafe { rustix::mm::madvise(page.as_mut_ptr().cast(), len, rustix::mm::Advice::LinuxWipeOnFork)? };
    page[0] = 1;
    Ok(page)
}
