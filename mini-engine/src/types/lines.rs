//! Keys, values and numbers as readable text.

use std::fmt;

use super::key_prefix::{DEFAULT_KEYSPACE, split_stored};

/// A number with the noun `one` or `many`.
pub(crate) fn counted(n: u64, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

/// The maximum number of bytes of a key or value that are shown.
const SHOWN: usize = 80;

/// A key or value as quoted text; bytes that are not printable are escaped, and long ones are truncated and shown with their length.
pub(crate) struct Shown<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes) = self;
        match bytes.split_at_checked(SHOWN) {
            Some((head, rest)) if !rest.is_empty() => {
                write!(f, "\"{}\".. ({} bytes)", head.escape_ascii(), bytes.len())
            }
            _ => write!(f, "\"{}\"", bytes.escape_ascii()),
        }
    }
}

/// Displays a stored key like [`Shown`], but without its prefix, followed by the number of its keyspace unless that is the default one.
pub(crate) struct ShownKey<'a>(pub(crate) &'a [u8]);

impl fmt::Display for ShownKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match split_stored(self.0) {
            Some((DEFAULT_KEYSPACE, key)) => Shown(key).fmt(f),
            Some((id, key)) => write!(f, "{} of keyspace {id}", Shown(key)),
            // The key is damaged.
            None => Shown(self.0).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_keys_are_shown_as_their_keyspace_has_them() {
        // Catches a prefix that is shown as part of the key.
        let shown = [&b"a"[..], b"\xff\0\xff", b"\xff\x07a", b"\xff"].map(|key| ShownKey(key).to_string());
        assert_eq!(shown, ["\"a\"", "\"\\xff\"", "\"a\" of keyspace 7", "\"\\xff\""]);
    }

    #[test]
    fn bytes_are_shown_escaped_and_cut_with_their_length() {
        // Catches a key with a line break that looks like two keys, and a value of a gigabyte on one line.
        assert_eq!(Shown(b"a\nb\xff").to_string(), "\"a\\nb\\xff\"");
        assert_eq!(Shown(&[b'x'; SHOWN]).to_string(), format!("\"{}\"", "x".repeat(SHOWN)));
        assert_eq!(Shown(&[b'x'; 81]).to_string(), format!("\"{}\".. (81 bytes)", "x".repeat(SHOWN)));
    }
}
