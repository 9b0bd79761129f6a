//! Runs a model: every execution that loom finds, for every order in which its threads can be spawned.
//!
//! loom 0.7.2 keeps only the last access of each object. So a load followed by a CAS in one thread hides an earlier load of another thread, and
//! loom skips executions. A reader that is spawned last is not hidden. Therefore the main thread does no work while others run, and each program
//! runs with its threads spawned in every order. The observed outcomes must be exactly those that the model lists: a missing outcome fails the
//! model, and so does an extra one. `tests/suite/canaries.rs` checks this method. The method still runs fewer executions than a loom without the
//! defect would, so campaigns use a repaired loom: `repaired-loom`.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::sync::set_thread_index;
use crate::tuning::begin_threads;

/// An observation of a thread, or of the check at the end: nothing, or a text.
pub trait Observed {
    /// The text; empty for no observation.
    fn words(self) -> String;
}

impl Observed for () {
    fn words(self) -> String {
        String::new()
    }
}

impl Observed for &str {
    fn words(self) -> String {
        self.to_owned()
    }
}

impl Observed for String {
    fn words(self) -> String {
        self
    }
}

/// A function that reads the shared data of the threads, and returns its observation.
type Look<T> = Box<dyn Fn(&T) -> String + Send + Sync>;

/// A concurrent program.
pub struct Program<T> {
    new: Box<dyn Fn() -> T + Send + Sync>,
    threads: Vec<Look<T>>,
    at_rest: Look<T>,
    most: Most,
    expected: BTreeSet<String>,
}

impl<T: 'static> Program<T> {
    /// A program whose threads share the data that `new` makes. The main thread makes it again for each execution, before it spawns the others.
    pub fn new(new: impl Fn() -> T + Send + Sync + 'static) -> Self {
        let (new, at_rest) = (Box::new(new), Box::new(|_: &T| String::new()));
        Self { new, threads: Vec::new(), at_rest, most: Most::ALL, expected: BTreeSet::from([String::new()]) }
    }

    /// Adds a thread. A program has at most 4, loom's limit.
    #[must_use]
    pub fn thread<O: Observed>(mut self, body: impl Fn(&T) -> O + Send + Sync + 'static) -> Self {
        self.threads.push(Box::new(move |shared| body(shared).words()));
        self
    }

    /// Adds `count` threads that differ in their number.
    #[must_use]
    pub fn threads<O: Observed>(
        self,
        count: usize,
        body: impl Fn(&T, usize) -> O + Clone + Send + Sync + 'static,
    ) -> Self {
        let next = self.threads.len();
        (next..next + count).fold(self, |program, number| {
            let body = body.clone();
            program.thread(move |shared| body(shared, number))
        })
    }

    /// Sets the check that runs when all threads have ended, and its observation.
    #[must_use]
    pub fn at_rest<O: Observed>(self, look: impl Fn(&T) -> O + Send + Sync + 'static) -> Self {
        Self { at_rest: Box::new(move |shared| look(shared).words()), ..self }
    }

    /// Sets all allowed outcomes: the observations of the threads, in the order of the threads. The default is no observation.
    #[must_use]
    pub fn expects(self, outcomes: &[&str]) -> Self {
        Self { expected: outcomes.iter().map(|outcome| (*outcome).to_owned()).collect(), ..self }
    }

    /// Limits the depth to which the program is explored, even in a deeper run.
    #[must_use]
    pub fn most(self, most: Most) -> Self {
        Self { most, ..self }
    }

    /// Explores the program.
    ///
    /// # Panics
    /// If an execution breaks a rule of the storage or an assertion of the program, deadlocks, or observes an unexpected outcome; and if an
    /// expected outcome was never observed.
    #[must_use]
    pub fn explore(self, depth: Depth) -> Report {
        let (expected, allowed) = (self.expected.clone(), self.expected.clone());
        let report = self.observe(depth, move |outcome| {
            assert!(allowed.contains(outcome), "observed {outcome:?}, expected one of {allowed:#?}");
        });
        let missing: Vec<_> = expected.difference(&report.outcomes).collect();
        assert!(missing.is_empty(), "never observed: {missing:#?}");
        report
    }

    /// Explores the program and passes each outcome to `check_outcome`; outcomes need not be expected.
    ///
    /// # Panics
    /// Like [`explore`](Self::explore), and if `check_outcome` panics.
    #[must_use]
    pub fn observe(self, depth: Depth, check_outcome: impl Fn(&str) + Send + Sync + 'static) -> Report {
        let (began, program) = (Instant::now(), Arc::new(self));
        let seen = Arc::new((AtomicU64::new(0), Mutex::new(BTreeSet::new()), check_outcome));
        for order in orders(program.threads.len()) {
            let (seen, program) = (Arc::clone(&seen), Arc::clone(&program));
            model(depth, program.threads.len(), program.most).check(move || {
                let outcome = program.execute(&order);
                let (executions, outcomes, check_outcome) = &*seen;
                check_outcome(&outcome);
                executions.fetch_add(1, Ordering::Relaxed);
                outcomes.lock().expect("no model panicked").insert(outcome);
            });
        }
        let outcomes = seen.1.lock().expect("no model panicked").clone();
        Report { executions: seen.0.load(Ordering::Relaxed), outcomes, elapsed: began.elapsed() }
    }

    fn execute(self: &Arc<Self>, order: &[usize]) -> String {
        let shared = Arc::new((self.new)());
        begin_threads();
        let spawn = |&number: &usize| {
            let (program, shared) = (Arc::clone(self), Arc::clone(&shared));
            let body = move || {
                set_thread_index(number);
                (program.threads[number])(&shared)
            };
            (number, loom::thread::spawn(body))
        };
        let threads: Vec<_> = order.iter().map(spawn).collect();
        let ended = |thread: loom::thread::JoinHandle<String>| thread.join().expect("a panic ends the process' model");
        let mut seen: Vec<_> = threads.into_iter().map(|(number, thread)| (number, ended(thread))).collect();
        seen.sort();
        let seen = seen.into_iter().map(|(_, seen)| seen).chain([(self.at_rest)(&shared)]);
        seen.filter(|seen| !seen.is_empty()).collect::<Vec<_>>().join(" | ")
    }
}

/// Bounds of a program that has too many steps to be explored as deeply as the others.
#[derive(Debug, Clone, Copy)]
pub struct Most {
    /// The bound on preemptions in an execution; the bound is also at least one below that of other programs.
    pub preemptions: usize,
    /// The most executions that are run for each order in which the program's threads are spawned.
    pub executions: usize,
}

impl Most {
    /// No bounds.
    pub const ALL: Self = Self { preemptions: usize::MAX, executions: usize::MAX };
}

/// The depth to which a model is explored: how often an execution may interrupt a thread that could go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// The bound for two threads; `None` explores all.
    pub two: Option<usize>,
    /// The bound for more threads, likewise.
    pub more: Option<usize>,
    /// The most executions that are run for each order in which the threads are spawned.
    pub executions: usize,
}

impl Depth {
    /// Every execution.
    pub const ALL: Self = Self { two: None, more: None, executions: usize::MAX };
    /// The smallest depth at which every model shows all of its outcomes.
    pub const QUICK: Self = Self { two: Some(2), more: Some(1), executions: 4_000 };
    /// The depth that a machine can run for each commit.
    pub const COMMIT: Self = Self { two: Some(3), more: Some(2), executions: 6_000 };
    /// A depth that takes almost an hour.
    pub const CAMPAIGN: Self = Self { two: None, more: Some(3), executions: usize::MAX };

    /// The depth of a test: [`CAMPAIGN`](Self::CAMPAIGN) where tests are optimised (`--release`), [`COMMIT`](Self::COMMIT) with
    /// `MODEL_DEPTH=commit`, as in `.ci/run`, else [`QUICK`](Self::QUICK).
    ///
    /// # Panics
    /// If `MODEL_DEPTH` is something else.
    #[must_use]
    pub fn of_tests() -> Self {
        match std::env::var("MODEL_DEPTH").as_deref() {
            _ if !cfg!(debug_assertions) => Self::CAMPAIGN,
            Ok("commit") => Self::COMMIT,
            Err(_) => Self::QUICK,
            Ok(other) => panic!("MODEL_DEPTH: expected \"commit\", found {other:?}"),
        }
    }
}

/// The result of a run of a model.
#[derive(Debug)]
pub struct Report {
    /// Executions explored.
    pub executions: u64,
    /// The observed outcomes, each once.
    pub outcomes: BTreeSet<String>,
    /// How long it took.
    pub elapsed: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { executions, outcomes, elapsed } = self;
        write!(f, "{executions} executions, {} outcomes, {:.1} s", outcomes.len(), elapsed.as_secs_f64())
    }
}

fn model(depth: Depth, threads: usize, most: Most) -> loom::model::Builder {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = match (if threads > 2 { depth.more } else { depth.two }, most.preemptions) {
        (bound, usize::MAX) => bound,
        (bound, most) => Some(bound.map_or(most, |bound| most.min(bound.saturating_sub(1)))),
    };
    // The number of executions after which loom checks whether it has reached the bound.
    model.checkpoint_interval = 500;
    model.max_permutations = Some(most.executions.min(depth.executions)).filter(|executions| *executions != usize::MAX);
    model.max_branches = 10_000;
    model
}

/// Every order of the numbers below `count`.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![vec![]];
    for number in 0..count {
        let longer = |order: Vec<usize>| {
            (0..=order.len()).map(move |at| {
                let mut order = order.clone();
                order.insert(at, number);
                order
            })
        };
        orders = orders.into_iter().flat_map(longer).collect();
    }
    orders
}
