//! Finds requests in a client's input: an array of bulk strings, or a line of words.
//!
//! Only these two forms are requests, so this is not a decoder of the complete protocol. The decoder of `redis-protocol` is not used for untrusted
//! input: it decodes nested arrays recursively, so a short request of nested array headers would overflow the stack. It also starts from the
//! beginning each time more of a request arrives. Tests compare the two decoders on valid requests.
//!
//! The parser keeps its position between calls, so it reads each byte of an array only once, however many reads deliver the array. Nothing is
//! allocated for a length that was only announced: a part takes memory once its bytes have arrived. Limits are checked when a length is announced, so
//! a request beyond the limits is refused before its bytes are stored.

use std::fmt;

/// The maximum length of a line (a request in words), as in Redis.
const LONGEST_LINE: usize = 64 << 10;
/// The maximum length of a header (a type and a number), without the line end: enough for any 64-bit number.
const LONGEST_HEADER: usize = 32;
/// The end of a header and of a bulk string.
pub(super) const CRLF: &[u8] = b"\r\n";

/// The limits of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLimits {
    /// The maximum number of bytes of the whole request.
    pub(crate) bytes: usize,
    /// The maximum number of parts: the command's name and its arguments.
    pub(crate) parts: usize,
}

/// The error for bytes that are not a request, or that exceed a limit. Bytes after such an error cannot be parsed either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Protocol error: {}", self.0)
    }
}

/// The parts of one request, beginning with the name of the command.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a> {
    bytes: &'a [u8],
    parts: &'a [(usize, usize)],
}

impl<'a> Args<'a> {
    /// The parts of a request within `bytes`, each given by its start and its end.
    pub(crate) fn new(bytes: &'a [u8], parts: &'a [(usize, usize)]) -> Self {
        Self { bytes, parts }
    }

    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Part `index`, which must exist: the arity of a command is checked before the command runs.
    pub(crate) fn at(&self, index: usize) -> &'a [u8] {
        let (start, end) = self.parts[index];
        &self.bytes[start..end]
    }

    /// The first `count` parts.
    pub(crate) fn up_to(&self, count: usize) -> Self {
        Self { bytes: self.bytes, parts: &self.parts[..self.parts.len().min(count)] }
    }

    /// All but the first `count` parts.
    pub(crate) fn behind(&self, count: usize) -> Self {
        Self { bytes: self.bytes, parts: self.parts.get(count..).unwrap_or_default() }
    }

    /// The parts from `index` on.
    pub(crate) fn from(&self, index: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let bytes = self.bytes;
        self.parts.get(index..).unwrap_or_default().iter().map(move |&(start, end)| &bytes[start..end])
    }
}

/// A request that is stored for later.
#[derive(Clone)]
pub(crate) struct OwnedArgs {
    bytes: Vec<u8>,
    parts: Vec<(usize, usize)>,
}

impl OwnedArgs {
    pub(crate) fn new(args: &Args<'_>) -> Self {
        Self::of_parts(args.from(0))
    }

    pub(crate) fn of_parts<'a>(parts: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let mut bytes = Vec::with_capacity(parts.clone().map(<[u8]>::len).sum());
        let parts = parts.map(|part| {
            let start = bytes.len();
            bytes.extend_from_slice(part);
            (start, bytes.len())
        });
        Self { parts: parts.collect(), bytes }
    }

    pub(crate) fn args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.parts)
    }

    /// The parts that lie one after the other in `bytes` and have these lengths; `None` unless they fill `bytes` exactly.
    pub(crate) fn of_lengths(bytes: Vec<u8>, lengths: &[u32]) -> Option<Self> {
        let mut end = 0usize;
        let parts = lengths.iter().map(|&len| {
            let start = end;
            end = end.saturating_add(len as usize);
            (start, end)
        });
        let parts = parts.collect();
        (end == bytes.len()).then_some(Self { bytes, parts })
    }

    /// The concatenated parts, and their lengths.
    pub(crate) fn lengths(&self) -> (&[u8], impl ExactSizeIterator<Item = usize>) {
        (&self.bytes, self.parts.iter().map(|(start, end)| end - start))
    }

    /// The memory of the request, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.capacity() + self.parts.capacity() * size_of::<(usize, usize)>()
    }
}

/// Finds the requests in a connection's input, one after the other.
#[derive(Default)]
pub(crate) struct Parser {
    /// The parts found so far, as positions from the beginning of this request, or within `unquoted`.
    parts: Vec<(usize, usize)>,
    /// If a line has quotes: its words without the quotes, concatenated.
    unquoted: Vec<u8>,
    /// The number of parts of the array; `None` until its header was read.
    announced: Option<usize>,
    /// The length of the bulk string whose header was read.
    bulk: Option<usize>,
    /// The number of input bytes that were parsed.
    at: usize,
    /// The error that ends this input, once it is known.
    malformed: Option<Malformed>,
    has_quotes: bool,
}

impl Parser {
    /// Searches for the end of the request at the beginning of `input`, which is the input of the last call, possibly with more bytes. Returns the
    /// length of the request once it is complete.
    pub(crate) fn find(&mut self, input: &[u8], limits: RequestLimits) -> Result<Option<usize>, Malformed> {
        if let Some(malformed) = &self.malformed {
            return Err(malformed.clone());
        }
        self.go_on(input, limits).inspect_err(|malformed| self.malformed = Some(malformed.clone()))
    }

    fn go_on(&mut self, input: &[u8], limits: RequestLimits) -> Result<Option<usize>, Malformed> {
        if self.at == 0 && self.announced.is_none() {
            match input.first() {
                None => return Ok(None),
                Some(b'*') => {}
                Some(_) => return self.line(input, limits),
            }
        }
        let announced = match self.announced {
            Some(announced) => announced,
            None => {
                let Some(count) = self.header(input, b'*', "multibulk")? else {
                    return Ok(None);
                };
                // A negative count is an empty request, as in Redis.
                let count = usize::try_from(count).unwrap_or(0);
                if count > limits.parts {
                    return Err(Malformed(format!(
                        "invalid multibulk length: a request has at most {} parts",
                        limits.parts
                    )));
                }
                *self.announced.insert(count)
            }
        };
        while self.parts.len() < announced {
            if !self.part(input, limits)? {
                return Ok(None);
            }
        }
        Ok(Some(self.at))
    }

    /// The request that was found in `input`.
    pub(crate) fn args<'a>(&'a self, input: &'a [u8]) -> Args<'a> {
        Args::new(if self.has_quotes { &self.unquoted } else { input }, &self.parts)
    }

    /// The start and end of each part, relative to the beginning of the request; `None` if the parts are not in the input, because of quotes.
    pub(crate) fn parts(&self) -> Option<&[(usize, usize)]> {
        (!self.has_quotes).then_some(&self.parts)
    }

    /// Makes the parser ready for the next request, from its beginning.
    pub(crate) fn next(&mut self) {
        self.parts.clear();
        // A request of a million parts is rare, so its memory is not kept for the next request.
        self.parts.shrink_to(1024);
        (self.unquoted, self.has_quotes) = (Vec::new(), false);
        (self.announced, self.bulk, self.at, self.malformed) = (None, None, 0, None);
    }

    /// The end of the part that is being received, relative to the beginning of the request; 0 if unknown.
    pub(crate) fn end_of_part(&self) -> usize {
        self.bulk.map_or(0, |len| self.at + len + CRLF.len())
    }

    /// The memory of the parser, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.parts.capacity() * size_of::<(usize, usize)>() + self.unquoted.capacity()
    }

    /// Reads one bulk string; returns false if it is not complete.
    fn part(&mut self, input: &[u8], limits: RequestLimits) -> Result<bool, Malformed> {
        let len = match self.bulk {
            Some(len) => len,
            None => {
                let Some(len) = self.header(input, b'$', "bulk")? else {
                    return Ok(false);
                };
                let len = usize::try_from(len).map_err(|_| Malformed("invalid bulk length".into()))?;
                if len.saturating_add(self.at) > limits.bytes {
                    return Err(Malformed(format!(
                        "invalid bulk length: a request has at most {} bytes",
                        limits.bytes
                    )));
                }
                *self.bulk.insert(len)
            }
        };
        let end = self.at + len;
        let Some(tail) = input.get(end..end + CRLF.len()) else {
            return Ok(false);
        };
        if tail != CRLF {
            return Err(Malformed("expected the end of a line behind a bulk string".into()));
        }
        self.parts.push((self.at, end));
        self.at = end + CRLF.len();
        self.bulk = None;
        Ok(true)
    }

    /// Reads a header: a type, and a number that is the length of a `what`. Returns `None` if it is not complete.
    #[inline]
    fn header(&mut self, input: &[u8], kind: u8, what: &str) -> Result<Option<i64>, Malformed> {
        // Nearly every header has one digit or two, and is complete.
        let (number, len) = match input[self.at..] {
            [found, ones @ b'1'..=b'9', b'\r', b'\n', ..] if found == kind => (ones - b'0', 4),
            [found, tens @ b'1'..=b'9', ones @ b'0'..=b'9', b'\r', b'\n', ..] if found == kind => {
                ((tens - b'0') * 10 + (ones - b'0'), 5)
            }
            _ => return self.any_header(input, kind, what),
        };
        self.at += len;
        Ok(Some(number.into()))
    }

    fn any_header(&mut self, input: &[u8], kind: u8, what: &str) -> Result<Option<i64>, Malformed> {
        let rest = &input[self.at..];
        let Some((&found, rest)) = rest.split_first() else {
            return Ok(None);
        };
        if found != kind {
            return Err(Malformed(format!("expected '{}', got '{}'", char::from(kind), found.escape_ascii())));
        }
        let window = &rest[..rest.len().min(LONGEST_HEADER + CRLF.len())];
        let invalid = || Malformed(format!("invalid {what} length"));
        let end = window.iter().position(|&byte| byte == b'\r').filter(|end| end + 1 < window.len());
        let Some(end) = end else {
            return if window.len() < LONGEST_HEADER + CRLF.len() { Ok(None) } else { Err(invalid()) };
        };
        let number = parse_number(&window[..end]).filter(|_| window[end + 1] == b'\n').ok_or_else(invalid)?;
        self.at += 1 + end + CRLF.len();
        Ok(Some(number))
    }

    /// Reads a request in words.
    fn line(&mut self, input: &[u8], limits: RequestLimits) -> Result<Option<usize>, Malformed> {
        let window = &input[..input.len().min(LONGEST_LINE.min(limits.bytes))];
        let Some(end) = window.iter().position(|&byte| byte == b'\n') else {
            return match window.len() < input.len() {
                true => Err(Malformed("too big inline request".into())),
                false => Ok(None),
            };
        };
        let line = &window[..end];
        self.parts.clear();
        self.unquoted.clear();
        self.has_quotes = line.iter().any(|byte| matches!(byte, b'"' | b'\''));
        let mut at = 0;
        // As in Redis, any white space may precede a word, but only some of it ends a word.
        while let Some(skip) = line[at..].iter().position(|byte| !matches!(byte, b' ' | b'\t'..=b'\r')) {
            at = self.word(line, at + skip)?;
            if self.parts.len() > limits.parts {
                return Err(Malformed(format!("more than {} words", limits.parts)));
            }
        }
        Ok(Some(end + 1))
    }

    /// Reads the word at `at`; returns the position after it.
    fn word(&mut self, line: &[u8], at: usize) -> Result<usize, Malformed> {
        if self.has_quotes {
            let start = self.unquoted.len();
            let end = unquote(line, at, &mut self.unquoted)?;
            self.parts.push((start, self.unquoted.len()));
            return Ok(end);
        }
        let end = line[at..].iter().position(is_end_of_word).map_or(line.len(), |len| at + len);
        self.parts.push((at, end));
        Ok(end)
    }
}

fn is_end_of_word(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// Appends the word at `at` without its quotes; these may begin inside the word, and end it. Returns the position after the word. As in Redis, double
/// quotes allow the escapes of C, and single quotes only the escape of a single quote.
fn unquote(line: &[u8], mut at: usize, word: &mut Vec<u8>) -> Result<usize, Malformed> {
    let unbalanced = || Malformed("unbalanced quotes in request".into());
    let mut quote = None;
    loop {
        match (quote, &line[at..]) {
            (None, []) => return Ok(at),
            (None, [byte, ..]) if is_end_of_word(byte) => return Ok(at),
            (None, [byte @ (b'"' | b'\''), ..]) => quote = Some(*byte),
            (Some(_), []) => return Err(unbalanced()),
            (Some(quote), [byte, behind @ ..]) if *byte == quote => {
                let is_end = behind.first().is_none_or(|byte| matches!(byte, b' ' | b'\t'..=b'\r'));
                return if is_end { Ok(at + 1) } else { Err(unbalanced()) };
            }
            (Some(b'"'), [b'\\', b'x', digits @ ..]) if hex(digits).is_some() => {
                word.extend(hex(digits));
                at += 3;
            }
            (Some(b'"'), [b'\\', escaped, ..]) => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                at += 1;
            }
            (Some(_), [b'\\', b'\'', ..]) => {
                word.push(b'\'');
                at += 1;
            }
            (_, [byte, ..]) => word.push(*byte),
        }
        at += 1;
    }
}

/// The byte that two hexadecimal digits encode.
fn hex(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    Some((digit(0)? << 4 | digit(1)?) as u8)
}

/// Whether a request begins like an HTTP request of a browser. The connection must then end, as in Redis: the following lines may be commands that a
/// web page has put into the browser's request.
pub(crate) fn is_http(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"POST") || word.eq_ignore_ascii_case(b"Host:")
}

/// A number in the format of Redis: no sign except a minus, no leading zeros, no spaces.
pub(crate) fn parse_number(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    match digits {
        [b'0'] => return (digits.len() == text.len()).then_some(0),
        // No more digits than every `u64` of this length can hold.
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut magnitude = 0u64;
    for digit in digits {
        magnitude = magnitude * 10 + u64::from(digit.is_ascii_digit().then(|| digit - b'0')?);
    }
    match digits.len() == text.len() {
        true => magnitude.try_into().ok(),
        false => 0i64.checked_sub_unsigned(magnitude),
    }
}

#[cfg(test)]
#[path = "test_request.rs"]
mod tests;
