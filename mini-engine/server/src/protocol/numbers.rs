//! Whole numbers as keys and values, for the language of the coursework.

use std::fmt::Write;

/// The highest bit of an encoded key: set for numbers that are not negative, so that they sort after the negative ones.
const SIGN: u64 = 1 << 63;

/// A key of eight bytes; the byte order of such keys is the order of the numbers.
pub(crate) fn encode_key(key: i64) -> [u8; 8] {
    (key as u64 ^ SIGN).to_be_bytes()
}

/// The number that a key encodes; `None` if the key was not stored by this language.
fn decode_key(key: &[u8]) -> Option<i64> {
    Some((u64::from_be_bytes(key.try_into().ok()?) ^ SIGN) as i64)
}

/// Appends a pair, if it was stored by this language.
pub(crate) fn push_pair(line: &mut String, key: &[u8], value: &[u8]) {
    if let Some(key) = decode_key(key) {
        let space = if line.is_empty() || line.ends_with('\n') { "" } else { " " };
        // Writing to a string does not fail.
        write!(line, "{space}{key}:{}", value.escape_ascii()).ok();
    }
}
