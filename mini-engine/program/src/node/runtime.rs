//! The runtime of the tasks of a node, or of a command that asks nodes.

use crate::failure::Failure;

/// Runs `main` in a runtime of its own.
pub(crate) fn run<T>(main: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|source| Failure::Io { action: "start", place: "threads".into(), source })?;
    runtime.block_on(main)
}
