//! Puts checksums over damaged bytes, so that they get past the first check and the decoders behind it are asked. Written
//! from `docs/src/formats.md` alone, which it thereby checks.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The part of a file that a target damages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Log,
    Block,
    Filter,
    Index,
    Properties,
    Footer,
    Manifest,
}

/// What kind of file a part is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Log,
    Table,
    Manifest,
}

impl Part {
    pub(crate) fn file(self) -> FileKind {
        match self {
            Part::Log => FileKind::Log,
            Part::Manifest => FileKind::Manifest,
            Part::Block | Part::Filter | Part::Index | Part::Properties | Part::Footer => FileKind::Table,
        }
    }

    /// In the order of their numbers.
    pub(crate) const ALL: [Part; 7] =
        [Part::Log, Part::Block, Part::Filter, Part::Index, Part::Properties, Part::Footer, Part::Manifest];
}

const FOOTER_LEN: usize = 80;
const LOG_HEADER_LEN: usize = 40;
/// From version 3 on, whose files were other logs before.
const RECYCLED_LOG_HEADER_LEN: usize = 64;
const LOG_FRAME_HEADER_LEN: usize = 48;
const MANIFEST_HEADER_LEN: usize = 32;
const MANIFEST_FRAME_HEADER_LEN: usize = 16;

fn seed<const N: usize>(place: [u64; N]) -> u64 {
    place.iter().fold(N as u64, |seed, part| xxh3_64_with_seed(&part.to_le_bytes(), seed))
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The places of `part` in a sound file, each with a checksum of its own.
pub(crate) fn places(part: Part, file: &[u8]) -> Vec<Range<usize>> {
    let footer = file.len().saturating_sub(FOOTER_LEN);
    let block = |field: usize| {
        let start = u64_at(file, footer + field) as usize;
        start..start + u64_at(file, footer + field + 8) as usize
    };
    match part {
        Part::Log => log_frames(file),
        Part::Manifest => manifest_frames(file),
        Part::Footer => std::iter::once(footer..file.len()).collect(),
        Part::Filter => std::iter::once(block(0)).collect(),
        Part::Index => std::iter::once(block(16)).collect(),
        Part::Properties => std::iter::once(block(32)).collect(),
        // All data blocks as one place would have one checksum; the first alone is what a read of the first keys meets.
        Part::Block => std::iter::once(0..first_block_end(file, block(16))).collect(),
    }
}

fn manifest_frames(file: &[u8]) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut at = MANIFEST_HEADER_LEN;
    while at < file.len() {
        let end = at + MANIFEST_FRAME_HEADER_LEN + u32_at(file, at);
        places.push(at..end);
        at = end.next_multiple_of(8);
    }
    places
}

/// The frames of a log, up to the first that is not its own: behind them may be those of the log that the file was before.
fn log_frames(file: &[u8]) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut at = if u32_at(file, 8) < 3 { LOG_HEADER_LEN } else { RECYCLED_LOG_HEADER_LEN };
    while let Some(head) = file.get(at..at + LOG_FRAME_HEADER_LEN) {
        let seed = seed([u64_at(file, 16), u64_at(file, 24), at as u64]);
        if u32_at(head, 0) != xxh3_64_with_seed(&head[4..], seed) as u32 as usize {
            break;
        }
        let end = at + LOG_FRAME_HEADER_LEN + u32_at(head, 4);
        places.push(at..end);
        at = end.next_multiple_of(8);
    }
    places
}

/// The end of the first data block: the length in the first fence of the index, which must be stored uncompressed.
fn first_block_end(file: &[u8], index: Range<usize>) -> usize {
    let mut at = index.start + 4;
    let mut varint = || {
        let (mut value, mut shift) = (0, 0);
        loop {
            value |= usize::from(file[at] & 0x7f) << shift;
            shift += 7;
            at += 1;
            if file[at - 1] < 0x80 {
                return value;
            }
        }
    };
    let key = varint();
    // The key's bytes are plain ASCII here, each of them a varint of its own.
    // Then the seqno, then the length.
    (0..key + 1).fold(0, |_, _| varint());
    varint()
}

/// Makes the checksums of `place` right for the bytes that stand there now. `number` is the file's.
pub(crate) fn seal(part: Part, file: &mut [u8], place: Range<usize>, number: u64) {
    let (start, offset) = (place.start, place.start as u64);
    // A length that was damaged counts, if the file has so many bytes.
    let end_of = |file: &[u8], header: usize, len: usize| Some(start + header + len).filter(|&end| end <= file.len());
    match part {
        Part::Log => {
            let seed = seed([number, u64_at(file, 24), offset]);
            let end = end_of(file, LOG_FRAME_HEADER_LEN, u32_at(file, start + 4)).unwrap_or(place.end);
            put(file, start + 40, xxh3_64_with_seed(&file[start + LOG_FRAME_HEADER_LEN..end], seed));
            put_low(file, start, xxh3_64_with_seed(&file[start + 4..start + LOG_FRAME_HEADER_LEN], seed));
        }
        Part::Manifest => {
            let end = end_of(file, MANIFEST_FRAME_HEADER_LEN, u32_at(file, start)).unwrap_or(place.end);
            put_low(file, start + 4, xxh3_64_with_seed(&file[start..start + 4], seed([number, offset, 0])));
            let payload = &file[start + MANIFEST_FRAME_HEADER_LEN..end];
            put(file, start + 8, xxh3_64_with_seed(payload, seed([number, offset])));
        }
        Part::Footer => put(file, start + 64, xxh3_64_with_seed(&file[start..start + 64], seed([number, offset]))),
        Part::Block | Part::Filter | Part::Index | Part::Properties => {
            put(file, place.end - 8, xxh3_64_with_seed(&file[start..place.end - 8], seed([number, offset])));
        }
    }
}

fn put(file: &mut [u8], at: usize, sum: u64) {
    file[at..at + 8].copy_from_slice(&sum.to_le_bytes());
}

/// The low half.
fn put_low(file: &mut [u8], at: usize, sum: u64) {
    file[at..at + 4].copy_from_slice(&(sum as u32).to_le_bytes());
}
