//! Assigns places in a log to frames, and writes the frames if that needs a system call.
//!
//! A log has space in advance: zeros, or the frames of the log that used its file before. Where the file system allows it, the space is mapped into
//! memory. Then a frame only gets its place from the [`Writer`], under the engine's write lock, and any number of threads [fill](Segment::fill)
//! their places at once, without the lock and without a system call. Without a mapping the writer writes the frame itself, before it assigns the
//! next place. [`Writer`] belongs to the holder of the engine's write lock; [`Segment`] is the shared half.
//!
//! W1 places are assigned in order, without gaps except padding, and never twice. In a file that another log used before, zeros may follow the last
//! place (see [`super::recycle`]); later frames overwrite them.
//! W2 after a failed append or sync nothing is appended or synced here any more, and no later log of the chain can be synced: the contents of the
//! device are unknown until a reopen (durability rule 7). The exception is an append that finds no space: see W4.
//! W3 a segment is synced after all earlier ones of its chain that still matter (durability rule 5), so "log L is
//!    synced up to offset O" means that all logs before L are synced whole. Frames record that position.
//! W4 an append without space closes its log: the file is cut behind the last place, and the cut is synced before
//!    the append returns. Nothing is appended to this log afterwards (rule 7), but a later log may follow it. Replay finds
//!    a log that ends cleanly, and the next log's first frame has the number that the refused one would have had (rule 11).
//!    Without the sync, a power cut could leave a part of the refused frame in front of a later log whose frames record
//!    that this one is synced whole: that would be corruption (rule 2), though nothing was lost. If the cut or its sync
//!    fails, W2 applies.
//! W5 space may be written as zeros ahead of the frames ([`Writer::reserve`]). To replay, zeros behind the last frame are
//!    unused space, whether they were written or lost.
//! W6 only space that was written before is used through a mapping: a full disk has shown there already, as an error of that earlier write.
//! W7 a process that is killed while threads fill their places leaves holes. Replay ends at the first. The frames behind it were not acknowledged,
//! since writes are published in the order of their places; and no frame records a sync beyond a hole (S3), so it is a torn tail. A power cut has
//! the same effect as after `write` calls: any of the unsynced pages may be missing.

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

/// Appends to one log.
#[derive(Debug)]
pub(crate) struct Writer {
    segment: Arc<Segment>,
    /// The end of the last assigned place.
    end: u64,
    /// The start of the next frame that begins here or later is remembered.
    next_start: u64,
    /// The file was written up to here, so it has this much space.
    allocated: u64,
    /// The starts of some frames, for the file's next generation.
    starts: Vec<u64>,
    /// The remains of the file's previous generation, if it had one.
    previous_generation: Option<PreviousGeneration>,
    /// A frame that is being written by a system call.
    frame: Vec<u8>,
    /// Whether a mapping was tried.
    was_mapped: bool,
    /// Whether an append found no space (W4).
    is_closed: bool,
}

/// A frame up to this length is written by one call, a longer one by several, because a copy of it would cost more. In bytes.
const ONE_CALL: usize = 64 << 10;
/// A log without reserved space is mapped when it has grown to this length: many databases are opened for a few writes. Not while each frame is
/// synced before the next one. In bytes.
const MAPPED_FROM: u64 = 64 << 10;
/// A mapped log that runs out of space doubles it, but adds at least this much and at most [`SPACE_AT_ONCE`]. In bytes.
const LEAST_SPACE: u64 = 4 << 10;
/// A log of synced frames that is not mapped grows to a multiple of this length, in bytes.
const SYNCED_STEP: u64 = 16 << 10;
/// The maximum space that is allocated at once; a frame that needs more is written by calls. In bytes.
const SPACE_AT_ONCE: u64 = 1 << 20;

impl Writer {
    /// Creates log `number` in `dir`: header written, file and directory synced.
    ///
    /// # Errors
    /// [`Error::Io`]; the file is removed then, if it can be. A file that remains has no valid frame.
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
            // Synced before the first frame: so a missing or torn header always means a log without frames.
            file.sync().map_err(Error::io("sync", &path))
        };
        // Otherwise each attempt to open a database on a full disk would leave one more file.
        begin().inspect_err(|_| unlink(fs, &path))?;
        counters.wal_bytes.add(FIRST_FRAME);
        Ok(Self::at_start(Segment::new(file, path, identity, counters), None))
    }

    /// Like [`Writer::create`], in the file `spare` if that can be opened.
    ///
    /// # Errors
    /// The same as for [`Writer::create`]; the spare file is gone then, if it can be removed.
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

    /// Ends the writing. Every frame is filled, and every batch published.
    pub(crate) fn finish(self) -> Arc<Segment> {
        self.segment.finish(self.end, self.starts);
        self.segment
    }

    /// Allocates space for frames up to `len` bytes from the log's start, by writing zeros, and maps it if that is possible. For a
    /// log without frames. `Synced` also makes the zeros durable, so that no sync of a frame has to allocate anything.
    ///
    /// # Errors
    /// [`Error::Io`]; the log must not be used then.
    pub(crate) fn reserve(&mut self, len: u64, durability: Durability) -> Result<()> {
        let is_short = self.allocated < len;
        self.allocate(len).map_err(Error::io("write", &self.segment.path))?;
        if len > 0 {
            self.map();
            // This makes the pages dirty. The next sync of a recycled file would write all its dead bytes to the device.
            if durability == Durability::Buffered {
                populate(&self.segment, 0, self.allocated);
            }
        }
        match durability {
            Durability::Synced if is_short => self.segment.file.sync().map_err(Error::io("sync", &self.segment.path)),
            _ => Ok(()),
        }
    }

    /// Writes zeros up to `len`, if the file is shorter.
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

    /// Gives back the space behind the last place: the next open need not read it. A frame that comes nevertheless allocates its space itself. A
    /// power cut may leave the file as it was, which is space too (W5).
    pub(crate) fn release_space(&mut self) {
        let Self { segment, end, .. } = self;
        if self.allocated <= *end || segment.check_usable().is_err() {
            return;
        }
        match segment.file.truncate(*end) {
            Ok(()) => (self.allocated, self.previous_generation) = (*end, None),
            Err(error) => {
                tracing::warn!(file = %segment.path.display(), %error, "could not cut off the unused space of a log");
            }
        }
    }

    /// Maps the file. If that is not possible, frames are written by calls.
    fn map(&mut self) {
        self.was_mapped = true;
        match self.segment.file.map_mut(MAPPED_LEN) {
            Ok(mapping) => drop(self.segment.mapping.set(mapping)),
            Err(error) => tracing::debug!(file = %self.segment.path.display(), %error, "this log is not mapped"),
        }
    }

    /// Whether an append has found no space: later frames must go to another log.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The shared half, for syncing without this writer.
    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Assigns a place and space to the frame of a batch with these first sequence number and number of operations. The caller then has it [filled](Segment::fill). Once it and all earlier frames are
    /// filled, the batch survives a killed process; after a [sync](Segment::sync) it survives a power cut.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a payload longer than [`MAX_BATCH_LEN`]; nothing has happened. Any failure to
    /// write; after it, and after a failed sync, every call is [`Error::ReadOnly`]. If there is no space, the log [is closed](Self::is_closed)
    /// instead, if that is possible, and no part of the batch is in it.
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

    /// Whether all frames so far are synced, as when each write is synced before the next one. The sync has made the last page read-only for the
    /// mapping: a store there would fault, and the next sync would make it read-only again. Together that takes longer than a system call.
    fn is_all_synced(&self) -> bool {
        self.segment.is_synced_at_all() && self.segment.synced() == self.end
    }

    /// Whether the frame can go into the mapping; then its space exists (W6).
    fn has_mapped_space(&mut self, claim: &Claim) -> io::Result<bool> {
        if !self.was_mapped && claim.offset >= MAPPED_FROM && !self.is_all_synced() {
            self.map();
        }
        if self.segment.mapping.get().is_none() || claim.end > MAPPED_LEN {
            return Ok(false);
        }
        if self.allocated < claim.end {
            if claim.end - self.allocated > SPACE_AT_ONCE {
                // Writing zeros first would be twice the work.
                return Ok(false);
            }
            let from = self.allocated;
            let step = from.clamp(LEAST_SPACE, SPACE_AT_ONCE);
            self.allocate(claim.end.max(from + step).min(MAPPED_LEN))?;
            populate(&self.segment, from, self.allocated);
        }
        Ok(true)
    }

    /// Clears the remains of the file's previous generation behind `end`, in the mapping.
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

    /// Writes a frame to the file, and the zeros that must follow it. The first byte may be there without the last.
    fn write_frame(&mut self, claim: &Claim, payload: Payload<'_>) -> io::Result<()> {
        let header = FrameHeader::encode(self.segment.seed, claim.offset, claim.range, claim.synced, payload);
        let mut zeros_end = claim.end + self.zeros_behind(claim.end);
        if claim.end > self.allocated && self.is_all_synced() {
            // A sync writes the new length too, which takes longer than to write the frame: so the file grows by more than a frame.
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

    /// Ends the log after a failed append: closes it if space was missing, and else for good.
    #[cold]
    fn fail_append(&mut self, source: io::Error) -> Error {
        let segment = &*self.segment;
        let error = Error::io("append to", &segment.path)(source);
        self.is_closed = error.is_want_of_space() && segment.cut_behind(self.end).is_ok();
        if self.is_closed { error } else { segment.fail(error) }
    }

    /// Appends the frame of one batch. Returns its end.
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

/// A number that no other log has: from the operating system's entropy and the clock.
fn random_salt(number: u64) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    RandomState::new().hash_one((number, now.as_nanos()))
}
