//! [`Sim`]: openraft's runtime in a simulation. One thread polls the tasks; the seed draws the next one from those that have been woken, so the order
//! in which channels and timers wake them decides nothing. The clock is tokio's paused one: it jumps to the next timer when all tasks wait. Each task
//! belongs to a [`Process`], which can be paused and killed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::io;
use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use openraft::rt::deterministic_rng::DeterministicRng;
use openraft::{AsyncRuntime, OptionalSend};
use openraft_rt_tokio::TokioRuntime;
use proof::Random;
use tokio::sync::{Notify, oneshot};

type Seeded = DeterministicRng<TokioRuntime>;

thread_local! {
    static TASKS: RefCell<Tasks> = RefCell::default();
}

/// The tasks of a run, by their numbers.
#[derive(Default)]
struct Tasks {
    spawned: u64,
    /// Without the task that is being polled.
    waiting: BTreeMap<u64, Task>,
    /// Some of these may have ended.
    woken: BTreeSet<u64>,
    executor: Arc<Notify>,
    /// The process of the task that is being polled.
    current: Option<Arc<Process>>,
}

struct Task {
    process: Arc<Process>,
    future: Pin<Box<dyn Future<Output = ()>>>,
    waker: Waker,
}

/// Wakes the task with this number, on the thread of the simulation.
struct TaskWaker(u64);

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        TASKS.with_borrow_mut(|tasks| {
            tasks.woken.insert(self.0);
            tasks.executor.notify_one();
        });
    }
}

impl Tasks {
    /// Takes one of the tasks that can go on.
    fn next(&mut self, random: &mut Random) -> Option<(u64, Task)> {
        let mut ready = Vec::new();
        self.woken.retain(|number| {
            let task = self.waiting.get(number);
            ready.extend(task.filter(|task| !task.process.state().is_paused).map(|_| *number));
            task.is_some()
        });
        let drawn = random.index(ready.len().max(1));
        let number = *ready.get(drawn)?;
        self.woken.remove(&number);
        let task = self.waiting.remove(&number)?;
        self.current = Some(Arc::clone(&task.process));
        Some((number, task))
    }
}

/// Runs a task outside of all nodes, and the tasks that it spawns.
pub(crate) fn simulate<T: 'static>(seed: u64, main: impl Future<Output = T> + 'static) -> T {
    let (mut random, outside) = (Random(seed), Process::new(seed));
    let executor = TASKS.with_borrow(|tasks| Arc::clone(&tasks.executor));
    let run = async {
        let mut done = outside.spawn(main);
        loop {
            while let Some((number, mut task)) = TASKS.with_borrow_mut(|tasks| tasks.next(&mut random)) {
                let mut context = Context::from_waker(&task.waker);
                match catch_unwind(AssertUnwindSafe(|| task.future.as_mut().poll(&mut context))) {
                    Ok(Poll::Pending) => drop(TASKS.with_borrow_mut(|tasks| tasks.waiting.insert(number, task))),
                    Ok(Poll::Ready(())) => {}
                    Err(panic) if Arc::ptr_eq(&task.process, &outside) => resume_unwind(panic),
                    Err(panic) => {
                        let message = panic.downcast_ref::<String>().cloned();
                        task.process.state().panicked = Some(message.unwrap_or_default());
                    }
                }
            }
            if let Ok(done) = done.try_recv() {
                drop(TASKS.take());
                return done;
            }
            executor.notified().await;
        }
    };
    // tokio's limit for one task does not apply to this one, which polls all.
    Sim.block_on(tokio::task::unconstrained(Seeded::scope(seed, run)))
}

/// The tasks of one run of a node, or those outside of all nodes.
pub(crate) struct Process(Mutex<ProcessState>);

pub(crate) struct ProcessState {
    /// Tasks that are woken during a pause go on after it.
    pub(crate) is_paused: bool,
    is_dead: bool,
    /// The message of a task that has panicked.
    pub(crate) panicked: Option<String>,
    /// The most microseconds that the disk takes.
    disk_delay: u64,
    random: Random,
}

impl Process {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        let mut random = Random(seed);
        let disk_delay = if random.one_in(3) { 300_000 } else { 5_000 };
        let state = ProcessState { is_paused: false, is_dead: false, panicked: None, disk_delay, random };
        Arc::new(Self(Mutex::new(state)))
    }

    /// The process of the task that calls this.
    pub(crate) fn current() -> Arc<Self> {
        TASKS.with_borrow(|tasks| tasks.current.clone()).expect("a task")
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, ProcessState> {
        self.0.lock().unwrap()
    }

    /// Spawns a task, unless the process is dead.
    pub(crate) fn spawn<T: 'static>(self: &Arc<Self>, task: impl Future<Output = T> + 'static) -> oneshot::Receiver<T> {
        let (sender, result) = oneshot::channel();
        if !self.state().is_dead {
            let (process, future) = (Arc::clone(self), Box::pin(async { drop(sender.send(task.await)) }));
            TASKS.with_borrow_mut(|tasks| {
                tasks.spawned += 1;
                let waker = Waker::from(Arc::new(TaskWaker(tasks.spawned)));
                tasks.waiting.insert(tasks.spawned, Task { process, future, waker });
                tasks.woken.insert(tasks.spawned);
            });
        }
        result
    }

    /// Makes a call after the time that a disk takes, if the process lives until then.
    pub(crate) fn call_disk<T: 'static>(self: &Arc<Self>, call: impl FnOnce() -> T + 'static) -> oneshot::Receiver<T> {
        let delay = {
            let mut state = self.state();
            let most = state.disk_delay;
            Duration::from_micros(100 + state.random.below(most))
        };
        self.spawn(async move {
            Sim::sleep(delay).await;
            call()
        })
    }

    /// Drops all tasks where they wait.
    pub(crate) fn kill(&self) {
        self.state().is_dead = true;
        let is_own = |(_, task): &(u64, Task)| std::ptr::eq(&*task.process, self);
        let tasks = TASKS.with_borrow_mut(|tasks| take(&mut tasks.waiting));
        let (dead, others): (BTreeMap<_, _>, _) = tasks.into_iter().partition(is_own);
        TASKS.with_borrow_mut(|tasks| tasks.waiting = others);
        // This wakes tasks of other processes.
        drop(dead);
    }
}

#[derive(Debug)]
pub(crate) struct Sim;

impl AsyncRuntime for Sim {
    type JoinError = oneshot::error::RecvError;
    type JoinHandle<T: OptionalSend + 'static> = oneshot::Receiver<T>;
    type Sleep = <Seeded as AsyncRuntime>::Sleep;
    type Instant = <Seeded as AsyncRuntime>::Instant;
    type TimeoutError = <Seeded as AsyncRuntime>::TimeoutError;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = tokio::time::Timeout<T>;
    type ThreadLocalRng = <Seeded as AsyncRuntime>::ThreadLocalRng;
    type Mpsc = <Seeded as AsyncRuntime>::Mpsc;
    type Watch = <Seeded as AsyncRuntime>::Watch;
    type Oneshot = <Seeded as AsyncRuntime>::Oneshot;
    type Mutex<T: OptionalSend + 'static> = <Seeded as AsyncRuntime>::Mutex<T>;

    fn spawn<T>(task: T) -> Self::JoinHandle<T::Output>
    where
        T: Future<Output: OptionalSend> + OptionalSend + 'static,
    {
        Process::current().spawn(task)
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

    fn is_panic(_: &Self::JoinError) -> bool {
        true
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

    fn spawn_blocking<F, T>(call: F) -> impl Future<Output = io::Result<T>> + Send
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let done = Process::current().call_disk(call);
        async { done.await.map_err(io::Error::other) }
    }
}
