//! Calls of the engine from asynchronous tasks.
//!
//! A write goes to memory that the log maps, and takes microseconds, so the calling task makes it. Another thread makes the call only if it
//! would wait for a flush, a compaction or space, or if it reads or syncs whole files.

use std::io;

use mini_engine::{Db, Durability, Error, Result, WriteBatch};
use openraft::RaftTypeConfig;
use openraft::type_config::TypeConfigExt;

/// Writes a batch. The batch is visible when this returns. It survives the process, and after a later sync also a power cut.
pub(crate) async fn write<C: RaftTypeConfig>(db: &Db, batch: WriteBatch) -> io::Result<()> {
    if db.try_write(&batch, Durability::Buffered)?.is_none() {
        let db = db.clone();
        blocking::<C, _, Error>(move || db.write(batch, Durability::Buffered)).await?;
    }
    Ok(())
}

/// The result of a call that may take long, made by another thread.
pub(crate) async fn blocking<C: RaftTypeConfig, T: Send + 'static, E>(
    call: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> io::Result<T>
where
    E: Into<io::Error> + Send + 'static,
{
    C::spawn_blocking(call).await?.map_err(Into::into)
}
