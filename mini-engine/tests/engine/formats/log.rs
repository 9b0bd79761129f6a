//! Reads logs, as described in "Log" of the page `formats.md`.

use crate::formats::bytes::{Bytes, Entry, Read, checksum, need, seed};

const HEADER_LEN: usize = 56;
const FRAME_HEADER_LEN: usize = 48;
const MAX_BATCH_LEN: u64 = (1 << 31) - 1;
const MAX_SEQNO: u64 = (1 << 56) - 1;

/// A log and an offset in it: all bytes before the offset were synced when a frame was written.
pub(crate) type Synced = (u64, u64);

/// The contents of a single log.
pub(crate) struct Log {
    /// The sequence number of each batch's first operation, and its operations.
    pub(crate) batches: Vec<(u64, Vec<Entry>)>,
    /// The number of compressed batches.
    pub(crate) compressed: usize,
    /// The offset of the end of the frames.
    pub(crate) end: u64,
    /// Whether there are nonzero bytes behind the end.
    pub(crate) is_torn: bool,
    /// Whether there are frames of the file's previous log behind the end.
    pub(crate) has_previous: bool,
}

/// The number and the salt of a log.
type Identity = (u64, u64);

struct Header {
    own: Identity,
    /// The previous log of the file.
    previous: Option<Identity>,
}

struct Frame<'a> {
    is_compressed: bool,
    operations: u32,
    first_seqno: u64,
    synced: Synced,
    payload: &'a [u8],
    next: usize,
}

/// Reads log `number` up to its end.
pub(crate) fn read(number: u64, file: &[u8]) -> Read<Log> {
    let mut log = Log { batches: vec![], compressed: 0, end: 0, is_torn: false, has_previous: false };
    if was_never_begun(file) {
        return Ok(log);
    }
    let Header { own, previous } = header(number, file)?;
    let mut at = HEADER_LEN;
    while let Some(frame) = frame(own, file, at) {
        log.batches.push((frame.first_seqno, operations(&frame)?));
        log.compressed += usize::from(frame.is_compressed);
        at = frame.next;
    }
    log.end = at as u64;
    let synced = newest_sync(own, file, at);
    // Zeros and then a frame of the file's previous log are no tear, unless frames of this log follow.
    let previous_at =
        previous.and_then(|previous| (at..file.len()).step_by(8).find(|&at| frame(previous, file, at).is_some()));
    let rest = match previous_at {
        Some(previous_at) if synced.is_none() => &file[at..previous_at],
        _ => &file[at..],
    };
    log.has_previous = previous_at.is_some();
    log.is_torn = rest.iter().any(|&byte| byte != 0);
    need(!log.is_torn || !log.is_contradicted(number, synced), "bytes that were synced are not there")?;
    Ok(log)
}

impl Log {
    /// Whether this log, number `own`, ends too early: before the synced position `synced`.
    pub(crate) fn is_contradicted(&self, own: u64, synced: Option<Synced>) -> bool {
        synced.is_some_and(|(log, offset)| log > own || log == own && offset > self.end)
    }
}

/// The newest synced position in any valid frame of log `number`, even behind the log's end.
pub(crate) fn synced_in(number: u64, file: &[u8]) -> Read<Option<Synced>> {
    if was_never_begun(file) {
        return Ok(None);
    }
    let header = header(number, file)?;
    Ok(newest_sync(header.own, file, HEADER_LEN))
}

/// The newest synced position in a valid frame at or behind `from`.
fn newest_sync(log: Identity, file: &[u8], from: usize) -> Option<Synced> {
    (from..file.len()).step_by(8).filter_map(|at| Some(frame(log, file, at)?.synced)).max()
}

/// Whether the creation of the log was interrupted.
pub(crate) fn was_never_begun(file: &[u8]) -> bool {
    file.len() < HEADER_LEN || file.iter().all(|&byte| byte == 0)
}

/// Checks the header.
fn header(number: u64, file: &[u8]) -> Read<Header> {
    let mut bytes = Bytes::new(file);
    need(bytes.take(8)? == b"mini-wal", "another magic")?;
    let (version, zero, own_number, salt) = (bytes.u32()?, bytes.u32()?, bytes.u64()?, bytes.u64()?);
    let previous = (bytes.u64()?, bytes.u64()?);
    need(bytes.u64()? == checksum(&file[..48], 0), "checksum of the header")?;
    need(version == 1 && zero == 0 && own_number == number, "another version or number")?;
    Ok(Header { own: (number, salt), previous: Some(previous).filter(|previous| previous.0 > 0) })
}

/// The valid frame at `at`.
fn frame((number, salt): Identity, file: &[u8], at: usize) -> Option<Frame<'_>> {
    let (head, rest) = file.get(at..)?.split_at_checked(FRAME_HEADER_LEN)?;
    let seed = seed(&[number, salt, at as u64]);
    let mut bytes = Bytes::new(head);
    if bytes.u32().ok()? != checksum(&head[4..], seed) as u32 {
        return None;
    }
    let (len, kind, zeros) = (bytes.u32().ok()?, bytes.u8().ok()?, bytes.take(3).ok()?);
    let (operations, first_seqno) = (bytes.u32().ok()?, bytes.u64().ok()?);
    let (synced, sum) = ((bytes.u64().ok()?, bytes.u64().ok()?), bytes.u64().ok()?);
    let payload = rest.get(..len as usize)?;
    let next = (at + FRAME_HEADER_LEN + payload.len()).next_multiple_of(8);
    let padding = file.get(at + FRAME_HEADER_LEN + payload.len()..next)?;
    let valid = u64::from(len) <= MAX_BATCH_LEN
        && matches!(kind, 1 | 2)
        && zeros.iter().chain(padding).all(|&byte| byte == 0)
        && first_seqno.saturating_add(u64::from(operations)) <= MAX_SEQNO + 1
        && sum == checksum(payload, seed);
    valid.then_some(Frame { is_compressed: kind == 2, operations, first_seqno, synced, payload, next })
}

/// The operations of a frame's batch, in their order.
fn operations(frame: &Frame<'_>) -> Read<Vec<Entry>> {
    let decompressed = match frame.is_compressed {
        true => Some(decompressed(frame.payload)?),
        false => None,
    };
    let mut bytes = Bytes::new(decompressed.as_deref().unwrap_or(frame.payload));
    let mut operations = Vec::new();
    while !bytes.is_empty() {
        let kind = bytes.u8()?;
        let (key, seqno) = (bytes.prefixed()?, frame.first_seqno + operations.len() as u64);
        operations.push(match kind {
            0 => Entry::new(key, seqno, None)?,
            1 => Entry::new(key, seqno, Some(bytes.prefixed()?))?,
            2 => Entry::range(key, bytes.prefixed()?, seqno)?,
            3 => Entry::expiring(key, seqno, bytes.prefixed()?)?,
            unknown => return Err(format!("kind {unknown} of an operation")),
        });
    }
    need(operations.len() as u64 == u64::from(frame.operations), "another number of operations")?;
    Ok(operations)
}

fn decompressed(payload: &[u8]) -> Read<Vec<u8>> {
    let mut bytes = Bytes::new(payload);
    let (len, stored) = (u64::from(bytes.u32()?), bytes.rest());
    need(len <= MAX_BATCH_LEN && len <= (stored.len() as u64 + 1) * 32_768, "a batch longer than it can be")?;
    let batch = zstd::bulk::decompress(stored, len as usize).map_err(|error| error.to_string())?;
    need(batch.len() as u64 == len, "a batch of another length")?;
    Ok(batch)
}
