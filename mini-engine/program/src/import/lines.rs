//! Splits the input into lines, and buffers one line at a time.
//!
//! A line is buffered only up to a limit, and the rest is skipped, so an input without newlines cannot fill the memory.

use std::io::{BufRead, BufReader, Read};

use crate::failure::Failure;
use crate::source::Source;

const BUFFER_BYTES: usize = 1 << 18;
/// A buffer that grew beyond this size for one long line is freed before the next line.
const KEPT_BYTES: usize = 1 << 20;

/// A line of the input, without its newline.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    Whole(&'a [u8]),
    /// The input ended before a newline did.
    Last(&'a [u8]),
    /// The line is longer than the limit; its bytes were skipped.
    TooLong,
}

/// The lines of a source.
pub(crate) struct Lines {
    source: BufReader<Source>,
    line: Vec<u8>,
    longest: usize,
    bytes_read: u64,
}

impl Lines {
    pub(crate) fn new(source: Source, longest: usize) -> Self {
        Self { source: BufReader::with_capacity(BUFFER_BYTES, source), line: Vec::new(), longest, bytes_read: 0 }
    }

    /// Bytes of all lines returned so far, newlines included.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// The next line, or `None` at the end of the input. Bytes after the last newline are a line.
    pub(crate) fn next(&mut self) -> Result<Option<Line<'_>>, Failure> {
        self.line.clear();
        self.line.shrink_to(KEPT_BYTES);
        let most = self.longest as u64 + 1;
        let read = self.source.by_ref().take(most).read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| self.source.get_ref().failure(error))?;
        self.bytes_read += read as u64;
        if read == 0 {
            return Ok(None);
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if self.line.len() > self.longest {
            let skipped = self.source.skip_until(b'\n');
            self.bytes_read += skipped.map_err(|error| self.source.get_ref().failure(error))? as u64;
            return Ok(Some(Line::TooLong));
        } else {
            return Ok(Some(Line::Last(&self.line)));
        }
        Ok(Some(Line::Whole(&self.line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(input: &[u8], longest: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines = Lines::new(Source::of_bytes(input), longest);
        let mut found = Vec::new();
        while let Some(line) = lines.next().ok().unwrap() {
            found.push(match line {
                Line::Whole(line) => Some(line.to_vec()),
                Line::Last(line) => {
                    assert!(input.ends_with(line));
                    Some(line.to_vec())
                }
                Line::TooLong => None,
            });
        }
        assert_eq!(lines.bytes_read(), input.len() as u64);
        found
    }

    #[test]
    fn lines_end_at_newlines_and_those_past_the_limit_are_skipped() {
        // Catches a lost last line, an invented empty one, and a removed carriage return. Also catches a long line that stays in memory, or whose
        // rest is treated as a separate line.
        let whole = |line: &[u8]| Some(line.to_vec());
        assert_eq!(cut(b"", 9), []);
        assert_eq!(cut(b"a\nb", 9), [whole(b"a"), whole(b"b")]);
        assert_eq!(cut(b"a\r\n\nb\n", 9), [whole(b"a\r"), whole(b""), whole(b"b")]);
        assert_eq!(cut(b"1234\n12345\n1\n", 4), [whole(b"1234"), None, whole(b"1")]);
        assert_eq!(cut(b"1234", 4), [whole(b"1234")]);
        assert_eq!(cut(b"123456789", 4), [None]);
    }
}
