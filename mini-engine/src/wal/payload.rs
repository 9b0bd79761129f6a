//! A batch as the payload of a frame: uncompressed or compressed.
//!
//! A compressed payload is the length of the batch (u32) and one Zstandard frame. It is used for batches of 512 bytes and more if it saves 12 % or
//! more; for smaller batches the frame's own header outweighs the savings. Memory for the batch is allocated only after the frame's checksum has
//! matched, and at most as much as the compression can produce from the stored bytes.

use crate::codec::{self, Reader};
use crate::types::MAX_BATCH_LEN;

/// The minimum length of a batch to be compressed, in bytes.
const MIN_BATCH_LEN: usize = 512;
/// A fast level, because writers wait for the compression.
const ZSTD_LEVEL: i32 = 1;
/// The maximum output of Zstandard for one stored byte: 128 KiB need at least four bytes.
const ZSTD_EXPANSION: u64 = 1 << 15;

/// The stored form of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload<'a> {
    Raw(&'a [u8]),
    /// The result of [`compress`].
    Compressed(&'a [u8]),
}

impl<'a> Payload<'a> {
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Raw(bytes) | Self::Compressed(bytes) => bytes,
        }
    }
}

/// The compressed batch, if that saves enough.
pub(crate) fn compress(batch: &[u8]) -> Option<Vec<u8>> {
    if batch.len() < MIN_BATCH_LEN {
        return None;
    }
    let mut out = Vec::new();
    codec::put_u32(&mut out, u32::try_from(batch.len()).ok()?);
    // If compression fails, the batch is stored uncompressed.
    out.extend_from_slice(&codec::zstd_compress(batch, ZSTD_LEVEL).ok()?);
    codec::is_worth_compressing(batch.len(), out.len()).then_some(out)
}

/// Decompresses the batch from which `stored` was made. The error describes the expected and the found value.
pub(super) fn decompress(stored: &[u8]) -> Result<Vec<u8>, String> {
    let mut reader = Reader::new(stored);
    let Some(len) = reader.u32() else {
        return Err(format!("compressed payload: expected a length, found {} bytes", stored.len()));
    };
    let most = (reader.rest().len() as u64 + 1).saturating_mul(ZSTD_EXPANSION).min(MAX_BATCH_LEN as u64);
    if u64::from(len) > most {
        return Err(format!("decompressed length: expected at most {most}, found {len}"));
    }
    let mut batch = vec![0; len as usize];
    match codec::zstd_decompress(reader.rest(), &mut batch) {
        Ok(found) if found == batch.len() => Ok(batch),
        Ok(found) => Err(format!("decompressed length: expected {len}, found {found}")),
        Err(error) => Err(format!("payload does not decompress: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_batch_is_compressed_from_512_bytes_on_and_where_that_saves_enough() {
        // Catches frames that grow by compression, and short ones whose compression costs more time than it saves.
        assert_eq!(compress(&[7; 511]), None);
        let compressed = compress(&[7; 512]).expect("worth it");
        assert!(compressed.len() < 100);
        assert_eq!(decompress(&compressed).as_deref(), Ok(&[7; 512][..]));
        let noise: Vec<u8> = (0..512u64).flat_map(|n| codec::checksum(&n.to_le_bytes(), 0).to_le_bytes()).collect();
        assert_eq!(compress(&noise), None);
    }

    #[test]
    fn a_forged_length_is_refused_before_memory_is_taken_for_it() {
        // Catches an allocation of a length that a forged frame claims.
        let mut forged = compress(&[7; 600]).expect("worth it");
        for (len, what) in [(u32::MAX, "expected at most"), (599, "not decompress"), (601, "expected 601, found 600")] {
            forged[..4].copy_from_slice(&len.to_le_bytes());
            let error = decompress(&forged).unwrap_err();
            assert!(error.contains(what), "{len}: {error}");
        }
        assert!(decompress(&[1, 0]).unwrap_err().contains("expected a length"));
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic_the_decompression(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            // Catches an unchecked length or frame.
            if let Ok(batch) = decompress(&bytes) {
                prop_assert!(batch.len() <= MAX_BATCH_LEN);
            }
        }
    }
}
