//! Zstandard where the feature `zstd` is off. Options that ask for it are refused; files that use it are recognised before.

use std::io::{self, ErrorKind};

/// # Errors
/// Always.
pub(crate) fn zstd_compress(_: &[u8], _: i32) -> io::Result<Vec<u8>> {
    Err(ErrorKind::Unsupported.into())
}

/// # Errors
/// Always.
pub(crate) fn zstd_decompress(_: &[u8], _: &mut [u8]) -> io::Result<usize> {
    Err(ErrorKind::Unsupported.into())
}
