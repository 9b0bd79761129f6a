//! [`LogTail`]: a log that is read while its writer, in another process, appends to it.
//!
//! Frames may be completed in any order, so the first place without a whole frame is only the present end: the writer may be filling it. No write
//! behind that place was acknowledged (rule 12). So nothing beyond it is searched, and the next call continues there.
//!
//! The file may be cut and recycled meanwhile. Frames of its next life do not pass for frames of this log, whose salt was read first; so the log only
//! seems to end early. The caller must check afterwards, by the manifest, that the log was still in use.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::format::{FIRST_FRAME, SegmentHeader, file_name};
use super::walk::{Frame, LogReader};
use crate::error::{Error, Result};
use crate::fs::{File, FileSystem};

/// An open log, and the place up to which it was read.
#[derive(Debug)]
pub(crate) struct LogTail {
    path: PathBuf,
    number: u64,
    file: Arc<dyn File>,
    /// `None` as long as the writer has not completed the header.
    segment: Option<SegmentHeader>,
    end: u64,
}

impl LogTail {
    /// Opens log `number` of `dir`; nothing of it is read yet.
    pub(crate) fn open(fs: &dyn FileSystem, dir: &Path, number: u64) -> Result<Self> {
        let path = dir.join(file_name(number));
        let file = fs.open(&path).map_err(Error::io("open", &path))?;
        Ok(Self { path, number, file, segment: None, end: FIRST_FRAME })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether no frame was read.
    pub(crate) fn is_at_start(&self) -> bool {
        self.end == FIRST_FRAME
    }

    /// The end of what was read, in bytes.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Calls `visit` with each whole frame behind those that were read before. A frame for which `visit` returns `Break` or an error counts as not
    /// read. Takes time in proportion to these frames, plus a constant.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corruption`] of the header or of a batch; the errors of `visit`.
    pub(crate) fn advance(&mut self, mut visit: impl FnMut(Frame<'_>) -> Result<ControlFlow<()>>) -> Result<()> {
        let mut log = LogReader::of_part(Arc::clone(&self.file), &self.path)?;
        if self.segment.is_none() {
            self.segment = log.read_header(self.number)?;
        }
        let Some(segment) = self.segment else { return Ok(()) };
        while let Some(header) = log.frame_at(segment.log, self.end)? {
            let batch = log.batch(self.end, &header)??;
            if visit(Frame::new(self.end, &header, &batch))?.is_break() {
                break;
            }
            self.end += header.frame_len();
        }
        Ok(())
    }
}
