//! The threads that work for the event loop: one carries out jobs, one syncs, and one waits for room for a write. Each does one task at a time. With
//! [`ServerDurability::Everysec`], a further thread syncs each second. So the event loop itself never waits for the engine.
//!
//! All threads end when the event loop drops its side, and are then joined: no thread outlives the database. Results return through a channel, and
//! the thread then wakes the loop.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mini_engine::{Db, Durability, Error, Result, WriteBatch};
use mio::Waker;

use crate::groups::Client;
use crate::protocol::reply::Outcome;
use crate::settings::ServerDurability;
use crate::state::job::Job;

const SECOND: Duration = Duration::from_secs(1);

/// A job, and the client that waits for it, if any.
pub(crate) type Task = (Job, Option<Client>);

/// All threads of this kind.
pub(crate) struct Workers {
    pub(crate) jobs: Worker<Task, (Task, Outcome)>,
    pub(crate) syncs: Worker<(), Result<()>>,
    /// Waits until a batch can be written.
    pub(crate) room: Worker<WriteBatch, Result<()>>,
    /// The thread of [`ServerDurability::Everysec`], which ends when its sender is dropped.
    _every_second: Option<(Sender<()>, Joined)>,
}

impl Workers {
    pub(crate) fn start(db: &Db, waker: &Arc<Waker>, durability: ServerDurability) -> io::Result<Self> {
        let own = || db.clone();
        let (of_jobs, of_syncs, of_room) = (own(), own(), own());
        let is_every_second = durability == ServerDurability::Everysec;
        Ok(Self {
            jobs: Worker::start("serve-jobs", waker, move |(job, client): Task, is_over| {
                let outcome = job.run(&of_jobs, is_over);
                ((job, client), outcome)
            })?,
            syncs: Worker::start("serve-sync", waker, move |(), _| of_syncs.persist(Durability::Synced))?,
            room: Worker::start("serve-room", waker, move |batch, _| of_room.wait_for_room(&batch))?,
            _every_second: is_every_second.then(|| sync_every_second(own())).transpose()?,
        })
    }
}

fn sync_every_second(db: Db) -> io::Result<(Sender<()>, Joined)> {
    let (stop, stopped) = mpsc::channel();
    let thread = Joined::start("serve-sync", move || {
        while stopped.recv_timeout(SECOND) == Err(RecvTimeoutError::Timeout) {
            if let Err(error) = db.persist(Durability::Synced) {
                // The engine refuses every later write with this cause, so clients will get the error.
                tracing::error!(%error, "could not sync");
                break;
            }
        }
    })?;
    Ok((stop, thread))
}

/// A thread that is joined when this is dropped.
struct Joined(Option<JoinHandle<()>>);

impl Joined {
    fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        thread::Builder::new().name(name.into()).spawn(run).map(|thread| Self(Some(thread)))
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // The thread's panic was reported when it happened.
            thread.join().ok();
        }
    }
}

/// A thread that turns each `T` into a `D`, in order.
pub(crate) struct Worker<T, D> {
    // Dropped before the thread is joined, which then ends.
    to_do: Sender<T>,
    /// Set when the server ends: then long work is given up.
    is_over: Arc<AtomicBool>,
    _thread: Joined,
    done: Receiver<D>,
}

impl<T: Send + 'static, D: Send + 'static> Worker<T, D> {
    fn start(name: &str, waker: &Arc<Waker>, run: impl Fn(T, &AtomicBool) -> D + Send + 'static) -> io::Result<Self> {
        let (begin, to_do) = mpsc::channel();
        let (report, done) = mpsc::channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let (given_up, waker) = (Arc::clone(&is_over), Arc::clone(waker));
        let thread = Joined::start(name, move || {
            for task in to_do {
                // When the server has ended, nobody receives the result.
                if report.send(run(task, &given_up)).is_err() || waker.wake().is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { to_do: begin, is_over, _thread: thread, done })
    }

    /// Queues `task` after the earlier ones. Each client waits for at most one task, so there are no more tasks than clients.
    pub(crate) fn begin(&self, task: T) {
        // If the thread has ended, `next_done` returns an error.
        self.to_do.send(task).ok();
    }

    /// The result of the next finished task.
    ///
    /// # Errors
    /// Returns an error if the thread has panicked: then the tasks will never finish.
    pub(crate) fn next_done(&self) -> Result<Option<D>> {
        match self.done.try_recv() {
            Ok(done) => Ok(Some(done)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Error::ReadOnly { cause: "a thread of the server panicked".into() }),
        }
    }
}

impl<T, D> Drop for Worker<T, D> {
    fn drop(&mut self) {
        // ORDERING: Relaxed; the flag is a hint that publishes nothing. The join of the thread orders everything else.
        self.is_over.store(true, Ordering::Relaxed);
    }
}
