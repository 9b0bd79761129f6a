//! Runs a model: every execution that loom finds, for every order in which its threads can be spawned.
//!
//! loom 0.7.2 remembers one last access of each object. A load followed by a CAS in one thread so hides another
//! thread's earlier load, and executions are skipped. A reader that is spawned last is not hidden. So the programs do
//! no work in the main thread while others run, each is tried with its threads spawned in every order, and the set of
//! what was observed must be exactly what the model says: an outcome that is missing fails as one too many does.
//! `tests/canaries.rs` checks the method. It still runs fewer executions than a loom without the defect, so campaigns
//! use such a one: `repaired-loom`.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::sync::set_thread_index;
use crate::tuning::begin_threads;

/// A concurrent program. It is made anew for each execution, by the main thread before it spawns the others.
pub trait Program: 'static {
    /// How many threads it has: at most 4, loom's limit.
    const THREADS: usize;

    /// How far it is explored at most, however much a run may do.
    const MOST: Most = Most::ALL;

    /// What the threads share.
    fn new() -> Self;

    /// What thread `number` does; returns what it observed.
    fn thread(&self, number: usize) -> String;

    /// What holds when all threads have ended; returns what was observed then, empty for nothing.
    fn at_rest(&self) -> String;
}

/// Bounds of a program that has too many steps to be explored as far as the others.
#[derive(Debug, Clone, Copy)]
pub struct Most {
    /// Preemptions in an execution; and one fewer than the others have.
    pub preemptions: usize,
    /// Executions for each order in which its threads are spawned: the first ones that loom comes to.
    pub executions: usize,
}

impl Most {
    /// No bounds.
    pub const ALL: Self = Self { preemptions: usize::MAX, executions: usize::MAX };
}

/// How far a model is explored: how many times an execution may take the processor from a thread that could go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// The bound for two threads; `None` explores all.
    pub two: Option<usize>,
    /// The bound for more threads, likewise.
    pub more: Option<usize>,
    /// Executions for each order in which the threads are spawned: the first ones that loom comes to.
    pub executions: usize,
}

impl Depth {
    /// Every execution.
    pub const ALL: Self = Self { two: None, more: None, executions: usize::MAX };
    /// The least at which every model shows all of its outcomes.
    pub const QUICK: Self = Self { two: Some(2), more: Some(1), executions: 4_000 };
    /// What a machine can do for each commit.
    pub const COMMIT: Self = Self { two: Some(3), more: Some(2), executions: 6_000 };
    /// What takes the better part of an hour.
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

/// What a run of a model came to.
#[derive(Debug)]
pub struct Report {
    /// Executions explored.
    pub executions: u64,
    /// What was observed, each set of observations once.
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

/// Explores `P`.
///
/// # Panics
/// If an execution breaks a rule of the storage or an assertion of the program, deadlocks, or observes what is not in
/// `expected`; and if something in `expected` was never observed.
pub fn explore<P: Program>(depth: Depth, expected: BTreeSet<String>) -> Report {
    let expected = Arc::new(expected);
    let allowed = Arc::clone(&expected);
    let report = observe::<P>(depth, move |outcome| {
        assert!(allowed.contains(outcome), "observed {outcome:?}, expected one of {allowed:#?}");
    });
    let missing: Vec<_> = expected.difference(&report.outcomes).collect();
    assert!(missing.is_empty(), "never observed: {missing:#?}");
    report
}

/// Explores `P` and shows each outcome to `judge`.
///
/// # Panics
/// As [`explore`], and where `judge` does.
pub fn observe<P: Program>(depth: Depth, judge: impl Fn(&str) + Send + Sync + 'static) -> Report {
    let began = Instant::now();
    let seen = Arc::new((AtomicU64::new(0), Mutex::new(BTreeSet::new()), judge));
    for order in orders(P::THREADS) {
        let seen = Arc::clone(&seen);
        model(depth, P::THREADS, P::MOST).check(move || {
            let outcome = execute::<P>(&order);
            let (executions, outcomes, judge) = &*seen;
            judge(&outcome);
            executions.fetch_add(1, Ordering::Relaxed);
            outcomes.lock().expect("no model panicked").insert(outcome);
        });
    }
    let outcomes = seen.1.lock().expect("no model panicked").clone();
    Report { executions: seen.0.load(Ordering::Relaxed), outcomes, elapsed: began.elapsed() }
}

fn model(depth: Depth, threads: usize, most: Most) -> loom::model::Builder {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = match (if threads > 2 { depth.more } else { depth.two }, most.preemptions) {
        (bound, usize::MAX) => bound,
        (bound, most) => Some(bound.map_or(most, |bound| most.min(bound.saturating_sub(1)))),
    };
    // How often loom looks whether it has come to the bound.
    model.checkpoint_interval = 500;
    model.max_permutations = Some(most.executions.min(depth.executions)).filter(|executions| *executions != usize::MAX);
    model.max_branches = 10_000;
    model
}

fn execute<P: Program>(order: &[usize]) -> String {
    let program = Arc::new(P::new());
    begin_threads();
    let spawn = |&number: &usize| {
        let program = Arc::clone(&program);
        let body = move || {
            set_thread_index(number);
            program.thread(number)
        };
        (number, loom::thread::spawn(body))
    };
    let threads: Vec<_> = order.iter().map(spawn).collect();
    let mut seen: Vec<_> = threads
        .into_iter()
        .map(|(number, thread)| (number, thread.join().expect("loom ends the process' model where a thread panics")))
        .collect();
    seen.sort();
    let at_rest = program.at_rest();
    let seen = seen.into_iter().map(|(_, seen)| seen).chain([at_rest]).filter(|seen| !seen.is_empty());
    seen.collect::<Vec<_>>().join(" | ")
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
