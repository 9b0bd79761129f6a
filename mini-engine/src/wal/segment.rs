//! The shared half of a log that is being written: its positions, its space in memory, and the way to sync it.
//!
//! W2, W3 and W4 of the [writer](super::writer) are kept here. S2 to S4, which are about syncs, are kept by [`GroupCommit`].
//!
//! S1 `end` is the end of the last frame. It is known when the writer is done; until then the writer has it for itself.
//! S5 a segment that is dropped closes its file and unmaps it, which takes long. So nothing that the holder of the write lock calls drops
//!    an earlier segment: where it may be the last reference, it is handed out.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::format::{FIRST_FRAME, FrameHeader, Identity, Position};
use super::group_commit::GroupCommit;
use super::payload::Payload;
use super::recycle::Spare;
use crate::error::{Error, Result};
use crate::fs::{File, Mapping};
use crate::lock::{lock, on_unwind};
use crate::metrics::Counters;
use crate::types::SeqNo;

/// A frame's place in a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(super) offset: u64,
    pub(super) end: u64,
    /// The first sequence number, and how many there are.
    pub(super) range: (SeqNo, u32),
    pub(super) synced: Position,
    /// The frame is there already.
    pub(super) is_written: bool,
}

impl Claim {
    /// The end of the frame, in bytes from the log's start.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }
}

/// The shared half of a log that is being written: its positions, and the way to sync it.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(super) file: Arc<dyn File>,
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
    pub(super) counters: Arc<Counters>,
    /// The file in memory, once it is mapped.
    pub(super) mapping: OnceLock<Box<dyn Mapping>>,
    /// `u64::MAX` until the writer is done.
    end: AtomicU64,
    commit: GroupCommit,
    /// Where frames start, some of them, for the file's next generation.
    starts: Mutex<Vec<u64>>,
    /// The contents are durable elsewhere, and those of all earlier logs.
    released: AtomicBool,
    /// The log before this one, until it is known to be synced whole or released.
    previous: Mutex<Option<Arc<Segment>>>,
    /// There may be one that still matters: saves a look under the lock.
    has_previous: AtomicBool,
    failure: OnceLock<String>,
}

impl Segment {
    /// A log that has its header, which is synced.
    pub(super) fn new(
        file: Arc<dyn File>,
        path: PathBuf,
        identity: Identity,
        previous: Option<Arc<Segment>>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            file,
            path,
            identity,
            counters,
            mapping: OnceLock::new(),
            end: AtomicU64::new(u64::MAX),
            commit: GroupCommit::new(FIRST_FRAME),
            starts: Mutex::default(),
            released: AtomicBool::new(false),
            has_previous: AtomicBool::new(previous.is_some()),
            previous: Mutex::new(previous),
            failure: OnceLock::new(),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.identity.number
    }

    /// Says that the writer is done: every frame is whole, and the last one ends at `end`. Frames start at `starts`, among other
    /// places.
    pub(super) fn finish(&self, end: u64, starts: Vec<u64>) {
        *lock(&self.starts) = starts;
        self.end.store(end, Ordering::Release);
        self.complete(end);
    }

    /// Says which log was written before this one.
    pub(super) fn set_previous(&self, previous: Arc<Segment>) {
        *lock(&self.previous) = Some(previous);
        self.has_previous.store(true, Ordering::Release);
    }

    /// Writes the frame of `claim` in its place, unless that is done. By any thread, beside any other.
    pub(crate) fn fill(&self, claim: &Claim, payload: Payload<'_>) {
        if let Some(mapping) = self.mapping.get().filter(|_| !claim.is_written) {
            let header = FrameHeader::encode(self.identity, claim.offset, claim.range, claim.synced, payload);
            mapping.write(&header, claim.offset);
            mapping.write(payload.bytes(), claim.offset + header.len() as u64);
        }
    }

    /// Says that every frame before `end` is whole (S2): a sync that begins from now on covers them.
    pub(crate) fn complete(&self, end: u64) {
        self.commit.complete(end);
    }

    /// Up to where this file has been synced, in bytes. Says nothing of earlier logs.
    pub(crate) fn synced(&self) -> u64 {
        self.commit.synced()
    }

    pub(crate) fn is_synced_at_all(&self) -> bool {
        self.synced() > FIRST_FRAME
    }

    /// Makes every [complete](Self::complete) frame durable, and all of the earlier logs of the chain. Blocks for the
    /// device, not for appends; a call that finds everything synced costs two locks. One that finds the log released has
    /// nothing to do, and leaves the file alone: it may be another log's by now.
    ///
    /// # Errors
    /// The failure of the sync, and [`Error::ReadOnly`] with its cause for every later call and append. So after a panic: it is not known
    /// what the device has done, and the next sync would not tell (rule 7).
    pub(crate) fn sync(&self) -> Result<()> {
        let turn = self.commit.turn();
        self.check_usable()?;
        if self.released.load(Ordering::Acquire) {
            return Ok(());
        }
        let previous = lock(&self.previous).clone();
        if let Some(previous) = previous {
            if !previous.released.load(Ordering::Acquire) {
                previous.sync().map_err(|error| self.fail(error))?;
            }
            drop(self.take_previous());
        }
        let device = || self.file.sync().map_err(|error| self.fail(Error::io("sync", &self.path)(error)));
        let unwound =
            || drop(self.fail(Error::ReadOnly { cause: "a thread panicked while it synced a log".to_owned() }));
        if on_unwind(|| turn.sync(device), unwound)? {
            self.counters.wal_syncs.add(1);
        }
        Ok(())
    }

    /// Tells later logs that they need not wait for this one: its contents are in an installed table. Ends the chain here, so that it does
    /// not keep the files of old logs open; what was before, for the caller to drop (S5).
    #[must_use = "it is dropped without the write lock"]
    pub(crate) fn release(&self) -> Option<Arc<Segment>> {
        self.released.store(true, Ordering::Release);
        self.take_previous()
    }

    /// The log before this one, for the caller to drop (S5), if nothing of it has to be synced any more.
    #[must_use = "it is dropped without the write lock"]
    pub(crate) fn take_settled(&self) -> Option<Arc<Segment>> {
        let mut previous = lock(&self.previous);
        let settled = previous.take_if(|previous| previous.is_settled());
        if previous.is_none() {
            self.has_previous.store(false, Ordering::Release);
        }
        settled
    }

    fn take_previous(&self) -> Option<Arc<Segment>> {
        let mut previous = lock(&self.previous);
        self.has_previous.store(false, Ordering::Release);
        previous.take()
    }

    /// What is worth keeping of the file for another log, at most `max_len` bytes; the rest is cut off. The writer must be gone.
    /// From then on nothing here touches the file. `None` if nothing is worth it, or if the file may still
    /// be needed: as long as the log is not released, while it is being synced, after a failure. Asked once.
    pub(crate) fn retire(&self, max_len: u64) -> Option<Spare> {
        // A sync that comes later finds the log released.
        let _idle = self.commit.try_turn()?;
        if !self.released.load(Ordering::Acquire) || self.failure.get().is_some() {
            return None;
        }
        let starts = std::mem::take(&mut *lock(&self.starts));
        let spare = Spare::of(self.identity, starts, self.synced(), max_len)?;
        match self.file.truncate(spare.rest.end) {
            Ok(()) => Some(spare),
            Err(error) => {
                tracing::warn!(file = %self.path.display(), %error, "could not cut a log's file for the next log");
                None
            }
        }
    }

    /// The position before which everything is synced.
    pub(super) fn frontier(&self) -> Position {
        if self.has_previous.load(Ordering::Acquire) {
            match &*lock(&self.previous) {
                Some(earlier) if !earlier.is_settled() => return earlier.frontier(),
                // It stays: this is called with the write lock held (S5).
                Some(_) | None => self.has_previous.store(false, Ordering::Release),
            }
        }
        Position { log: self.number(), offset: self.synced() }
    }

    /// Whether nothing of this log or those before it has to be synced any more. No frame is appended to it now.
    fn is_settled(&self) -> bool {
        self.released.load(Ordering::Acquire)
            || (self.synced() >= self.end.load(Ordering::Acquire)
                && lock(&self.previous).as_ref().is_none_or(|previous| previous.is_settled()))
    }

    /// Cuts off what an append without space has left behind `end`, for good (W4). Does not count as a sync of the frames before it:
    /// that needs the earlier logs too (W3).
    pub(super) fn cut_behind(&self, end: u64) -> Result<()> {
        let _turn = self.commit.turn();
        self.check_usable()?;
        self.file.truncate(end).map_err(Error::io("truncate", &self.path))?;
        self.file.sync().map_err(Error::io("sync", &self.path))
    }

    pub(super) fn check_usable(&self) -> Result<()> {
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
