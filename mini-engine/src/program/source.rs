//! What a command reads: a file, or stdin.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::program::failure::Failure;

/// An open input with the name it has in messages.
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

    /// All of it, but at most so many bytes.
    pub(crate) fn read_all(mut self, most: u64) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let read = (&mut self.reader).take(most).read_to_end(&mut bytes);
        read.map(|_| bytes).map_err(|source| self.failure(source))
    }

    #[cfg(test)]
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self { name: "bytes".into(), reader: Box::new(io::Cursor::new(bytes.to_vec())), bytes: None }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The size, where it is known beforehand: not of a pipe.
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
