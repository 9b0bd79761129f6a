//! [`Worker`]: a thread outside of the asynchronous runtime, which handles together all tasks that were queued while it was busy.

use std::io;
use std::mem::take;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// A thread that takes all queued tasks, in order, and runs them in one step.
///
/// When this is dropped, the thread runs the queued tasks and ends; the drop waits for that.
#[derive(Debug)]
pub(crate) struct Worker<T> {
    queue: Arc<Queue<T>>,
    thread: Option<JoinHandle<()>>,
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
    pub(crate) fn start(name: &str, mut run: impl FnMut(Vec<T>) + Send + 'static) -> io::Result<Self> {
        let state = Mutex::new(State { tasks: Vec::new(), is_over: false });
        let queue = Arc::new(Queue { state, changed: Condvar::new() });
        let of_thread = Arc::clone(&queue);
        let thread = thread::Builder::new().name(name.into()).spawn(move || {
            while let Some(tasks) = of_thread.next() {
                run(tasks);
            }
        })?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Queues a task. Never waits for a task.
    pub(crate) fn queue(&self, task: T) {
        self.queue.lock().tasks.push(task);
        self.queue.changed.notify_one();
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
}
