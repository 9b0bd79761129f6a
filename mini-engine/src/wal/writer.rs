//! Appends frames to a log and syncs it.
//!
//! [`Writer`] is owned by whoever holds the engine's write lock; [`Segment`] is the shared half: positions, syncing,
//! and the failure that ends both.
//!
//! W1 a group of whole frames is one write at the end of the log; nothing is ever written twice or out of order.
//! W2 after a failed append or sync nothing is appended or synced here any more, and no later log of the chain can be
//!    synced: what is on the device is unknown until a reopen (durability rule 7).
//! W3 a segment is synced after all earlier ones of its chain that still matter (durability rule 5), so "log L is
//!    synced up to offset O" means that all logs before L are synced whole. Frames record that position.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use super::Position;
use super::format::{FrameHeader, Identity, SEGMENT_HEADER_LEN, file_name};
use super::payload::Payload;
use crate::error::{Error, Result};
use crate::fs::{File, FileSystem};
use crate::metrics::Counters;
use crate::types::{MAX_BATCH_LEN, SeqNo};

/// The shared half of a log that is being written: its positions, and the way to sync it.
#[derive(Debug)]
pub(crate) struct Segment {
    file: Arc<dyn File>,
    path: PathBuf,
    identity: Identity,
    counters: Arc<Counters>,
    written: AtomicU64,
    synced: AtomicU64,
    /// The contents are durable elsewhere.
    released: AtomicBool,
    /// The log before this one, until it is known to be synced whole or released.
    previous: Mutex<Option<Arc<Segment>>>,
    /// Held during a sync: the kernel reports a failure once, so a second sync beside the failing one would lie.
    syncing: Mutex<()>,
    failure: OnceLock<String>,
}

impl Segment {
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

    /// Makes every frame appended before the call durable, those of earlier logs of the chain included. Blocks for the
    /// device, not for appends; a call that finds everything synced costs two locks.
    ///
    /// # Errors
    /// The failure of the sync, and [`Error::ReadOnly`] with its cause for every later call and append.
    pub(crate) fn sync(&self) -> Result<()> {
        let _syncing = lock(&self.syncing);
        self.check_usable()?;
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

    fn check_usable(&self) -> Result<()> {
        match self.failure.get() {
            Some(cause) => Err(Error::ReadOnly { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// Ends this log with `error`. The first failure is the one that is remembered.
    fn fail(&self, error: Error) -> Error {
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
}

/// A batch to append: `count` operations, the first with sequence number `first_seqno`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Append<'a> {
    pub(crate) first_seqno: SeqNo,
    pub(crate) count: u32,
    pub(crate) payload: Payload<'a>,
}

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
        let started = start(fs, dir, &*file, &path, identity);
        started.inspect_err(|_| remove_unused(fs, &path))?;
        counters.wal_bytes.add(SEGMENT_HEADER_LEN as u64);
        let segment = Segment {
            file,
            path,
            identity,
            counters,
            written: AtomicU64::new(SEGMENT_HEADER_LEN as u64),
            synced: AtomicU64::new(SEGMENT_HEADER_LEN as u64),
            released: AtomicBool::new(false),
            previous: Mutex::new(previous),
            syncing: Mutex::new(()),
            failure: OnceLock::new(),
        };
        Ok(Self { segment: Arc::new(segment), frames: Vec::new() })
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
    /// write; after it, and after a failed sync, every call is [`Error::ReadOnly`].
    pub(crate) fn append_group(&mut self, group: &[Append<'_>]) -> Result<u64> {
        let segment = &*self.segment;
        segment.check_usable()?;
        if let Some(len) = group.iter().map(|append| append.payload.bytes().len()).find(|&len| len > MAX_BATCH_LEN) {
            return Err(Error::InvalidArgument(format!("batch of {len} bytes is too long: at most {MAX_BATCH_LEN}")));
        }
        let offset = segment.written();
        let synced = segment.frontier();
        self.frames.clear();
        for &Append { first_seqno, count, payload } in group {
            let at = offset + self.frames.len() as u64;
            let range = (first_seqno, count);
            FrameHeader::encode_frame(&mut self.frames, segment.identity, at, range, synced, payload);
        }
        let written = segment.file.write_all_at(&self.frames, offset);
        written.map_err(|error| segment.fail(Error::io("append to", &segment.path)(error)))?;
        let end = offset + self.frames.len() as u64;
        segment.written.store(end, Ordering::Release);
        segment.counters.wal_bytes.add(self.frames.len() as u64);
        segment.counters.wal_writes.add(1);
        if self.frames.capacity() > KEPT_BUFFER {
            self.frames = Vec::new();
        }
        Ok(end)
    }

    /// Appends the frame of one batch, see [`Writer::append_group`].
    #[cfg(test)]
    pub(super) fn append(&mut self, first_seqno: SeqNo, count: u32, batch: &[u8]) -> Result<u64> {
        self.append_group(&[Append { first_seqno, count, payload: Payload::Raw(batch) }])
    }
}

/// Makes the header and the name of a new log durable.
fn start(fs: &dyn FileSystem, dir: &Path, file: &dyn File, path: &Path, identity: Identity) -> Result<()> {
    file.write_all_at(&identity.encode_header(), 0).map_err(Error::io("write", path))?;
    // Synced before the first frame: so a header that is missing or torn means a log without frames, always.
    file.sync().map_err(Error::io("sync", path))?;
    fs.sync_dir(dir).map_err(Error::io("sync", dir))
}

/// Removes a log that nobody will write to: each try to open a database on a full disk would leave one more.
fn remove_unused(fs: &dyn FileSystem, path: &Path) {
    if let Err(error) = fs.remove(path) {
        tracing::warn!(file = %path.display(), %error, "could not remove a log that was not completed");
    }
}

/// A number that no other log has: from the operating system's entropy and the clock.
fn random_salt(number: u64) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    RandomState::new().hash_one((number, now.as_nanos()))
}
