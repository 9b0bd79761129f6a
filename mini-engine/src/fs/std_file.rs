//! [`StdFile`]: an open file of the operating system, accessed with positioned reads and writes.
//!
//! The Windows part was written from the documentation and was never run.

use std::fs;
#[cfg(windows)]
use std::io::Error;
use std::io::Result;

use super::File;
#[cfg(unix)]
use super::mapping::MappedFile;
#[cfg(unix)]
use super::{MappedBytes, Mapping};

#[derive(Debug)]
pub(super) struct StdFile(pub(super) fs::File);

impl File for StdFile {
    #[cfg(unix)]
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.0, buf, offset)
    }

    #[cfg(unix)]
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        std::os::unix::fs::FileExt::write_at(&self.0, buf, offset)
    }

    // Both calls also move the handle's position, which is not used here.
    #[cfg(windows)]
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        match std::os::windows::fs::FileExt::seek_read(&self.0, buf, offset) {
            // Windows reports a read past the end as an error.
            Err(error) if error.raw_os_error() == Some(38) => Ok(0),
            result => result,
        }
    }

    #[cfg(windows)]
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        std::os::windows::fs::FileExt::seek_write(&self.0, buf, offset)
    }

    fn sync(&self) -> Result<()> {
        self.0.sync_data()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.0.set_len(len)
    }

    /// Allocates without writing if that is certain to reserve the space: then no bytes are transferred to the device.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn allocate(&self, len: u64) -> Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::{Errno, retry_on_intr};
        if super::mapping::writes_in_place(&self.0) {
            match retry_on_intr(|| fallocate(&self.0, FallocateFlags::empty(), 0, len)) {
                // The file system, for example ext3, does not support `fallocate`.
                Err(Errno::OPNOTSUPP) => {}
                allocated => return Ok(allocated?),
            }
        }
        super::write_zeros_upto(self, len)
    }

    fn len(&self) -> Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    #[cfg(unix)]
    fn stamp(&self) -> Result<Option<[u64; 4]>> {
        use std::os::unix::fs::MetadataExt;
        let found = self.0.metadata()?;
        Ok(Some([found.dev(), found.ino(), found.ctime() as u64, found.ctime_nsec() as u64]))
    }

    #[cfg(unix)]
    fn map(&self) -> Result<MappedBytes> {
        super::mapping::map(&self.0)
    }

    #[cfg(unix)]
    fn map_mut(&self, len: u64) -> Result<Box<dyn Mapping>> {
        Ok(Box::new(MappedFile::new(&self.0, len)?))
    }
}
