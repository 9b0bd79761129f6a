//! The log of a read-only database: it has no file, and rejects every append and sync.

use std::io::{ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;

use super::format::{Identity, file_name};
use super::segment::Segment;
use super::writer::Writer;
use crate::error::Error;
use crate::fs::File;
use crate::metrics::Counters;

impl Writer {
    /// Log `number` of `dir`, which is never created: every append and sync returns [`Error::ReadOnly`] with `cause`.
    pub(crate) fn refusing(dir: &Path, number: u64, cause: &str, counters: Arc<Counters>) -> Self {
        let identity = Identity { number, salt: 0 };
        let segment = Segment::new(Arc::new(NoFile), dir.join(file_name(number)), identity, counters);
        // The segment keeps the failure, so the returned error is not needed.
        drop(segment.fail(Error::ReadOnly { cause: cause.to_owned() }));
        Self::at_start(segment, None)
    }
}

/// A file that does not exist. It is never accessed, since a failed segment returns its error first.
#[derive(Debug)]
struct NoFile;

impl File for NoFile {
    fn read_at(&self, _: &mut [u8], _: u64) -> Result<usize> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }

    fn write_at(&self, _: &[u8], _: u64) -> Result<usize> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> Result<()> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }

    fn truncate(&self, _: u64) -> Result<()> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }

    fn len(&self) -> Result<u64> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }
}
