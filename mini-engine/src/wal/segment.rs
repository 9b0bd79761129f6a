//! The shared half of a log that is being written: its positions, its mapped space, and its syncs.
//!
//! This file ensures W2, W3 and W4 of the [writer](super::writer). [`GroupCommit`] ensures S2 to S4, which are about syncs.
//!
//! S1 `end` is the end of the last frame. This end is set when the writer is done; until then only the writer knows it.
//! S5 dropping a segment closes its file and unmaps it, which takes long. So no function that is called with the write lock held drops an earlier
//! segment: if a function may have the last reference, it returns it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::format::{FIRST_FRAME, FrameHeader, Identity, LogSeed, Position};
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
    /// The first sequence number, and the number of operations.
    pub(super) range: (SeqNo, u32),
    pub(super) synced: Position,
    /// Whether the frame is already written.
    pub(super) is_written: bool,
}

impl Claim {
    /// The end of the frame, in bytes from the log's start.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }
}

/// The shared half of a log that is being written: its positions, and its syncs.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(super) file: Arc<dyn File>,
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
    pub(super) seed: LogSeed,
    pub(super) counters: Arc<Counters>,
    /// The mapping of the file, once it is mapped.
    pub(super) mapping: OnceLock<Box<dyn Mapping>>,
    /// `u64::MAX` until the writer is done.
    end: AtomicU64,
    commit: GroupCommit,
    /// The starts of some frames, for the next generation of the file.
    starts: Mutex<Vec<u64>>,
    /// Whether the contents of this log, and of all earlier logs, are durable elsewhere.
    released: AtomicBool,
    /// The log before this one, until it is known to be synced whole or released.
    previous: Mutex<Option<Arc<Segment>>>,
    /// Whether there may be a previous log that is not settled: this saves taking the lock.
    has_previous: AtomicBool,
    failure: OnceLock<String>,
}

impl Segment {
    /// A log whose header is synced.
    pub(super) fn new(file: Arc<dyn File>, path: PathBuf, identity: Identity, counters: Arc<Counters>) -> Self {
        Self {
            file,
            path,
            identity,
            seed: identity.log_seed(),
            counters,
            mapping: OnceLock::new(),
            end: AtomicU64::new(u64::MAX),
            commit: GroupCommit::new(FIRST_FRAME),
            starts: Mutex::default(),
            released: AtomicBool::new(false),
            has_previous: AtomicBool::new(false),
            previous: Mutex::default(),
            failure: OnceLock::new(),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.identity.number
    }

    /// Records that the writer is done: every frame is whole, and the last one ends at `end`. `starts` are the starts of some frames.
    pub(super) fn finish(&self, end: u64, starts: Vec<u64>) {
        *lock(&self.starts) = starts;
        self.end.store(end, Ordering::Release);
        self.complete(end);
    }

    /// Sets the previous log; its writer must be done. If none is set, the contents of all earlier logs are durable in tables.
    pub(crate) fn set_previous(&self, previous: Arc<Segment>) {
        *lock(&self.previous) = Some(previous);
        self.has_previous.store(true, Ordering::Release);
    }

    /// Writes the frame of `claim` to its place, unless that was done already. Any number of threads may call this at once.
    #[inline]
    pub(crate) fn fill(&self, claim: &Claim, payload: Payload<'_>) {
        if let Some(mapping) = self.mapping.get().filter(|_| !claim.is_written) {
            let header = FrameHeader::encode(self.seed, claim.offset, claim.range, claim.synced, payload);
            mapping.write(&header, claim.offset);
            mapping.write(payload.bytes(), claim.offset + header.len() as u64);
        }
    }

    /// Records that every frame before `end` is whole (S2): a sync that begins from now on covers them.
    pub(crate) fn complete(&self, end: u64) {
        self.commit.complete(end);
    }

    /// The position up to which this file is synced, in bytes. Earlier logs may still be unsynced.
    pub(crate) fn synced(&self) -> u64 {
        self.commit.synced()
    }

    /// Whether `end` is the end of a frame of this log.
    pub(crate) fn has_frames_before(&self, end: u64) -> bool {
        end > FIRST_FRAME
    }

    pub(crate) fn is_synced_at_all(&self) -> bool {
        self.synced() > FIRST_FRAME
    }

    /// Makes every [complete](Self::complete) frame durable, and all frames of the earlier logs of the chain. Waits for the device, but does not
    /// block appends. If everything is synced already, a call costs two locks. If the log is released, there is nothing to do, and the file is not
    /// touched: it may already belong to another log.
    ///
    /// # Errors
    /// The error of the sync, and [`Error::ReadOnly`] with its cause for every later call and append. The same holds after a panic: the effect on the
    /// device is unknown, and the next sync would not report it (rule 7).
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

    /// Marks this log as settled, so that later logs need not wait for its sync: its contents are in an installed table. Ends the chain here, so that
    /// it does not keep the files of old logs open. Returns the previous log for the caller to drop (S5).
    #[must_use = "it is dropped without the write lock"]
    pub(crate) fn release(&self) -> Option<Arc<Segment>> {
        self.released.store(true, Ordering::Release);
        self.take_previous()
    }

    /// Returns the previous log, if no part of it must be synced any more, for the caller to drop (S5).
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

    /// The part of the file that is worth keeping for another log, at most `max_len` bytes; the rest is cut off. The writer must have been dropped.
    /// From then on this segment does not touch the file. `None` if nothing is worth keeping, or if the file may still be needed: while the log is
    /// not released, during a sync, and after a failure. May be called once.
    pub(crate) fn retire(&self, max_len: u64) -> Option<Spare> {
        // A later sync finds the log released.
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
    #[inline]
    pub(super) fn frontier(&self) -> Position {
        let own = Position { log: self.number(), offset: self.synced() };
        if self.has_previous.load(Ordering::Acquire) { self.previous_frontier().unwrap_or(own) } else { own }
    }

    /// The position in an earlier log before which everything is synced, if that log is not settled.
    #[cold]
    fn previous_frontier(&self) -> Option<Position> {
        match &*lock(&self.previous) {
            Some(earlier) if !earlier.is_settled() => return Some(earlier.frontier()),
            // The previous log is not dropped here, because the caller holds the write lock (S5).
            Some(_) | None => self.has_previous.store(false, Ordering::Release),
        }
        None
    }

    /// Whether no part of this log or earlier ones must be synced any more. No frame may be appended to it any more.
    fn is_settled(&self) -> bool {
        self.released.load(Ordering::Acquire)
            || (self.synced() >= self.end.load(Ordering::Acquire)
                && lock(&self.previous).as_ref().is_none_or(|previous| previous.is_settled()))
    }

    /// Durably cuts off the remains, after `end`, of an append that found no space (W4). This does not count as a sync of the frames before `end`,
    /// which would need syncs of the earlier logs too (W3).
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

    /// Ends this log with `error`. The first failure is kept.
    pub(super) fn fail(&self, error: Error) -> Error {
        self.failure.get_or_init(|| match &error {
            Error::ReadOnly { cause } => cause.clone(),
            other => other.to_string(),
        });
        error
    }
}
