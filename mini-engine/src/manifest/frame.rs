//! The file format of a manifest: a header, then one frame for each edit.
//!
//! Every checksum is seeded with the manifest's number and the frame's offset, so that a frame of another manifest or at another offset does not
//! pass. Frames start at multiples of 8, and the length in a frame's header has its own checksum. So after an invalid frame, the rest of the file can
//! be searched for a valid one. If there is one, the invalid frame was complete before (an edit is synced before the next is written), so it is
//! damaged and not torn.

use std::path::Path;

use crate::codec::{FileHeader, Reader, checksum, put_u32, put_u64, seed};
use crate::error::{Error, Result};

const HEADER: FileHeader = FileHeader { kind: "manifest", magic: b"mini-mft", version: 2 };
/// The length of the header, which precedes the first frame.
pub(crate) const HEADER_LEN: usize = FileHeader::len(1);
/// The length of a frame before its payload.
pub(crate) const FRAME_HEADER_LEN: usize = 16;
/// The maximum length of an edit; a version of a million tables with long keys takes less.
pub(crate) const MAX_EDIT_LEN: u32 = 1 << 30;

const ALIGNMENT: usize = 8;

/// The result of reading a manifest at an offset.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// The end of the file.
    End,
    /// A frame: its payload and the offset after it.
    Edit { payload: &'a [u8], next: usize },
    /// No valid frame at this offset, nor anywhere after it.
    Torn,
    /// No valid frame at this offset, but there is one at `later`.
    Damaged { later: usize },
}

/// The header of manifest `number`.
pub(crate) fn header(number: u64) -> Vec<u8> {
    HEADER.encode([number])
}

/// Checks the header of the file at `path`, which should be manifest `number`.
pub(crate) fn check_header(path: &Path, bytes: &[u8], number: u64) -> Result<()> {
    match HEADER.decode(bytes, path)? {
        [found] if found == number => Ok(()),
        [found] => Err(Error::corruption(path, 16, format!("manifest number: expected {number}, found {found}"))),
    }
}

/// The frame of `payload` at `offset` of manifest `number`, padded to the start of the next one.
pub(crate) fn frame(number: u64, offset: u64, payload: &[u8]) -> Result<Vec<u8>> {
    let len = u32::try_from(payload.len()).ok().filter(|&len| len <= MAX_EDIT_LEN);
    let Some(len) = len else {
        return Err(Error::Full(format!(
            "a version edit of {} bytes: at most {MAX_EDIT_LEN} are allowed",
            payload.len()
        )));
    };
    let mut out = Vec::with_capacity((FRAME_HEADER_LEN + payload.len()).next_multiple_of(ALIGNMENT));
    put_u32(&mut out, len);
    put_u32(&mut out, length_checksum(number, offset, len));
    put_u64(&mut out, checksum(payload, seed([number, offset])));
    out.extend_from_slice(payload);
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
    Ok(out)
}

/// Reads manifest `number`, whose bytes are `bytes`, at `offset`.
pub(crate) fn read(number: u64, bytes: &[u8], offset: usize) -> Found<'_> {
    if offset >= bytes.len() {
        return Found::End;
    }
    if let Some((payload, next)) = valid_frame(number, bytes, offset) {
        return Found::Edit { payload, next };
    }
    let mut candidates = (offset + ALIGNMENT..bytes.len()).step_by(ALIGNMENT);
    match candidates.find(|&later| valid_frame(number, bytes, later).is_some()) {
        Some(later) => Found::Damaged { later },
        None => Found::Torn,
    }
}

/// The payload of the frame at `offset` and the offset after it, if every check passes.
fn valid_frame(number: u64, bytes: &[u8], offset: usize) -> Option<(&[u8], usize)> {
    let mut reader = Reader::new(bytes.get(offset..)?);
    let len = reader.u32()?;
    // The cheap check comes first: a search performs it at every eighth byte.
    if reader.u32()? != length_checksum(number, offset as u64, len) || len > MAX_EDIT_LEN {
        return None;
    }
    let expected = reader.u64()?;
    let payload = reader.bytes(len as usize)?;
    if checksum(payload, seed([number, offset as u64])) != expected {
        return None;
    }
    let next = (offset + reader.position()).next_multiple_of(ALIGNMENT);
    bytes.get(..next)?;
    Some((payload, next))
}

/// Half a checksum of the length and its position.
fn length_checksum(number: u64, offset: u64, len: u32) -> u32 {
    checksum(&len.to_le_bytes(), seed([number, offset, 0])) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(payloads: &[&[u8]]) -> Vec<u8> {
        let mut bytes = header(7);
        for payload in payloads {
            let frame = frame(7, bytes.len() as u64, payload).unwrap();
            bytes.extend(frame);
        }
        bytes
    }

    #[test]
    fn a_frame_of_another_manifest_or_place_does_not_pass() {
        // Catches a seed that ignores number or offset: stale blocks of a reused file would be read as edits.
        let bytes = file(&[b"edit"]);
        assert_eq!(read(8, &bytes, HEADER_LEN), Found::Torn);
        let mut moved = header(7);
        moved.extend_from_slice(&[0; 8]);
        moved.extend_from_slice(&bytes[HEADER_LEN..]);
        assert_eq!(read(7, &moved, HEADER_LEN + 8), Found::Torn);
    }

    #[test]
    fn a_torn_last_frame_is_a_tear_and_a_torn_middle_is_damage() {
        // Catches a synced edit that is dropped: its logs are deleted, so its data would be lost silently.
        let bytes = file(&[b"first edit", b"second edit"]);
        let Found::Edit { next, .. } = read(7, &bytes, HEADER_LEN) else { panic!("no frame") };
        for len in next + 1..bytes.len() {
            assert_eq!(read(7, &bytes[..len], next), Found::Torn, "{len} bytes");
        }
        // The last byte of the first frame is padding, which no check covers.
        for at in HEADER_LEN..HEADER_LEN + FRAME_HEADER_LEN + b"first edit".len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(read(7, &damaged, HEADER_LEN), Found::Damaged { later: next }, "byte {at}");
        }
    }

    #[test]
    fn every_damaged_byte_of_the_header_is_noticed() {
        // Catches a header field outside the checksum.
        let path = Path::new("MANIFEST-000007");
        let good = header(7);
        assert!(check_header(path, &good, 7).is_ok());
        assert!(matches!(check_header(path, &good, 8), Err(Error::Corruption { .. })));
        for at in 0..HEADER_LEN {
            let mut damaged = good.clone();
            damaged[at] ^= 0x40;
            let error = check_header(path, &damaged, 7);
            assert!(matches!(&error, Err(Error::Corruption { .. })), "byte {at}: {error:?}");
            assert!(check_header(path, &good[..at], 7).is_err(), "{at} bytes");
        }
    }
}
