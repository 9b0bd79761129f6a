//! Recycles log files: a later log overwrites the file of an obsolete one, whose space is already allocated.
//!
//! K1 Only a file that this process created as a log is recycled, and only when it is no longer used: its writer is dropped, its segment is released,
//! no sync of it is running, and none will run ([`super::Segment::retire`]). Logs of earlier opens may have a second name, given by a quarantine;
//! their files are removed.
//! K2 The file keeps only whole, synced frames of one log; it is truncated after them (the sync of K3 makes this durable). So the file holds frames
//! of at most one previous generation, and the sync of the new header has little else to write. A log that was never synced is not kept: writing its
//! obsolete bytes to the device would cost more than it saves.
//! K3 The new header identifies the previous generation, and is synced before the file gets the new log's name. So a file with a log's name never has
//! the header of another log, or a part of one.
//! K4 Each write is followed by zeros, up to the next frame of the previous generation or to the end of the kept frames. Without the zeros, the rest
//! of a partly overwritten frame would look like a damaged new frame (replay B3).

use std::path::Path;
use std::sync::Arc;

use super::format::{FIRST_FRAME, Identity, SegmentHeader, file_name};
use crate::error::{Error, Result};
use crate::fs::{File, FileSystem, unlink};

/// The name of the file that will become a log. It is not the name of a log, so recovery never reads the file.
pub(crate) const SPARE: &str = "SPARE";
/// About one frame start in this many bytes of a log is remembered, which takes 8 bytes of memory. A write then zeroes at most about this many bytes
/// after its end; writing a whole sector rarely costs more than writing a part of it.
pub(super) const STARTS_APART: u64 = 512;
/// The kept part of a file ends where two remembered starts are further apart than this, so that no write has to clear more.
const MAX_APART: u64 = 1 << 20;

/// The information about the file [`SPARE`].
#[derive(Debug)]
pub(crate) struct Spare {
    /// The log whose frames the file holds.
    generation: Identity,
    pub(super) rest: PreviousGeneration,
}

impl Spare {
    /// The part of log `generation` that is worth keeping: at most `max_len` bytes. The log is synced up to `synced`, and frames start at `starts`.
    /// `None` if not even one frame can be kept.
    pub(super) fn of(generation: Identity, mut starts: Vec<u64>, synced: u64, max_len: u64) -> Option<Spare> {
        starts.retain(|&start| start < synced);
        let first = *starts.first()?;
        let mut end = first;
        for &next in starts.iter().skip(1).chain([&synced]) {
            if next > max_len || next - end > MAX_APART {
                break;
            }
            end = next;
        }
        starts.retain(|&start| start < end);
        (end > first).then_some(Spare { generation, rest: PreviousGeneration { starts, end, cleared: 0 } })
    }

    /// Turns the file [`SPARE`] in `dir` into that of `log`: writes and syncs header and zeros, renames it, and syncs the name. Returns the file and
    /// the number of bytes written. `None` if the file cannot be opened; then nothing has changed.
    ///
    /// # Errors
    /// [`Error::Io`]; then the file is removed, if possible.
    pub(super) fn begin(
        &mut self,
        fs: &dyn FileSystem,
        dir: &Path,
        log: Identity,
    ) -> Result<Option<(Arc<dyn File>, u64)>> {
        let (spare, path) = (dir.join(SPARE), dir.join(file_name(log.number)));
        let file = match fs.open_write(&spare).map_err(Error::io("open", &spare)) {
            Ok(file) => file,
            Err(error) if error.is_want_of_handles() => {
                unlink(fs, &spare);
                return Err(error);
            }
            Err(error) => {
                tracing::warn!(%error, "could not open the file kept for the next log");
                return Ok(None);
            }
        };
        let header = SegmentHeader { log, previous_generation: Some(self.generation) };
        let mut bytes = header.encode();
        bytes.resize(bytes.len() + self.rest.zeros_behind(FIRST_FRAME), 0);
        let begin = || {
            file.write_all_at(&bytes, 0).map_err(Error::io("write", &spare))?;
            file.sync().map_err(Error::io("sync", &spare))?;
            fs.rename(&spare, &path).map_err(Error::io("rename", &spare))
        };
        begin().inspect_err(|_| unlink(fs, &spare))?;
        let name = || {
            fs.sync_dir(dir).map_err(Error::io("sync", dir))?;
            // Opened by its new name, so that a file system that classifies files by name treats it as a log.
            fs.open_write(&path).map_err(Error::io("open", &path))
        };
        let file = name().inspect_err(|_| unlink(fs, &path))?;
        Ok(Some((file, bytes.len() as u64)))
    }
}

/// The frames of its previous generation that a file still holds.
#[derive(Debug)]
pub(super) struct PreviousGeneration {
    /// The starts of some frames, including the first one. They ascend and are below `end`.
    starts: Vec<u64>,
    /// The end of the last frame that is kept, in bytes from the file's start.
    pub(super) end: u64,
    /// From the end of the last write up to this offset the file has zeros.
    cleared: u64,
}

impl PreviousGeneration {
    /// The number of zeros that must follow a write that ends at `end` (K4).
    pub(super) fn zeros_behind(&mut self, end: u64) -> usize {
        if end <= self.cleared {
            return 0;
        }
        let next = self.starts.partition_point(|&start| start < end);
        self.cleared = self.starts.get(next).copied().unwrap_or(self.end).max(end);
        // The number is at most `MAX_APART`.
        (self.cleared - end) as usize
    }
}
