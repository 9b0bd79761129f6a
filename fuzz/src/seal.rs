//! Corrects the checksums of damaged bytes, so that the bytes pass the first check and reach the decoders. It was written from
//! `docs/src/formats.md` alone, so it checks that page too.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The part of a file that a target damages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Log,
    Block,
    Partition,
    Root,
    Properties,
    Footer,
    Manifest,
}

/// The kind of file that a part is in.
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
            Part::Block | Part::Partition | Part::Root | Part::Properties | Part::Footer => FileKind::Table,
        }
    }

    /// In the order of their numbers.
    pub(crate) const ALL: [Part; 7] =
        [Part::Log, Part::Block, Part::Partition, Part::Root, Part::Properties, Part::Footer, Part::Manifest];
}

const FOOTER_LEN: usize = 80;
const TRAILER_LEN: usize = 13;
const LOG_HEADER_LEN: usize = 56;
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
        Part::Partition => partitions(file, block(0), block(16)),
        Part::Root => std::iter::once(block(16)).collect(),
        Part::Properties => std::iter::once(block(32)).collect(),
        Part::Block => partitions(file, block(0), block(16))
            .into_iter()
            .flat_map(|partition| data_blocks(file, partition))
            .collect(),
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

/// The frames of a log, up to the first frame of an earlier log in the same file.
fn log_frames(file: &[u8]) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut at = LOG_HEADER_LEN;
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

/// The partitions, to which the root's fences lead.
fn partitions(file: &[u8], partitions: Range<usize>, root: Range<usize>) -> Vec<Range<usize>> {
    blocks(&file[root.start..root.end - TRAILER_LEN], partitions.start)
}

/// The data blocks to which a partition leads.
fn data_blocks(file: &[u8], partition: Range<usize>) -> Vec<Range<usize>> {
    let contents = &file[partition.start..partition.end - TRAILER_LEN];
    let tail = contents.len() - 12;
    blocks(&contents[u32_at(contents, tail + 8)..tail], u64_at(contents, tail) as usize)
}

/// The blocks of the fence pointers `fences`; the first block is at `start`. Neither partitions nor the root are compressed.
fn blocks(fences: &[u8], start: usize) -> Vec<Range<usize>> {
    let count_at = fences.len() - 4;
    // The highest bit marks a shared prefix, which is not needed here.
    let count = u32_at(fences, count_at) & 0x7fff_ffff;
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for fence in 0..count {
        let mut at = u32_at(fences, count_at - 4 * (count - fence));
        let key_len = varint(fences, &mut at);
        at += key_len;
        varint(fences, &mut at);
        let end = start + varint(fences, &mut at);
        blocks.push(blocks.last().map_or(start, |before| before.end)..end);
    }
    blocks
}

fn varint(bytes: &[u8], at: &mut usize) -> usize {
    let (mut value, mut shift) = (0, 0);
    loop {
        value |= usize::from(bytes[*at] & 0x7f) << shift;
        shift += 7;
        *at += 1;
        if bytes[*at - 1] < 0x80 {
            return value;
        }
    }
}

/// Makes the checksums of `place` right for its current bytes. `number` is the number of the file.
pub(crate) fn seal(part: Part, file: &mut [u8], place: Range<usize>, number: u64) {
    let (start, offset) = (place.start, place.start as u64);
    // Uses even a damaged length if the file has that many bytes.
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
        Part::Block | Part::Partition | Part::Root | Part::Properties => {
            put(file, place.end - 8, xxh3_64_with_seed(&file[start..place.end - 8], seed([number, offset])));
        }
    }
}

fn put(file: &mut [u8], at: usize, sum: u64) {
    file[at..at + 8].copy_from_slice(&sum.to_le_bytes());
}

/// Writes the low half of `sum` at `at`.
fn put_low(file: &mut [u8], at: usize, sum: u64) {
    file[at..at + 4].copy_from_slice(&(sum as u32).to_le_bytes());
}
