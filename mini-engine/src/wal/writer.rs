//! Assigns places in a log to frames, and writes the frames if that needs a system call.
//!
//! A log has space in advance: zeros, or the frames of the log that used its file before. If the file system allows it, the space is mapped into
//! memory. Then a frame only gets its place from the [`Writer`], under the engine's write lock. Any number of threads [fill](Segment::fill) their
//! places at once, without the lock and without a system call. Without a mapping the writer writes the frame itself, before it assigns the next
//! place. [`Writer`] is used only under the engine's write lock; [`Segment`] is the shared half.
//!
//! W1 places are assigned in order, without gaps except padding, and never twice. In a file that another log used before, zeros may follow the last
//! place (see [`super::recycle`]); later frames overwrite them.
//! W2 after a failed append or sync nothing is appended to this log or synced any more, and no later log of the chain can be synced: the contents of
//! the device are unknown until a reopen (durability rule 7). The exception is an append that finds no space: see W4.
//! W3 a segment is synced after all earlier segments of its chain that are not settled (durability rule 5), so "log L is synced up to offset O"
//!    implies that all logs before L are synced completely. Frames record that position.
//! W4 an append that finds no space closes its log: the file is truncated after the last place, and this is synced before the append returns. Nothing
//!    is appended to this log afterwards (rule 7), but a later log may follow it. Replay finds a log that ends cleanly, and the first frame of the
//!    next log has the sequence number that the rejected frame would have had (rule 11). Without the sync, a power failure could leave a part of the
//!    rejected frame before a later log, whose frames record that this log is synced completely: that would be corruption (rule 2), although no data
//!    was lost. If the truncation or its sync fails, W2 applies.
//! W5 space may be written as zeros before the frames ([`Writer::reserve`]). Replay treats zeros after the last frame as unused space, whether they
//!    were written or are the result of a loss.
//! W6 only space that was written before is used through a mapping: if the disk is full, the earlier write has already returned the error.
//! W7 if a process is killed while threads fill their places, holes are left. Replay ends at the first hole. The frames after it were not
//! acknowledged, since writes are published in the order of their places; and no frame records a sync beyond a hole (S3), so the rest is a torn tail.
//! A power failure has the same effect as after `write` calls: any of the unsynced pages may be missing.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use super::format::{FIRST_FRAME, FRAME_HEADER_LEN, FrameHeader, Identity, SegmentHeader, file_name, frame_len};
use super::payload::Payload;
use super::recycle::{PreviousGeneration, STARTS_APART, Spare};
use super::segment::{Claim, Segment};
use super::space::{MAPPED_LEN, populate, write, write_zeros};
use crate::error::{Error, Result};
use crate::fs::{FileSystem, unlink, zeros_at};
use crate::metrics::Counters;
use crate::types::{Durability, MAX_BATCH_LEN, SeqNo};

/// Appends frames to one log.
#[derive(Debug)]
pub(crate) struct Writer {
    segment: Arc<Segment>,
    /// The end of the last assigned place.
    end: u64,
    /// The start of the next frame at or after this offset is remembered.
    next_start: u64,
    /// The file was written up to this offset, so it has that much space.
    allocated: u64,
    /// The starts of some frames, for the next generation of the file.
    starts: Vec<u64>,
    /// The remains of the file's previous generation, if it had one.
    previous_generation: Option<PreviousGeneration>,
    /// The frame that is being written with a system call.
    frame: Vec<u8>,
    /// Whether a mapping was attempted.
    was_mapped: bool,
    /// Whether an append found no space (W4).
    is_closed: bool,
}

/// A frame up to this length is written with one call. A longer frame is written with several, because copying it would cost more. In bytes.
const ONE_CALL: usize = 64 << 10;
/// A log without reserved space is mapped when it has grown to this length, because many databases are opened for only a few writes. It is not mapped
/// while each frame is synced before the next one. In bytes.
const MAPPED_FROM: u64 = 64 << 10;
/// A mapped log that runs out of space doubles it, but adds at least this much and at most [`SPACE_AT_ONCE`]. In bytes.
const LEAST_SPACE: u64 = 4 << 10;
/// A log of synced frames that is not mapped grows to a multiple of this length, in bytes.
const SYNCED_STEP: u64 = 16 << 10;
/// The maximum space that is allocated at once; a frame that needs more is written with system calls. In bytes.
const SPACE_AT_ONCE: u64 = 1 << 20;

impl Writer {
    /// Creates log `number` in `dir`: its header is written, and file and directory are synced.
    ///
    /// # Errors
    /// [`Error::Io`]; then the file is removed, if possible. A file that remains has no valid frame.
    pub(crate) fn create(fs: &dyn FileSystem, dir: &Path, number: u64, counters: Arc<Counters>) -> Result<Self> {
        let log = Self::create_unnamed(fs, dir, number, counters)?;
        let named = fs.sync_dir(dir).map_err(Error::io("sync", dir));
        named.inspect_err(|_| unlink(fs, &log.segment.path))?;
        Ok(log)
    }

    /// Like [`Writer::create`], but the caller syncs the directory before anything durable refers to the log (rule 4).
    ///
    /// # Errors
    /// The same as for [`Writer::create`].
    pub(crate) fn create_unnamed(
        fs: &dyn FileSystem,
        dir: &Path,
        number: u64,
        counters: Arc<Counters>,
    ) -> Result<Self> {
        let path = dir.join(file_name(number));
        let file = fs.create_new(&path).map_err(Error::io("create", &path))?;
        let identity = Identity { number, salt: random_salt(number) };
        let header = SegmentHeader { log: identity, previous_generation: None }.encode();
        let begin = || {
            file.write_all_at(&header, 0).map_err(Error::io("write", &path))?;
            // The header is synced before the first frame is written: so a missing or torn header always means a log without frames.
            file.sync().map_err(Error::io("sync", &path))
        };
        // If the file stayed, each attempt to open a database on a full disk would leave one more file.
        begin().inspect_err(|_| unlink(fs, &path))?;
        counters.wal_bytes.add(FIRST_FRAME);
        Ok(Self::at_start(Segment::new(file, path, identity, counters), None))
    }

    /// Like [`Writer::create`], in the file `spare` if that can be opened.
    ///
    /// # Errors
    /// The same as for [`Writer::create`]; after an error the spare file is removed too, if possible.
    pub(crate) fn create_on(
        mut spare: Spare,
        fs: &dyn FileSystem,
        dir: &Path,
        number: u64,
        counters: Arc<Counters>,
    ) -> Result<Self> {
        let identity = Identity { number, salt: random_salt(number) };
        let Some((file, written)) = spare.begin(fs, dir, identity)? else {
            return Self::create(fs, dir, number, counters);
        };
        counters.wal_bytes.add(FIRST_FRAME);
        counters.wal_zero_bytes.add(written - FIRST_FRAME);
        counters.wal_recycled.add(1);
        let path = dir.join(file_name(number));
        Ok(Self::at_start(Segment::new(file, path, identity, counters), Some(spare.rest)))
    }

    pub(super) fn at_start(segment: Segment, previous_generation: Option<PreviousGeneration>) -> Self {
        let end = FIRST_FRAME;
        Self {
            segment: Arc::new(segment),
            end,
            next_start: 0,
            allocated: previous_generation.as_ref().map_or(end, |previous| previous.end),
            starts: Vec::new(),
            previous_generation,
            frame: Vec::new(),
            was_mapped: false,
            is_closed: false,
        }
    }

    /// The end of the last assigned place, in bytes from the log's start.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Ends the writing. Every frame must be filled, and every batch published.
    pub(crate) fn finish(self) -> Arc<Segment> {
        self.segment.finish(self.end, self.starts);
        self.segment
    }

    /// Allocates space for frames up to `len` bytes from the log's start, by writing zeros, and maps it if that is possible. The log must not have
    /// frames yet. `Synced` also makes the zeros durable, so that no sync of a frame has to allocate anything.
    ///
    /// # Errors
    /// [`Error::Io`]; then the log must not be used.
    pub(crate) fn reserve(&mut self, len: u64, durability: Durability) -> Result<()> {
        let is_short = self.allocated < len;
        self.allocate(len).map_err(Error::io("write", &self.segment.path))?;
        if len > 0 {
            self.map();
            // Mapping makes the pages dirty. The next sync of a recycled file would write all of its obsolete bytes to the device.
            if durability == Durability::Buffered {
                populate(&self.segment, 0, self.allocated);
            }
        }
        match durability {
            Durability::Synced if is_short => self.segment.file.sync().map_err(Error::io("sync", &self.segment.path)),
            _ => Ok(()),
        }
    }

    /// Writes zeros up to offset `len`, if the file is shorter.
    fn allocate(&mut self, len: u64) -> io::Result<()> {
        write_zeros(&self.segment, self.allocated, len.saturating_sub(self.allocated))?;
        self.allocated = self.allocated.max(len);
        Ok(())
    }

    /// The expected end of the log when its memtable takes `full` bytes, if it takes `used` now.
    pub(crate) fn expected_end(&self, used: usize, full: usize) -> u64 {
        let expected = u128::from(self.end) * full as u128 / used.max(1) as u128;
        u64::try_from(expected).unwrap_or(u64::MAX)
    }

    /// Truncates the unused space after the last place, so that the next open need not read it. If another frame is appended nevertheless, it
    /// allocates its space itself. A power failure may undo the truncation, which leaves unused space (W5).
    pub(crate) fn release_space(&mut self) {
        let Self { segment, end, .. } = self;
        if self.allocated <= *end || segment.check_usable().is_err() {
            return;
        }
        match segment.file.truncate(*end) {
            Ok(()) => self.allocated = *end,
            Err(error) => {
                tracing::warn!(file = %segment.path.display(), %error, "could not cut off the unused space of a log");
            }
        }
    }

    /// Maps the file. If that is not possible, frames are written with system calls.
    fn map(&mut self) {
        self.was_mapped = true;
        match self.segment.file.map_mut(MAPPED_LEN) {
            Ok(mapping) => drop(self.segment.mapping.set(mapping)),
            Err(error) => tracing::debug!(file = %self.segment.path.display(), %error, "this log is not mapped"),
        }
    }

    /// Whether another log used the file before. Then a power failure that undoes [`Writer::release_space`] may bring back a part of an old frame.
    pub(crate) fn is_recycled(&self) -> bool {
        self.previous_generation.is_some()
    }

    /// Whether an append has found no space: then later frames must go to another log.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The shared half, for syncs without this writer.
    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Assigns a place and space to the frame of a batch; `range` is its first sequence number and the number of its operations. The caller must then
    /// have the frame [filled](Segment::fill). Once this and all earlier frames are filled, the batch survives a killed process; after a
    /// [sync](Segment::sync) it survives a power failure.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a payload longer than [`MAX_BATCH_LEN`]; then nothing has changed. Any failure to write; after it, and after a
    /// failed sync, every call returns [`Error::ReadOnly`]. If space is lacking, the log [is closed](Self::is_closed) instead, if possible, and it
    /// contains no part of the batch.
    pub(crate) fn claim(&mut self, range: (SeqNo, u32), payload: Payload<'_>) -> Result<Claim> {
        self.segment.check_usable()?;
        assert!(!self.is_closed, "W4: an append to a log that is closed");
        let len = payload.bytes().len();
        if len > MAX_BATCH_LEN {
            return Err(Error::InvalidArgument(format!("batch of {len} bytes is too long: at most {MAX_BATCH_LEN}")));
        }
        let offset = self.end;
        let end = offset + frame_len(len as u32);
        let mut claim = Claim { offset, end, range, synced: self.segment.frontier(), is_written: false };
        let placed = match self.has_mapped_space(&claim) {
            Ok(true) if !self.is_all_synced() => {
                self.clear_behind(end);
                Ok(())
            }
            Ok(_) => {
                claim.is_written = true;
                self.write_frame(&claim, payload)
            }
            Err(error) => Err(error),
        };
        placed.map_err(|error| self.fail_append(error))?;
        self.segment.counters.write_line.frame_bytes.add(end - offset);
        if offset >= self.next_start {
            self.starts.push(offset);
            self.next_start = offset + STARTS_APART;
        }
        self.end = end;
        Ok(claim)
    }

    /// Whether all frames so far are synced, as is the case when each write is synced before the next one. The sync has made the last page read-only
    /// for the mapping: a store to it would fault, and the next sync would make it read-only again. Both together take longer than a system call.
    fn is_all_synced(&self) -> bool {
        self.segment.is_synced_at_all() && self.segment.synced() == self.end
    }

    /// Whether the frame can be written to the mapping; then its space exists (W6).
    fn has_mapped_space(&mut self, claim: &Claim) -> io::Result<bool> {
        if !self.was_mapped && claim.offset >= MAPPED_FROM && !self.is_all_synced() {
            self.map();
        }
        if self.segment.mapping.get().is_none() || claim.end > MAPPED_LEN {
            return Ok(false);
        }
        if self.allocated < claim.end {
            if claim.end - self.allocated > SPACE_AT_ONCE {
                // Writing zeros first would double the work.
                return Ok(false);
            }
            let from = self.allocated;
            let step = from.clamp(LEAST_SPACE, SPACE_AT_ONCE);
            self.allocate(claim.end.max(from + step).min(MAPPED_LEN))?;
            populate(&self.segment, from, self.allocated);
        }
        Ok(true)
    }

    /// Clears the remains of the file's previous generation after `end`, in the mapping.
    fn clear_behind(&mut self, end: u64) {
        let zeros = self.zeros_behind(end);
        let Some(mapping) = self.segment.mapping.get().filter(|_| zeros > 0) else { return };
        for (at, zeros) in zeros_at(end, zeros) {
            mapping.write(zeros, at);
        }
    }

    fn zeros_behind(&mut self, end: u64) -> u64 {
        self.previous_generation.as_mut().map_or(0, |previous| previous.zeros_behind(end) as u64)
    }

    /// Writes a frame to the file, and the zeros that must follow it. After an error the first byte may be in the file without the last.
    fn write_frame(&mut self, claim: &Claim, payload: Payload<'_>) -> io::Result<()> {
        let header = FrameHeader::encode(self.segment.seed, claim.offset, claim.range, claim.synced, payload);
        let mut zeros_end = claim.end + self.zeros_behind(claim.end);
        if claim.end > self.allocated && self.is_all_synced() {
            // A sync must also write a changed file length, which takes longer than writing the frame: so the file grows by more than one frame.
            zeros_end = zeros_end.next_multiple_of(SYNCED_STEP);
        }
        let bytes = payload.bytes();
        let payload_at = claim.offset + FRAME_HEADER_LEN as u64;
        let len = (zeros_end - claim.offset) as usize;
        if len > ONE_CALL {
            write(&self.segment, &header, claim.offset)?;
            write(&self.segment, bytes, payload_at)?;
            // The missing part of the frame is zeros too.
            let payload_end = payload_at + bytes.len() as u64;
            write_zeros(&self.segment, payload_end, zeros_end - payload_end)?;
        } else {
            self.frame.clear();
            self.frame.extend_from_slice(&header);
            self.frame.extend_from_slice(bytes);
            self.frame.resize(len, 0);
            write(&self.segment, &self.frame, claim.offset)?;
            self.segment.counters.wal_zero_bytes.add(zeros_end - claim.end);
        }
        self.allocated = self.allocated.max(zeros_end);
        Ok(())
    }

    /// Ends the log after a failed append: closes it if space was lacking, otherwise fails for good.
    #[cold]
    fn fail_append(&mut self, source: io::Error) -> Error {
        let segment = &*self.segment;
        let error = Error::io("append to", &segment.path)(source);
        self.is_closed = error.is_want_of_space() && segment.cut_behind(self.end).is_ok();
        if self.is_closed { error } else { segment.fail(error) }
    }

    /// Appends the frame of one batch. Returns the end of the frame.
    #[cfg(test)]
    pub(super) fn append(&mut self, first_seqno: SeqNo, count: u32, batch: &[u8]) -> Result<u64> {
        self.append_payload(first_seqno, count, Payload::Raw(batch))
    }

    #[cfg(test)]
    pub(super) fn append_payload(&mut self, first_seqno: SeqNo, count: u32, payload: Payload<'_>) -> Result<u64> {
        let claim = self.claim((first_seqno, count), payload)?;
        self.segment.fill(&claim, payload);
        self.segment.complete(claim.end());
        Ok(claim.end())
    }
}

/// A number that no other log has: it is made of the operating system's entropy and the clock.
fn random_salt(number: u64) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    RandomState::new().hash_one((number, now.as_nanos()))
}
