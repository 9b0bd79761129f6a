//! Appends frames to a log and syncs it.
//!
//! [`Writer`] belongs to the holder of the engine's write lock; [`Segment`] is the shared half: positions, syncing,
//! and the failure that ends both.
//!
//! W1 a group of whole frames is one write at the end of the log; no frame is ever written twice or out of order. In a file
//!    that was a log before, zeros may follow the group (see [`super::recycle`]), which later frames are written over.
//! W2 after a failed append or sync nothing is appended or synced here any more, and no later log of the chain can be
//!    synced: what is on the device is unknown until a reopen (durability rule 7). The exception is an append that finds no
//!    space: see W4.
//! W3 a segment is synced after all earlier ones of its chain that still matter (durability rule 5), so "log L is
//!    synced up to offset O" means that all logs before L are synced whole. Frames record that position.
//! W4 an append without space closes its log: the file is cut behind the last whole frame, and the cut is synced before
//!    the append returns. Nothing is appended to this log afterwards (rule 7), but a later log may follow it. Replay finds
//!    a log that ends cleanly, and the next log's first frame has the number that the refused one would have had (rule 11).
//!    Without the sync, a power cut could leave a part of the refused frames in front of a later log whose frames record
//!    that this one is synced whole: that would be corruption (rule 2), though nothing was lost. If the cut or its sync
//!    fails, W2 applies.
//! W5 space may be written as zeros ahead of the frames ([`Writer::reserve`]). To replay, zeros behind the last frame are
//!    unused space, whether they were written or lost.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use super::format::{FrameHeader, Identity, Position, SegmentHeader, file_name};
use super::payload::Payload;
use super::recycle::{PreviousGeneration, RecycledFile, STARTS_APART, Spare, remove_unused};
use crate::error::{Error, Result};
use crate::fs::{File, FileSystem};
use crate::metrics::Counters;
use crate::types::{Durability, MAX_BATCH_LEN, SeqNo};

/// The shared half of a log that is being written: its positions, and the way to sync it.
#[derive(Debug)]
pub(crate) struct Segment {
    file: Arc<dyn File>,
    path: PathBuf,
    identity: Identity,
    counters: Arc<Counters>,
    header_len: u64,
    written: AtomicU64,
    synced: AtomicU64,
    /// Where frames start, some of them, for the file's next generation.
    starts: Mutex<Vec<u64>>,
    /// The contents are durable elsewhere, and those of all earlier logs.
    released: AtomicBool,
    /// The log before this one, until it is known to be synced whole or released.
    previous: Mutex<Option<Arc<Segment>>>,
    /// Held during a sync: the kernel reports a failure once, so a second sync beside the failing one would lie.
    syncing: Mutex<()>,
    failure: OnceLock<String>,
}

impl Segment {
    /// A log that has its header, which is synced.
    pub(super) fn new(
        file: Arc<dyn File>,
        path: PathBuf,
        identity: Identity,
        header_len: u64,
        previous: Option<Arc<Segment>>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            file,
            path,
            identity,
            counters,
            header_len,
            written: AtomicU64::new(header_len),
            synced: AtomicU64::new(header_len),
            starts: Mutex::default(),
            released: AtomicBool::new(false),
            previous: Mutex::new(previous),
            syncing: Mutex::new(()),
            failure: OnceLock::new(),
        }
    }

    /// The log's number.
    pub(crate) fn number(&self) -> u64 {
        self.identity.number
    }

    /// The end of the last whole frame, in bytes.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Up to where this file has been synced, in bytes. Says nothing of earlier logs.
    pub(crate) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Whether any frame was synced.
    pub(crate) fn is_synced_at_all(&self) -> bool {
        self.synced() > self.header_len
    }

    /// Makes every frame appended before the call durable, those of earlier logs of the chain included. Blocks for the
    /// device, not for appends; a call that finds everything synced costs two locks. One that finds the log released has
    /// nothing to do, and leaves the file alone: it may be another log's by now.
    ///
    /// # Errors
    /// The failure of the sync, and [`Error::ReadOnly`] with its cause for every later call and append.
    pub(crate) fn sync(&self) -> Result<()> {
        let _syncing = lock(&self.syncing);
        self.check_usable()?;
        if self.released.load(Ordering::Acquire) {
            return Ok(());
        }
        let previous = lock(&self.previous).clone();
        if let Some(previous) = previous {
            if !previous.released.load(Ordering::Acquire) {
                previous.sync().map_err(|error| self.fail(error))?;
            }
            *lock(&self.previous) = None;
        }
        let target = self.written();
        if self.synced() < target {
            self.file.sync().map_err(|error| self.fail(Error::io("sync", &self.path)(error)))?;
            self.synced.store(target, Ordering::Release);
            self.counters.wal_syncs.add(1);
        }
        Ok(())
    }

    /// Tells later logs that they need not wait for this one: its contents are in an installed table.
    pub(crate) fn release(&self) {
        self.released.store(true, Ordering::Release);
        // Ends the chain here, so that it does not keep the files of old logs open.
        *lock(&self.previous) = None;
    }

    /// What is worth keeping of the file for another log, at most `max_len` bytes; the rest is cut off. The writer must be gone.
    /// From then on nothing here touches the file. `None` if nothing is worth it, or if the file may still
    /// be needed: as long as the log is not released, while it is being synced, after a failure. Asked once.
    pub(crate) fn retire(&self, max_len: u64) -> Option<Spare> {
        // A sync that comes later finds the log released.
        let _idle = self.syncing.try_lock().ok()?;
        if !self.released.load(Ordering::Acquire) || self.failure.get().is_some() {
            return None;
        }
        let starts = std::mem::take(&mut *lock(&self.starts));
        let spare = Spare::of(self.identity, starts, self.synced(), max_len)?;
        match self.file.truncate(spare.end()) {
            Ok(()) => Some(spare),
            Err(error) => {
                tracing::warn!(file = %self.path.display(), %error, "could not cut a log's file for the next log");
                None
            }
        }
    }

    /// The position before which everything is synced.
    fn frontier(&self) -> Position {
        let mut previous = lock(&self.previous);
        match &*previous {
            Some(earlier) if !earlier.is_settled() => earlier.frontier(),
            Some(_) | None => {
                *previous = None;
                Position { log: self.number(), offset: self.synced() }
            }
        }
    }

    /// Whether nothing of this log or those before it has to be synced any more. No frame is appended to it now.
    fn is_settled(&self) -> bool {
        self.released.load(Ordering::Acquire) || (self.synced() >= self.written() && lock(&self.previous).is_none())
    }

    /// Cuts off what an append without space has left, for good (W4). Does not count as a sync of the frames before it:
    /// that needs the earlier logs too (W3).
    fn cut_behind_last_frame(&self) -> Result<()> {
        let _syncing = lock(&self.syncing);
        self.check_usable()?;
        self.file.truncate(self.written()).map_err(Error::io("truncate", &self.path))?;
        self.file.sync().map_err(Error::io("sync", &self.path))
    }

    fn check_usable(&self) -> Result<()> {
        match self.failure.get() {
            Some(cause) => Err(Error::ReadOnly { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// Ends this log with `error`. The first failure is the one that is remembered.
    pub(super) fn fail(&self, error: Error) -> Error {
        self.failure.get_or_init(|| match &error {
            Error::ReadOnly { cause } => cause.clone(),
            other => other.to_string(),
        });
        error
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What these mutexes guard is whole at every moment, so a panic of another holder does no harm.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Appends to one log.
#[derive(Debug)]
pub(crate) struct Writer {
    segment: Arc<Segment>,
    frames: Vec<u8>,
    /// The next frame that starts here or later has its start remembered.
    next_start: u64,
    /// What is left of the file's previous generation, if it had one.
    previous_generation: Option<PreviousGeneration>,
    /// An append found no space (W4).
    is_closed: bool,
}

/// A batch to append: `count` operations, the first with sequence number `first_seqno`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Append<'a> {
    pub(crate) first_seqno: SeqNo,
    pub(crate) count: u32,
    pub(crate) payload: Payload<'a>,
}

/// Zeros are written so many bytes at a time.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
/// Memory of the buffer of frames that is kept between appends, in bytes.
const KEPT_BUFFER: usize = 1 << 20;

impl Writer {
    /// Creates log `number` in `dir`: header written, file and directory synced.
    ///
    /// `previous` is the log that was written before this one, unless its contents are durable in tables; its writer
    /// must be done.
    ///
    /// # Errors
    /// [`Error::Io`]; the file is removed then, if it can be. One that is left behind has no valid frame.
    pub(crate) fn create(
        fs: &dyn FileSystem,
        dir: &Path,
        number: u64,
        previous: Option<Arc<Segment>>,
        counters: Arc<Counters>,
    ) -> Result<Self> {
        let path = dir.join(file_name(number));
        let file = fs.create_new(&path).map_err(Error::io("create", &path))?;
        let identity = Identity { number, salt: random_salt(number) };
        let header = SegmentHeader { log: identity, previous_generation: None };
        let started = start(fs, dir, &*file, &path, header);
        started.inspect_err(|_| remove_unused(fs, &path))?;
        counters.wal_bytes.add(header.len());
        Ok(Self::at_start(Segment::new(file, path, identity, header.len(), previous, counters), None))
    }

    /// As [`Writer::create`], in the file `spare` if that can be opened.
    ///
    /// # Errors
    /// As of [`Writer::create`]; the spare file is gone then, if it can be removed.
    pub(crate) fn create_on(
        spare: Spare,
        fs: &dyn FileSystem,
        dir: &Path,
        number: u64,
        previous: Option<Arc<Segment>>,
        counters: Arc<Counters>,
    ) -> Result<Self> {
        let identity = Identity { number, salt: random_salt(number) };
        let Some(recycled) = spare.begin(fs, dir, identity)? else {
            return Self::create(fs, dir, number, previous, counters);
        };
        let RecycledFile { file, header_len, written, previous_generation } = recycled;
        counters.wal_bytes.add(written);
        counters.wal_recycled.add(1);
        let path = dir.join(file_name(number));
        Ok(Self::at_start(
            Segment::new(file, path, identity, header_len, previous, counters),
            Some(previous_generation),
        ))
    }

    pub(super) fn at_start(segment: Segment, previous_generation: Option<PreviousGeneration>) -> Self {
        Self { segment: Arc::new(segment), frames: Vec::new(), next_start: 0, previous_generation, is_closed: false }
    }

    /// Says which log was written before this one; its writer must be done. For a log that was created ahead.
    pub(crate) fn follow(&self, previous: Arc<Segment>) {
        *lock(&self.segment.previous) = Some(previous);
    }

    /// Allocates space for frames up to `len` bytes from the log's start, by writing zeros. For a log without frames.
    /// `Synced` also makes them durable, so that no sync of a frame has to allocate anything.
    ///
    /// # Errors
    /// [`Error::Io`]; the log must not be used then.
    pub(crate) fn reserve(&self, len: u64, durability: Durability) -> Result<()> {
        let segment = &*self.segment;
        let mut at = self.previous_generation.as_ref().map_or(segment.written(), PreviousGeneration::end);
        let missing = len.saturating_sub(at);
        while at < len {
            let zeros = &ZEROS[..ZEROS.len().min((len - at) as usize)];
            segment.file.write_all_at(zeros, at).map_err(Error::io("write", &segment.path))?;
            at += zeros.len() as u64;
        }
        segment.counters.wal_bytes.add(missing);
        match durability {
            Durability::Synced if missing > 0 => segment.file.sync().map_err(Error::io("sync", &segment.path)),
            _ => Ok(()),
        }
    }

    /// Whether an append has found no space: a later log has to take what follows.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The shared half, for syncing without this writer.
    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Appends a frame for each of `group`, in their order. One write call for all of them when the system takes it whole.
    /// Survives a killed process from then on, a power cut after [`Segment::sync`]. Returns the end of the last frame, in
    /// bytes from the log's start.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a payload longer than [`MAX_BATCH_LEN`]; nothing is written. Any failure to
    /// write; after it, and after a failed sync, every call is [`Error::ReadOnly`]. After want of space the log
    /// [is closed](Self::is_closed) instead, if that is possible, and nothing of the group is in it.
    pub(crate) fn append_group(&mut self, group: &[Append<'_>]) -> Result<u64> {
        let segment = &*self.segment;
        segment.check_usable()?;
        assert!(!self.is_closed, "W4: an append to a log that is closed");
        if let Some(len) = group.iter().map(|append| append.payload.bytes().len()).find(|&len| len > MAX_BATCH_LEN) {
            return Err(Error::InvalidArgument(format!("batch of {len} bytes is too long: at most {MAX_BATCH_LEN}")));
        }
        let offset = segment.written();
        let synced = segment.frontier();
        self.frames.clear();
        for &Append { first_seqno, count, payload } in group {
            let at = offset + self.frames.len() as u64;
            let range = (first_seqno, count);
            if at >= self.next_start {
                lock(&segment.starts).push(at);
                self.next_start = at + STARTS_APART;
            }
            FrameHeader::encode_frame(&mut self.frames, segment.identity, at, range, synced, payload);
        }
        let end = offset + self.frames.len() as u64;
        let zeros =
            self.previous_generation.as_mut().map_or(0, |previous_generation| previous_generation.zeros_behind(end));
        self.frames.resize(self.frames.len() + zeros, 0);
        if let Err(error) = segment.file.write_all_at(&self.frames, offset) {
            return Err(self.fail_append(error));
        }
        segment.written.store(end, Ordering::Release);
        segment.counters.wal_bytes.add(self.frames.len() as u64);
        segment.counters.wal_writes.add(1);
        if self.frames.capacity() > KEPT_BUFFER {
            self.frames = Vec::new();
        }
        Ok(end)
    }

    /// Ends the log after a failed append: closes it if space was missing, and else for good.
    #[cold]
    fn fail_append(&mut self, source: io::Error) -> Error {
        let segment = &*self.segment;
        let error = Error::io("append to", &segment.path)(source);
        self.is_closed = error.is_want_of_space() && segment.cut_behind_last_frame().is_ok();
        if self.is_closed { error } else { segment.fail(error) }
    }

    /// Appends the frame of one batch, see [`Writer::append_group`].
    #[cfg(test)]
    pub(super) fn append(&mut self, first_seqno: SeqNo, count: u32, batch: &[u8]) -> Result<u64> {
        self.append_group(&[Append { first_seqno, count, payload: Payload::Raw(batch) }])
    }
}

/// Makes the header and the name of a new log durable.
fn start(fs: &dyn FileSystem, dir: &Path, file: &dyn File, path: &Path, header: SegmentHeader) -> Result<()> {
    file.write_all_at(&header.encode(), 0).map_err(Error::io("write", path))?;
    // Synced before the first frame: so a header that is missing or torn means a log without frames, always.
    file.sync().map_err(Error::io("sync", path))?;
    fs.sync_dir(dir).map_err(Error::io("sync", dir))
}

/// A number that no other log has: from the operating system's entropy and the clock.
fn random_salt(number: u64) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    RandomState::new().hash_one((number, now.as_nanos()))
}
