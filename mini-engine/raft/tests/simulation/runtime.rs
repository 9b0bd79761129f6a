//! [`Sim`]: openraft's runtime in a simulation. One thread polls all tasks, on tokio's paused clock, which jumps to the next timer when all tasks
//! wait. Random numbers come from the seed. Each task belongs to a [`Process`], which can be paused and killed.

use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use openraft::rt::deterministic_rng::DeterministicRng;
use openraft::{AsyncRuntime, OptionalSend};
use openraft_rt_tokio::TokioRuntime;
use proof::Random;
use tokio::task::{AbortHandle, yield_now};

use crate::watch::InOrder;

pub(crate) type Seeded = DeterministicRng<TokioRuntime>;

tokio::task_local! {
    static PROCESS: Arc<Process>;
}

/// The tasks of one run of a node.
pub(crate) struct Process(Mutex<Tasks>);

struct Tasks {
    tasks: Vec<AbortHandle>,
    /// The tasks that have been woken during a pause.
    paused: Option<Vec<Waker>>,
    is_dead: bool,
    panicked: Option<String>,
    /// The most microseconds that the disk takes.
    disk_delay: u64,
    random: Random,
}

impl Process {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        let mut random = Random(seed);
        let disk_delay = if random.one_in(3) { 300_000 } else { 5_000 };
        let tasks = Tasks { tasks: Vec::new(), paused: None, is_dead: false, panicked: None, disk_delay, random };
        Arc::new(Self(Mutex::new(tasks)))
    }

    pub(crate) fn spawn<T>(self: &Arc<Self>, task: T) -> tokio::task::JoinHandle<T::Output>
    where
        T: Future<Output: Send> + Send + 'static,
    {
        let (process, mut task) = (Arc::clone(self), Box::pin(task));
        let handle = Seeded::spawn(poll_fn(move |context| {
            if let Some(woken) = &mut process.0.lock().unwrap().paused {
                woken.push(context.waker().clone());
                return Poll::Pending;
            }
            let poll = AssertUnwindSafe(|| PROCESS.sync_scope(Arc::clone(&process), || task.as_mut().poll(context)));
            catch_unwind(poll).unwrap_or_else(|panic| {
                let said = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                process.0.lock().unwrap().panicked = Some(said);
                resume_unwind(panic)
            })
        }));
        let mut own = self.0.lock().unwrap();
        if own.tasks.len().is_power_of_two() {
            own.tasks.retain(|task| !task.is_finished());
        }
        own.tasks.push(handle.abort_handle());
        handle
    }

    /// Runs a step of the storage after the time that a disk takes, if the process lives until then.
    pub(crate) fn run_step(self: &Arc<Self>, step: Box<dyn FnOnce() + Send>) {
        if !self.0.lock().unwrap().is_dead {
            let delay = self.disk_delay();
            self.spawn(async move {
                Sim::sleep(delay).await;
                step();
            });
        }
    }

    fn disk_delay(&self) -> Duration {
        let mut own = self.0.lock().unwrap();
        let most = own.disk_delay;
        Duration::from_micros(100 + own.random.below(most))
    }

    /// The message of a task that has panicked.
    pub(crate) fn panicked(&self) -> Option<String> {
        self.0.lock().unwrap().panicked.clone()
    }

    pub(crate) fn pause(&self) {
        self.0.lock().unwrap().paused.get_or_insert_default();
    }

    pub(crate) fn resume(&self) {
        let woken = self.0.lock().unwrap().paused.take();
        woken.into_iter().flatten().for_each(Waker::wake);
    }

    /// Drops all tasks where they wait.
    pub(crate) async fn kill(&self) {
        let tasks = {
            let mut own = self.0.lock().unwrap();
            own.is_dead = true;
            std::mem::take(&mut own.tasks)
        };
        tasks.iter().for_each(AbortHandle::abort);
        while !tasks.iter().all(AbortHandle::is_finished) {
            yield_now().await;
        }
    }
}

#[derive(Debug)]
pub(crate) struct Sim;

impl AsyncRuntime for Sim {
    type JoinError = <Seeded as AsyncRuntime>::JoinError;
    type JoinHandle<T: OptionalSend + 'static> = tokio::task::JoinHandle<T>;
    type Sleep = <Seeded as AsyncRuntime>::Sleep;
    type Instant = <Seeded as AsyncRuntime>::Instant;
    type TimeoutError = <Seeded as AsyncRuntime>::TimeoutError;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = tokio::time::Timeout<T>;
    type ThreadLocalRng = <Seeded as AsyncRuntime>::ThreadLocalRng;
    type Mpsc = <Seeded as AsyncRuntime>::Mpsc;
    type Watch = InOrder;
    type Oneshot = <Seeded as AsyncRuntime>::Oneshot;
    type Mutex<T: OptionalSend + 'static> = <Seeded as AsyncRuntime>::Mutex<T>;

    fn spawn<T>(task: T) -> Self::JoinHandle<T::Output>
    where
        T: Future<Output: OptionalSend> + OptionalSend + 'static,
    {
        PROCESS.with(|process| process.spawn(task))
    }

    fn sleep(duration: Duration) -> Self::Sleep {
        Seeded::sleep(duration)
    }

    fn sleep_until(deadline: Self::Instant) -> Self::Sleep {
        Seeded::sleep_until(deadline)
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(duration: Duration, future: F) -> Self::Timeout<R, F> {
        Seeded::timeout(duration, future)
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(deadline: Self::Instant, future: F) -> Self::Timeout<R, F> {
        Seeded::timeout_at(deadline, future)
    }

    fn is_panic(error: &Self::JoinError) -> bool {
        Seeded::is_panic(error)
    }

    fn thread_rng() -> Self::ThreadLocalRng {
        Seeded::thread_rng()
    }

    fn new(_: usize) -> Self {
        Self
    }

    /// Runs on this thread, with the clock at its beginning.
    fn block_on<F: Future<Output = T>, T>(&mut self, future: F) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(future)
    }

    /// Runs the call on this thread, after the time that a disk takes.
    fn spawn_blocking<F, T>(call: F) -> impl Future<Output = io::Result<T>> + Send
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let delay = PROCESS.with(|process| process.disk_delay());
        async move {
            Sim::sleep(delay).await;
            Ok(call())
        }
    }
}
