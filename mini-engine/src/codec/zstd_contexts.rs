//! Zstandard with one context for each thread: creating and clearing a context takes several times as long as compressing a block of 4 KiB.
//!
//! A context keeps tables as large as its longest input needed. So long inputs, where creating a context hardly matters, get a context of their own.

use std::cell::RefCell;
use std::io;

use zstd::bulk::{self, Compressor, Decompressor};

/// In bytes: longer inputs and outputs get a context of their own; only blocks with long entries are longer.
const MAX_SHARED_LEN: usize = 128 << 10;

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Compresses `bytes` to one frame.
pub(crate) fn zstd_compress(bytes: &[u8], level: i32) -> io::Result<Vec<u8>> {
    if bytes.len() > MAX_SHARED_LEN {
        return bulk::compress(bytes, level);
    }
    COMPRESSOR.with_borrow_mut(|kept| {
        let mut compressor = kept.take().map_or_else(|| Compressor::new(level), Ok)?;
        compressor.set_compression_level(level)?;
        let stored = compressor.compress(bytes)?;
        // A context is not kept after a failure.
        *kept = Some(compressor);
        Ok(stored)
    })
}

/// Decompresses the frame `stored` into `out`; returns the decompressed length.
pub(crate) fn zstd_decompress(stored: &[u8], out: &mut [u8]) -> io::Result<usize> {
    if out.len() > MAX_SHARED_LEN {
        return bulk::decompress_to_buffer(stored, out);
    }
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let mut decompressor = kept.take().map_or_else(Decompressor::new, Ok)?;
        let len = decompressor.decompress_to_buffer(stored, out)?;
        *kept = Some(decompressor);
        Ok(len)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_kept_and_tells_nothing_of_what_it_had_before() {
        // Catches a context that is created anew each time, a level that stays set, and a context that is used again after a failure.
        let inputs: Vec<Vec<u8>> = (0..40usize).map(|n| (0..n * 97).map(|at| (at * n / 7) as u8).collect()).collect();
        for round in 0..3 {
            for (n, input) in inputs.iter().enumerate() {
                let level = [1, 3, 19][(n + round) % 3];
                let stored = zstd_compress(input, level).expect("compresses");
                assert_eq!(stored, bulk::compress(input, level).expect("compresses"), "{n} at level {level}");
                let mut out = vec![1; input.len()];
                assert_eq!(zstd_decompress(&stored, &mut out).expect("decompresses"), input.len());
                assert_eq!(out, *input);
                if n % 5 == 4 {
                    zstd_decompress(&stored[..stored.len() - 3], &mut out).expect_err("cut off");
                    zstd_decompress(b"no frame", &mut out).expect_err("no frame");
                    DECOMPRESSOR.with_borrow(|kept| assert!(kept.is_none()));
                }
            }
            COMPRESSOR.with_borrow(|kept| assert!(kept.is_some()));
        }
        let long = vec![7; MAX_SHARED_LEN + 1];
        let mut out = vec![0; long.len()];
        assert_eq!(zstd_decompress(&zstd_compress(&long, 1).expect("compresses"), &mut out).expect("fits"), long.len());
        assert_eq!(out, long);
    }
}
