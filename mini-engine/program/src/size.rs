//! Sizes in arguments (`64M`, `64MiB`, `67108864`), and counts with their nouns in messages.

use std::num::IntErrorKind;

const EXPECTED: &str = "expected a number of bytes, such as 67108864, 64M or 64MiB";

/// The bytes of the size `text`. As in GNU's programs, `K`, `M`, `G` and `KiB`, `MiB`, `GiB` are powers of 1024, and `KB`, `MB`, `GB`
/// powers of 1000, in capitals or not.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit = match text[digits.len()..].trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return Err(EXPECTED.into()),
    };
    let too_many = || "more bytes than can be counted".to_owned();
    match digits.parse::<u64>() {
        Ok(number) => number.checked_mul(unit).ok_or_else(too_many),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Err(too_many()),
        Err(_) => Err(EXPECTED.into()),
    }
}

/// Like [`parse`], for a size in memory.
pub(crate) fn parse_in_memory(text: &str) -> Result<usize, String> {
    usize::try_from(parse(text)?).map_err(|_| "more bytes than this machine can address".into())
}

/// A number with its noun: `1 line`, `2 lines`.
pub(crate) fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_and_a_unit() {
        // Catches units of 1000 and 1024 mixed up, and a number that overflows into a small one.
        for (text, bytes) in [
            ("0", 0),
            ("64M", 64 << 20),
            ("64MiB", 64 << 20),
            ("64 mib", 64 << 20),
            ("64MB", 64_000_000),
            ("2g", 2 << 30),
            ("1kb", 1000),
            ("512b", 512),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "-1", "1.5M", "64 Mi B", "64MiBs"] {
            assert!(parse(text).unwrap_err().contains("such as"), "{text}");
        }
        for text in ["18446744073709551615K", "99999999999999999999"] {
            assert_eq!(parse(text).unwrap_err(), "more bytes than can be counted", "{text}");
        }
    }
}
