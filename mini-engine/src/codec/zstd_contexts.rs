//! Zstandard with a context for each thread: to make and clear a new one takes several times as long as a block of 4 KiB.
//!
//! A context keeps the tables of the longest input that it had. So long inputs, for which the context hardly counts, get their own.

use std::cell::RefCell;
use std::io;

use zstd::bulk::{self, Compressor, Decompressor};

/// Longer inputs and outputs than this get a context of their own, in bytes: any block but those of long entries is shorter.
const MAX_SHARED_LEN: usize = 128 << 10;

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// `bytes` as one frame.
pub(crate) fn zstd_compress(bytes: &[u8], level: i32) -> io::Result<Vec<u8>> {
    if bytes.len() > MAX_SHARED_LEN {
        return bulk::compress(bytes, level);
    }
    COMPRESSOR.with_borrow_mut(|kept| {
        let mut compressor = kept.take().map_or_else(|| Compressor::new(level), Ok)?;
        compressor.set_compression_level(level)?;
        let stored = compressor.compress(bytes)?;
        // Not after a failure.
        *kept = Some(compressor);
        Ok(stored)
    })
}

/// Decompresses the frame `stored` into `out`; how many bytes it has.
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
        // Catches a context that is made anew each time; a level that sticks; one that is used again after a failure.
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
