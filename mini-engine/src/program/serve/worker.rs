//! The threads beside the event loop: one carries out jobs, one at a time; one syncs each second.
//!
//! Both end when the event loop drops its side, and it joins them: no thread outlives the database. A reply goes back by a
//! channel, and the loop is woken.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mini_engine::{Db, Durability};
use mio::Waker;

use super::session::{Job, Outcome};

const SECOND: Duration = Duration::from_secs(1);

/// Who waits for a job: the place of a connection and its number, or nobody.
pub(crate) type Waiting = Option<(usize, u64)>;

/// The thread that carries out jobs.
pub(crate) struct Worker {
    jobs: Option<Sender<(Job, Waiting)>>,
    /// Set when the server ends: jobs are given up.
    is_over: Arc<AtomicBool>,
    done: Receiver<(Job, Waiting, Outcome)>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(crate) fn start(db: Db, waker: Arc<Waker>) -> io::Result<Self> {
        let (jobs, to_do) = mpsc::channel::<(Job, Waiting)>();
        let (report, done) = mpsc::channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let given_up = Arc::clone(&is_over);
        let thread = thread::Builder::new().name("serve-jobs".into()).spawn(move || {
            for (job, waiting) in to_do {
                let outcome = job.run(&db, &given_up);
                // Nobody listens any more when the server ends.
                if report.send((job, waiting, outcome)).is_err() || waker.wake().is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { jobs: Some(jobs), is_over, done, thread: Some(thread) })
    }

    /// Has `job` carried out after those before it. A client waits for one job at most, so they are no more than clients.
    pub(crate) fn begin(&self, job: Job, waiting: Waiting) {
        if let Some(jobs) = &self.jobs {
            // The thread ends only after this side does.
            jobs.send((job, waiting)).ok();
        }
    }

    /// The next job that is done.
    pub(crate) fn next_done(&self) -> Option<(Job, Waiting, Outcome)> {
        self.done.try_recv().ok()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        // ORDERING: Relaxed; a hint that publishes nothing. The join below orders all else.
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its panic was reported when it happened.
            thread.join().ok();
        }
    }
}

/// The thread of `--durability everysec`.
pub(crate) struct EverySecond {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl EverySecond {
    pub(crate) fn start(db: Db) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new().name("serve-sync".into()).spawn(move || {
            while stopped.recv_timeout(SECOND) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = db.persist(Durability::Synced) {
                    // The engine refuses every later write with this cause, so clients learn of it.
                    tracing::error!(%error, "could not sync");
                    break;
                }
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for EverySecond {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
