//! Replaces Zstandard in builds without feature `zstd`. Options that require it are rejected, and files that use it are detected, before these
//! functions are called.

use std::io::{self, ErrorKind};

/// # Errors
/// Always fails.
pub(crate) fn zstd_compress(_: &[u8], _: i32) -> io::Result<Vec<u8>> {
    Err(ErrorKind::Unsupported.into())
}

/// # Errors
/// Always fails.
pub(crate) fn zstd_decompress(_: &[u8], _: &mut [u8]) -> io::Result<usize> {
    Err(ErrorKind::Unsupported.into())
}
