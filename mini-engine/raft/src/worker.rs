//! [`Worker`]: a thread outside of the asynchronous runtime, which handles together all tasks that were queued while it was busy.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// A thread that takes all queued tasks, in order, and runs them in one step.
///
/// When this is dropped, the thread runs the queued tasks and ends; the drop waits for that.
pub(crate) struct Worker<T> {
    queue: Arc<Queue<T>>,
    thread: Option<JoinHandle<()>>,
    /// In a simulation, instead of the thread.
    hand_over: Option<Box<dyn Fn() + Send + Sync>>,
}

/// Runs the tasks that are queued when it is called.
type Step = Box<dyn FnOnce() + Send>;
type HandTo = Arc<dyn Fn(Step) + Send + Sync>;

thread_local! {
    static SIMULATED: RefCell<Option<HandTo>> = const { RefCell::new(None) };
}

/// For a simulation in one thread: the stores that `open` opens start no threads. For each sync, and each removal of files or entries, `run` gets a
/// step, and calls it later; or drops it, if the simulated process has ended.
pub fn without_threads<T>(
    run: impl Fn(Box<dyn FnOnce() + Send>) + Send + Sync + 'static,
    open: impl FnOnce() -> T,
) -> T {
    SIMULATED.set(Some(Arc::new(run)));
    let opened = catch_unwind(AssertUnwindSafe(open));
    SIMULATED.set(None);
    opened.unwrap_or_else(|panic| resume_unwind(panic))
}

#[derive(Debug)]
struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    tasks: Vec<T>,
    is_over: bool,
}

impl<T: Send + 'static> Worker<T> {
    /// Starts a thread of this name.
    ///
    /// # Errors
    /// The system's error if it can start no more threads.
    pub(crate) fn start(name: &str, run: impl FnMut(Vec<T>) + Send + 'static) -> io::Result<Self> {
        let state = Mutex::new(State { tasks: Vec::new(), is_over: false });
        let queue = Arc::new(Queue { state, changed: Condvar::new() });
        let of_thread = Arc::clone(&queue);
        if let Some(hand_to) = SIMULATED.with_borrow(Clone::clone) {
            let run = Arc::new(Mutex::new(run));
            let hand_over = move || {
                let (queue, run) = (Arc::clone(&of_thread), Arc::clone(&run));
                hand_to(Box::new(move || {
                    let tasks = take(&mut queue.lock().tasks);
                    if !tasks.is_empty() {
                        run.lock().unwrap_or_else(PoisonError::into_inner)(tasks);
                    }
                }));
            };
            return Ok(Self { queue, thread: None, hand_over: Some(Box::new(hand_over)) });
        }
        let thread = thread::Builder::new().name(name.into()).spawn(move || {
            let mut run = run;
            while let Some(tasks) = of_thread.next() {
                run(tasks);
            }
        })?;
        Ok(Self { queue, thread: Some(thread), hand_over: None })
    }

    /// Queues a task. Never waits for a task.
    pub(crate) fn queue(&self, task: T) {
        self.queue.lock().tasks.push(task);
        self.queue.changed.notify_one();
        self.hand_over.iter().for_each(|hand_over| hand_over());
    }
}

impl<T> Queue<T> {
    /// Waits for tasks, and takes all of them. `None` at the end.
    fn next(&self) -> Option<Vec<T>> {
        let mut state = self.lock();
        loop {
            if !state.tasks.is_empty() {
                return Some(take(&mut state.tasks));
            }
            if state.is_over {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Each change of the state is one step, so a panic leaves it consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for Worker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        self.queue.lock().is_over = true;
        self.queue.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // Its panic was reported when it happened.
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn what_is_queued_during_a_step_is_done_in_the_next_one_in_order() {
        // Catches a task for each step, which would sync for each append; tasks lost at the end; and tasks out of order.
        let (begun, begins) = mpsc::channel();
        let (go, goes) = mpsc::channel::<()>();
        let done = Arc::new(Mutex::new(Vec::new()));
        let of_thread = Arc::clone(&done);
        let worker = Worker::start("test", move |tasks: Vec<u32>| {
            begun.send(()).unwrap();
            goes.recv().ok();
            of_thread.lock().unwrap().push(tasks);
        })
        .unwrap();
        worker.queue(1);
        begins.recv().unwrap();
        (2..6).for_each(|task| worker.queue(task));
        drop(go);
        drop(worker);
        assert_eq!(*done.lock().unwrap(), [vec![1], vec![2, 3, 4, 5]]);
    }

    #[test]
    fn stores_have_threads_again_after_an_open_without_them_has_panicked() {
        // Catches later stores of the same thread that never sync, because nobody makes their steps.
        let opened = catch_unwind(|| without_threads(|_| {}, || panic!("no disk")));
        assert!(opened.is_err() && SIMULATED.with_borrow(Option::is_none));
    }
}
