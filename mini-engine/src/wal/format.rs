//! Bytes of a log: encoding and decoding of the segment header and the frame header.
//!
//! A segment has a header (56 bytes), then frames, each starting at a multiple of 8; the rest of the file is zeros, or frames of the log that used
//! the file before, or a torn tail.
//!
//! ```text
//! segment header   magic [8], version u32, zero u32, number u64, salt u64, number u64 and salt u64 of the log that the file was before
//!                  (0 and 0 if it was none), xxh3 of the 48 bytes before u64
//! frame header     header checksum u32, payload length u32, kind u8, zero [3], count u32, first seqno u64,
//!                  synced log u64, synced offset u64, payload checksum u64
//! frame            header (48 bytes), payload, zeros up to a multiple of 8
//! ```
//!
//! Invariant: a checksum covers every byte of a frame, or the byte must be zero, so no flipped bit passes.

use std::borrow::Cow;
use std::path::Path;

use super::payload::{Payload, decompress};
use crate::codec::{self, FileHeader, Reader};
use crate::error::{Error, Result};
use crate::fs::number_in;
use crate::types::{MAX_BATCH_LEN, MAX_SEQNO, SeqNo};

const HEADER: FileHeader = FileHeader { kind: "log", magic: b"mini-wal", version: 1 };
pub(super) const HEADER_LEN: usize = FileHeader::len(4);
pub(super) const FIRST_FRAME: u64 = HEADER_LEN as u64;
pub(super) const FRAME_HEADER_LEN: usize = 48;
/// Frames start at multiples of this.
pub(super) const ALIGN: u64 = 8;
/// The kind of frame whose payload is a batch.
const KIND_BATCH: u32 = 1;
/// The kind of frame whose payload is a compressed batch.
const KIND_COMPRESSED: u32 = 2;

/// A position in the sequence of logs. Ordered by log number, then by offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    /// The log's number.
    pub(crate) log: u64,
    /// The offset from the log's start, in bytes.
    pub(crate) offset: u64,
}

/// The name of the file of log `number`.
pub(crate) fn file_name(number: u64) -> String {
    format!("{number:06}.log")
}

/// The number of the log with this file name; `None` if it is not the name of a log.
pub(crate) fn parse_file_name(name: &str) -> Option<u64> {
    number_in(name, ".log")
}

/// The identity of a log, which distinguishes its frames from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) number: u64,
    pub(super) salt: u64,
}

impl Identity {
    pub(super) fn log_seed(self) -> LogSeed {
        // The seed so far, as `codec::seed` computes it from number and salt; the offset is mixed in later.
        LogSeed([self.number, self.salt].into_iter().fold(3, codec::next_seed))
    }

    fn seed(self, offset: u64) -> u64 {
        self.log_seed().at(offset)
    }
}

/// The part of the seeds of a log's checksums that all of its frames share.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogSeed(u64);

impl LogSeed {
    /// The seed for the frame at `offset`, made of the log's number, its salt and the offset.
    #[inline]
    fn at(self, offset: u64) -> u64 {
        codec::next_seed(self.0, offset)
    }
}

/// The contents of a segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) log: Identity,
    /// The log that used the file before; its frames may follow those of this log.
    pub(super) previous_generation: Option<Identity>,
}

impl SegmentHeader {
    pub(super) fn encode(self) -> Vec<u8> {
        let previous = self.previous_generation.unwrap_or(Identity { number: 0, salt: 0 });
        HEADER.encode([self.log.number, self.log.salt, previous.number, previous.salt])
    }

    /// Decodes the header in `bytes`, the first bytes of the log at `path`, which should have the number `expected`.
    pub(super) fn decode(bytes: &[u8], path: &Path, expected: u64) -> Result<Self> {
        let [number, salt, previous, previous_salt] = HEADER.decode(bytes, path)?;
        if number != expected {
            return Err(Error::corruption(path, 16, format!("log number: expected {expected}, found {number}")));
        }
        let (log, previous) = (Identity { number, salt }, Identity { number: previous, salt: previous_salt });
        Ok(Self { log, previous_generation: Some(previous).filter(|previous| previous.number > 0) })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) payload_len: u32,
    pub(super) is_compressed: bool,
    pub(super) count: u32,
    pub(super) first_seqno: SeqNo,
    /// The position before which all logs were synced when the frame was written.
    pub(super) synced: Position,
    payload_checksum: u64,
}

impl FrameHeader {
    /// Encodes the header of a frame that is stored at `offset`. The payload must have at most `MAX_BATCH_LEN` bytes.
    #[inline(always)]
    pub(super) fn encode(
        log: LogSeed,
        offset: u64,
        (first_seqno, count): (SeqNo, u32),
        synced: Position,
        payload: Payload<'_>,
    ) -> [u8; FRAME_HEADER_LEN] {
        let kind = match payload {
            Payload::Raw(_) => KIND_BATCH,
            Payload::Compressed(_) => KIND_COMPRESSED,
        };
        let payload = payload.bytes();
        let seed = log.at(offset);
        let mut out = [0; FRAME_HEADER_LEN];
        let (checksum, summed) = out.split_at_mut(size_of::<u32>());
        let mut rest = &mut *summed;
        for field in [payload.len() as u32, kind, count] {
            rest = put(rest, field.to_le_bytes());
        }
        for field in [first_seqno, synced.log, synced.offset, codec::checksum(payload, seed)] {
            rest = put(rest, field.to_le_bytes());
        }
        checksum.copy_from_slice(&(codec::checksum(summed, seed) as u32).to_le_bytes());
        out
    }

    /// Decodes the header at the start of `bytes`, if a frame of `log` with a payload of at most `room` bytes starts at `offset`. The cheap checks
    /// come first: replay calls this at every step of a damaged region.
    pub(super) fn decode(bytes: &[u8], log: Identity, offset: u64, room: u64) -> Option<Self> {
        let mut reader = Reader::new(bytes.get(..FRAME_HEADER_LEN)?);
        let checksum = reader.u32()?;
        let summed = reader.rest();
        let payload_len = reader.u32()?;
        let kind = reader.u32()?;
        let too_long = u64::from(payload_len) > room || payload_len as usize > MAX_BATCH_LEN;
        let is_known = kind == KIND_BATCH || kind == KIND_COMPRESSED;
        if !is_known || too_long || checksum != codec::checksum(summed, log.seed(offset)) as u32 {
            return None;
        }
        let header = Self {
            payload_len,
            is_compressed: kind == KIND_COMPRESSED,
            count: reader.u32()?,
            first_seqno: reader.u64()?,
            synced: Position { log: reader.u64()?, offset: reader.u64()? },
            payload_checksum: reader.u64()?,
        };
        let next = header.first_seqno.checked_add(u64::from(header.count))?;
        (next <= MAX_SEQNO + 1).then_some(header)
    }

    /// Whether `rest`, the bytes after the header up to the frame's end, are unchanged since they were written.
    pub(super) fn accepts(&self, rest: &[u8], log: Identity, offset: u64) -> bool {
        let Some((payload, padding)) = rest.split_at_checked(self.payload_len as usize) else { return false };
        padding.iter().all(|&byte| byte == 0) && codec::checksum(payload, log.seed(offset)) == self.payload_checksum
    }

    /// Decodes the batch in `payload`. The error describes the expected and the found value.
    pub(super) fn batch<'a>(&self, payload: &'a [u8]) -> Result<Cow<'a, [u8]>, String> {
        if self.is_compressed { decompress(payload).map(Cow::Owned) } else { Ok(Cow::Borrowed(payload)) }
    }

    pub(super) fn frame_len(&self) -> u64 {
        frame_len(self.payload_len)
    }
}

/// Writes `field` to the beginning of `out`. Returns the rest of `out`.
fn put<const N: usize>(out: &mut [u8], field: [u8; N]) -> &mut [u8] {
    let (place, rest) = out.split_at_mut(N);
    place.copy_from_slice(&field);
    rest
}

/// The length of a frame with a payload of `payload_len` bytes.
pub(super) fn frame_len(payload_len: u32) -> u64 {
    (FRAME_HEADER_LEN as u64 + u64::from(payload_len)).next_multiple_of(ALIGN)
}
