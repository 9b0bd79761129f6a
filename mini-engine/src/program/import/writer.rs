//! Writes batches in a thread of its own, so that a write which waits for disk space can be told from one that works.
//!
//! On a full disk the engine lets writers wait until there is room again. That is right for a server and wrong here, where
//! a caller waits for an answer: a caller that waits long asks the engine for a flush, which fails where there is no space. The
//! thread then still waits, until the database is closed.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::Scope;
use std::time::Duration;

use mini_engine::{Db, Durability, Error, WriteBatch};

/// A write that takes longer may be waiting for space.
const PATIENCE: Duration = Duration::from_secs(3);

/// The thread that writes, as seen from the one that reads the input.
pub(crate) struct Writer {
    db: Db,
    batches: Sender<WriteBatch>,
    results: Receiver<Result<(), Error>>,
}

impl Writer {
    /// Starts the thread. It ends when this is dropped and its last write has returned.
    pub(crate) fn start<'scope>(scope: &'scope Scope<'scope, '_>, db: &Db, durability: Durability) -> Self {
        let (batches, to_write) = mpsc::channel::<WriteBatch>();
        let (written, results) = mpsc::channel();
        let own = db.clone();
        scope.spawn(move || {
            for batch in to_write {
                let result = own.write(batch, durability).map(drop);
                if written.send(result).is_err() {
                    return;
                }
            }
        });
        Self { db: db.clone(), batches, results }
    }

    /// Writes `batch` with the durability that the thread was started with.
    pub(crate) fn write(&self, batch: WriteBatch) -> Result<(), Error> {
        // Fails only when the thread is gone, which the results tell too.
        self.batches.send(batch).ok();
        loop {
            match self.results.recv_timeout(PATIENCE) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Timeout) => self.db.flush()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::ReadOnly { cause: "the writing thread has ended".into() });
                }
            }
        }
    }
}
