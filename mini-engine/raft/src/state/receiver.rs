//! [`Receiver`]: builds a snapshot from the chunks of another node.

use std::io::{Error, ErrorKind, Result};
use std::path::{Component, Path};
use std::sync::Arc;

use mini_engine::fs::File;
use openraft::RaftTypeConfig;
use openraft::type_config::alias::SnapshotOf;

use super::checkpoint::{Checkpoint, Temporary};
use super::chunk::Chunk;

/// A snapshot that is being received: [`State::receive`](crate::State::receive). If it is dropped before the end, the received files are removed.
///
/// The methods write and sync files, so call them where a task may block. Memory: one chunk.
#[derive(Debug)]
pub struct Receiver {
    place: Temporary,
    open: Option<Open>,
}

/// The incomplete file.
#[derive(Debug)]
struct Open {
    name: String,
    file: Arc<dyn File>,
    len: u64,
    received: u64,
}

impl Receiver {
    pub(super) fn new(place: Temporary) -> Result<Self> {
        place.fs.create_dir_all(&place.dir)?;
        Ok(Self { place, open: None })
    }

    /// Stores the next chunk.
    ///
    /// # Errors
    /// [`InvalidData`](ErrorKind::InvalidData) if the chunk is damaged, or not the next one; the errors of writing. After an error the transfer
    /// has to start again.
    pub fn write(&mut self, chunk: &Chunk) -> Result<()> {
        chunk.check()?;
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.create(chunk)?,
        };
        if (&open.name, open.len, open.received) != (&chunk.file, chunk.file_len, chunk.offset) {
            let what = format!("expected offset {} of {} of a snapshot, found {chunk:?}", open.received, open.name);
            return Err(Error::new(ErrorKind::InvalidData, what));
        }
        open.file.write_all_at(&chunk.bytes, chunk.offset)?;
        open.received += chunk.bytes.len() as u64;
        if open.received < open.len {
            self.open = Some(open);
            return Ok(());
        }
        open.file.sync()
    }

    fn create(&self, chunk: &Chunk) -> Result<Open> {
        // The name comes from another machine, so it must not lead outside of the directory.
        let mut components = Path::new(&chunk.file).components();
        if !matches!((components.next(), components.next()), (Some(Component::Normal(_)), None)) {
            return Err(Error::new(ErrorKind::InvalidData, format!("expected the name of a file, found {chunk:?}")));
        }
        let file = self.place.fs.create_new(&self.place.dir.join(&chunk.file))?;
        Ok(Open { name: chunk.file.clone(), file, len: chunk.file_len, received: 0 })
    }

    /// Makes the received files durable, and reads them once to check every byte. The result is for
    /// [`Raft::install_full_snapshot`](openraft::Raft::install_full_snapshot).
    ///
    /// # Errors
    /// If a chunk is missing, or the sender's own files are damaged; the errors of syncing and reading.
    pub fn finish<C: RaftTypeConfig>(self) -> Result<SnapshotOf<C, Checkpoint>> {
        if let Some(Open { name, len, received, .. }) = &self.open {
            let what = format!("a snapshot ended too early: {name} has {len} bytes, {received} were received");
            return Err(Error::new(ErrorKind::UnexpectedEof, what));
        }
        self.place.fs.sync_dir(&self.place.dir)?;
        let checkpoint = Checkpoint { place: self.place };
        checkpoint.verify()?;
        checkpoint.into_snapshot::<C>()
    }
}
