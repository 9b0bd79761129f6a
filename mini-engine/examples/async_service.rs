//! A service under tokio whose runtime threads never wait for a disk: a separate thread writes for all tasks, with one sync for all batches that
//! arrived meanwhile. `cargo run -p mini-engine --example async_service`

use std::thread;

use mini_engine::{Db, Durability, Error, Result, Slice, WriteBatch};
use tokio::sync::{mpsc, oneshot};

/// A write, and the channel for its result.
type Request = (WriteBatch, oneshot::Sender<Result<()>>);

/// A handle for any number of tasks.
#[derive(Clone)]
struct Service {
    db: Db,
    /// Bounded: tasks that write faster than the disk wait, without blocking a thread.
    writes: mpsc::Sender<Request>,
}

impl Service {
    fn start(db: Db) -> (Self, thread::JoinHandle<usize>) {
        let (writes, requests) = mpsc::channel(1024);
        (Self { db: db.clone(), writes }, thread::spawn(move || write_all(&db, requests)))
    }

    /// Returns once the batch is durable.
    async fn write(&self, batch: WriteBatch) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        self.writes.send((batch, answer)).await.map_err(|_| Error::Closed)?;
        answered.await.map_err(|_| Error::Closed)?
    }

    /// A read may have to wait for the disk, so it runs on a blocking thread. A read of cached data takes a microsecond, and needs none.
    async fn get(&self, key: String) -> Result<Option<Slice>> {
        let db = self.db.clone();
        tokio::task::spawn_blocking(move || db.get(key)).await.map_err(|_| Error::Closed)?
    }
}

/// Writes until the last handle is dropped: all batches that have arrived, then one sync for all of them. Returns the number of syncs.
fn write_all(db: &Db, mut requests: mpsc::Receiver<Request>) -> usize {
    let (mut group, mut syncs) = (Vec::new(), 0);
    while requests.blocking_recv_many(&mut group, 256) > 0 {
        let written: Vec<Result<()>> =
            group.iter().map(|(batch, _)| db.write(batch, Durability::Buffered).map(drop)).collect();
        let synced = db.persist(Durability::Synced);
        syncs += 1;
        for ((_, answer), written) in group.drain(..).zip(written) {
            answer.send(written.and(synced.clone())).ok(); // Fails for a cancelled task, which needs no answer.
        }
    }
    syncs
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let db = Db::open(directory.path())?;
    let (service, writer) = Service::start(db.clone());
    // One runtime thread shows the effect: if a task waited for the disk on it, no other task would go on.
    tokio::runtime::Builder::new_current_thread().build()?.block_on(async move {
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..200 {
            let service = service.clone();
            tasks.spawn(async move {
                let key = format!("task {task}");
                let mut batch = WriteBatch::new();
                batch.insert(&key, "done")?;
                service.write(batch).await?;
                service.get(key).await
            });
        }
        while let Some(read) = tasks.join_next().await {
            assert_eq!(read.expect("a task")?.as_deref(), Some(&b"done"[..]));
        }
        Ok::<(), Error>(())
    })?;
    println!("200 durable writes took {} syncs", writer.join().expect("the writer"));
    Ok(db.close()?)
}
