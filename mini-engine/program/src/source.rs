//! The input of a command: a file, or stdin.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::failure::Failure;

/// An open input with its name for messages.
pub(crate) struct Source {
    name: String,
    reader: Box<dyn Read>,
    bytes: Option<u64>,
}

impl Source {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self { name: "stdin".into(), reader: Box::new(io::stdin().lock()), bytes: None });
        }
        let failure = |source| Failure::Io { action: "read", place: path.display().to_string(), source };
        let file = File::open(path).map_err(failure)?;
        let metadata = file.metadata().map_err(failure)?;
        if metadata.is_dir() {
            return Err(failure(io::ErrorKind::IsADirectory.into()));
        }
        let bytes = metadata.is_file().then_some(metadata.len());
        Ok(Self { name: path.display().to_string(), reader: Box::new(file), bytes })
    }

    /// Reads everything, as the value of a key. A file longer than `most` bytes is refused unread; a longer pipe is read one byte further.
    pub(crate) fn read_value(mut self, most: u64) -> Result<Vec<u8>, Failure> {
        let too_long =
            |name, found| Failure::Usage(format!("{name}: expected a value of at most {most} bytes, found {found}"));
        match self.bytes {
            Some(bytes) if bytes > most => return Err(too_long(self.name, bytes.to_string())),
            _ => {}
        }
        let mut value = Vec::new();
        let read = (&mut self.reader).take(most + 1).read_to_end(&mut value);
        read.map_err(|source| self.failure(source))?;
        if value.len() as u64 > most { Err(too_long(self.name, "more".into())) } else { Ok(value) }
    }

    #[cfg(test)]
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self { name: "bytes".into(), reader: Box::new(io::Cursor::new(bytes.to_vec())), bytes: None }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The size, if it is known in advance, which is not the case for a pipe.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    pub(crate) fn failure(&self, source: io::Error) -> Failure {
        Failure::Io { action: "read", place: self.name.clone(), source }
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    #[test]
    fn no_more_is_read_of_a_value_than_tells_that_it_is_too_long() {
        // Catches a huge file that is read although its size is known to be too large, and a long value that is cut.
        let read = |bytes, most| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(b"1234567").and_then(|()| file.rewind()).unwrap();
            let mut same = file.try_clone().unwrap();
            let value = Source { name: "it".into(), reader: Box::new(file), bytes }.read_value(most);
            (value.map_err(|failure| failure.to_string()), same.stream_position().unwrap())
        };
        assert_eq!(read(Some(7), 7), (Ok(b"1234567".to_vec()), 7));
        assert_eq!(read(None, 7), (Ok(b"1234567".to_vec()), 7));
        let refused = |found| Err(format!("it: expected a value of at most 4 bytes, found {found}"));
        assert_eq!(read(Some(7), 4), (refused("7"), 0));
        assert_eq!(read(None, 4), (refused("more"), 5));
        // The file has grown since its size was read.
        assert_eq!(read(Some(4), 4), (refused("more"), 5));
    }
}
