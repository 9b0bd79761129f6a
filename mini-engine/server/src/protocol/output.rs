//! The replies that are to be sent to a client. Short replies are copied into parts. A long value is kept in the form that the engine returned. So a
//! reply needs the memory of its value only once, and no additional memory if the value is a view of a mapped table or of a cached block.
//!
//! Sent bytes are dropped part by part, so no bytes are moved to make room.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};

use mini_engine::Slice;

/// The approximate size of the parts into which replies are copied, in bytes.
const PART_BYTES: usize = 64 << 10;
/// The length from which on values are not copied, in bytes.
const LONG: usize = 32 << 10;
/// The number of parts that are sent by one call.
const SENT_TOGETHER: usize = 16;

#[derive(Debug)]
enum Part {
    Copied(Vec<u8>),
    Value(Slice),
}

impl Part {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Copied(bytes) => bytes,
            Self::Value(value) => value,
        }
    }

    /// The memory of the part, in bytes.
    fn size(&self) -> usize {
        match self {
            Self::Copied(bytes) => bytes.capacity(),
            Self::Value(value) => value.len(),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Output {
    parts: VecDeque<Part>,
    /// The number of bytes of the first part that were sent.
    sent: usize,
    /// The number of bytes that are still to be sent.
    len: usize,
}

impl Output {
    /// The number of bytes that are still to be sent.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The memory of the output, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.parts.iter().map(Part::size).sum()
    }

    /// Appends the concatenated `pieces`.
    pub(crate) fn put_all(&mut self, pieces: &[&[u8]]) {
        if !matches!(self.parts.back(), Some(Part::Copied(bytes)) if bytes.len() < PART_BYTES) {
            self.parts.push_back(Part::Copied(Vec::new()));
        }
        let Some(Part::Copied(bytes)) = self.parts.back_mut() else { unreachable!("it was put there") };
        let before = bytes.len();
        pieces.iter().for_each(|piece| bytes.extend_from_slice(piece));
        self.len += bytes.len() - before;
    }

    /// Appends `bytes`.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.put_all(&[bytes]);
    }

    /// Appends a value, without a copy if it is long.
    pub(crate) fn put_value(&mut self, value: &Slice) {
        if value.len() < LONG {
            return self.put(value);
        }
        self.len += value.len();
        self.parts.push_back(Part::Value(value.clone()));
    }

    /// Appends all bytes of the output to `bytes`.
    pub(crate) fn copy_into(&self, bytes: &mut Vec<u8>) {
        debug_assert_eq!(self.sent, 0, "nothing was sent");
        self.parts.iter().for_each(|part| bytes.extend_from_slice(part.bytes()));
    }

    /// Appends the contents of `other`, of which nothing may have been sent.
    pub(crate) fn append(&mut self, mut other: Output) {
        self.len += other.len;
        self.parts.append(&mut other.parts);
    }

    /// Removes the last replies, so that `len` bytes are left to be sent.
    pub(crate) fn truncate(&mut self, len: usize) {
        while self.len > len {
            let excess = self.len - len;
            let Some(last) = self.parts.pop_back() else { return };
            let there = last.bytes().len();
            self.len -= excess.min(there);
            if let (Part::Copied(mut bytes), true) = (last, excess < there) {
                bytes.truncate(there - excess);
                self.parts.push_back(Part::Copied(bytes));
            }
        }
    }

    /// Sends the bytes that `to` accepts at once, and drops them. Returns their number.
    pub(crate) fn send(&mut self, to: &mut impl Write) -> io::Result<usize> {
        let sent = match self.parts.len() {
            1 => to.write(&self.parts[0].bytes()[self.sent..])?,
            parts => {
                let mut together = [IoSlice::new(&[]); SENT_TOGETHER];
                let mut skip = self.sent;
                for (slice, part) in together.iter_mut().zip(&self.parts) {
                    *slice = IoSlice::new(&part.bytes()[std::mem::take(&mut skip)..]);
                }
                to.write_vectored(&together[..parts.min(SENT_TOGETHER)])?
            }
        };
        self.len -= sent;
        self.sent += sent;
        while self.parts.front().is_some_and(|first| self.sent >= first.bytes().len()) {
            let Some(first) = self.parts.pop_front() else { break };
            self.sent -= first.bytes().len();
            // The last part's memory is kept for the next replies, unless it is large.
            if let (Part::Copied(mut bytes), true) = (first, self.parts.is_empty())
                && bytes.capacity() <= 2 * PART_BYTES
            {
                bytes.clear();
                self.parts.push_back(Part::Copied(bytes));
                break;
            }
        }
        Ok(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(output: &mut Output, most: usize) -> Vec<u8> {
        let mut taken = vec![0; most];
        let mut room = &mut taken[..];
        let len = output.send(&mut room).expect("memory takes it");
        taken.truncate(len);
        taken
    }

    #[test]
    fn what_is_sent_in_pieces_is_what_was_put() {
        // Catches an offset in the first part that is applied to the next part, and a value that is cut or sent twice.
        let long: Slice = (0..LONG as u32 + 7).map(|n| n as u8).collect::<Vec<u8>>().into();
        for most in [1 << 20, 40_001, 30_011, 4093] {
            let (mut output, mut put, mut received) = (Output::default(), Vec::new(), Vec::new());
            for round in 0..40 {
                let line = format!("line {round}\r\n");
                output.put(line.as_bytes());
                output.put_value(&long);
                output.put(b"\r\n");
                put.extend_from_slice(&[line.as_bytes(), &long, b"\r\n"].concat());
                received.extend(sent(&mut output, most));
                assert_eq!(output.len(), put.len() - received.len());
            }
            while !output.is_empty() {
                received.extend(sent(&mut output, most));
            }
            assert!(received == put, "{most}");
            assert!(output.size() <= 2 * PART_BYTES && output.parts.len() <= 1, "{output:?}");
        }
    }

    #[test]
    fn replies_are_taken_back_from_the_end_and_what_was_sent_stays_sent() {
        // Catches a reply whose long value stays in the output when the reply is removed, and a cut while the first part was partly sent.
        let mut output = Output::default();
        output.put(b"first");
        assert_eq!(sent(&mut output, 2), b"fi");
        let len = output.len();
        output.put(b" reply");
        output.put_value(&vec![7; LONG].into());
        output.put(b"\r\n");
        output.truncate(len);
        output.put(b" error");
        assert_eq!(sent(&mut output, 100), b"rst error");
        assert!(output.is_empty());
    }

    #[test]
    fn the_memory_of_what_was_sent_is_given_back() {
        // Catches an output that keeps the memory of a reply until all of the reply was sent, or even longer.
        let mut output = Output::default();
        for n in 0..100_000 {
            output.put(format!("{n:09}\r\n").as_bytes());
        }
        let whole = output.size();
        assert!(whole <= output.len() * 2, "{whole} for {}", output.len());
        while output.len() > 500_000 {
            sent(&mut output, 5000);
        }
        assert!(output.size() <= whole / 2 + 2 * PART_BYTES, "{} of {whole}", output.size());
    }
}
