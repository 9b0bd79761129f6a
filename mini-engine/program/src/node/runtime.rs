//! The runtime of the tasks of a node, or of a command that sends requests to nodes.

use crate::failure::Failure;

/// The least threads for tasks: even on one core, a thread that waits for a disk must not delay heartbeats.
const THREADS: usize = 4;

/// Runs `main` in a runtime of its own.
pub(crate) fn run<T>(main: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let threads = std::thread::available_parallelism().map_or(THREADS, |cores| cores.get().max(THREADS));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.map_err(|source| Failure::Io { action: "start", place: "threads".into(), source })?;
    runtime.block_on(main)
}
