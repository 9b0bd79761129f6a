//! Keys and values as people type and read them: raw bytes, or two hexadecimal digits per byte with `--hex`.

use std::ffi::OsStr;
use std::io::{self, Write};

use clap::Args;

use crate::failure::Failure;

/// The `--hex` switch of all commands that read or print keys or values.
#[derive(Args)]
pub(crate) struct HexArgs {
    /// Read and print keys and values as hexadecimal digits, two a byte
    #[arg(long)]
    pub(crate) hex: bool,
}

impl HexArgs {
    /// The bytes of an argument. Raw arguments need not be UTF-8.
    pub(crate) fn parse(&self, name: &str, argument: &OsStr) -> Result<Vec<u8>, Failure> {
        let bytes = argument.as_encoded_bytes();
        if !self.hex {
            return Ok(bytes.to_vec());
        }
        decode(bytes).map_err(|why| Failure::Usage(format!("{name} is not hexadecimal: {why}")))
    }

    /// Writes `bytes` in the requested form.
    pub(crate) fn print(&self, out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
        if self.hex { encode(out, bytes) } else { out.write_all(bytes) }
    }
}

/// Reads hexadecimal digits of either case; the error names the fault and its place.
pub(crate) fn decode(digits: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(digits.len() / 2);
    let (pairs, odd) = digits.as_chunks::<2>();
    for (index, &[high, low]) in pairs.iter().enumerate() {
        bytes.push(digit(high, index * 2)? << 4 | digit(low, index * 2 + 1)?);
    }
    if odd.is_empty() {
        return Ok(bytes);
    }
    Err(format!("expected an even number of digits, found {}", digits.len()))
}

fn digit(byte: u8, index: usize) -> Result<u8, String> {
    let value = match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        b'A'..=b'F' => byte - b'A' + 10,
        _ => return Err(format!("expected a digit at column {}, found '{}'", index + 1, byte.escape_ascii())),
    };
    Ok(value)
}

/// The bytes as lower-case digits, two for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes two lower-case digits a byte.
pub(crate) fn encode(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    for byte in bytes {
        write!(out, "{byte:02x}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_encoding_and_decoding() {
        // Catches swapped nibbles and digits that are read with the wrong value.
        let all: Vec<u8> = (0..=255).collect();
        let mut digits = Vec::new();
        encode(&mut digits, &all).unwrap();
        assert_eq!(digits.len(), 512);
        assert_eq!(decode(&digits).unwrap(), all);
        assert_eq!(decode(&digits.to_ascii_uppercase()).unwrap(), all);
    }

    #[test]
    fn what_is_not_hexadecimal_is_refused_with_its_place() {
        // Catches a decoder that skips unknown characters, and one that drops an odd last digit.
        assert_eq!(decode(b"00x0").unwrap_err(), "expected a digit at column 3, found 'x'");
        assert_eq!(decode(b"0g").unwrap_err(), "expected a digit at column 2, found 'g'");
        assert_eq!(decode(b"000").unwrap_err(), "expected an even number of digits, found 3");
        assert_eq!(decode(b"").unwrap(), b"");
    }
}
