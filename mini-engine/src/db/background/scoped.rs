//! A thread for one piece of work; the caller waits for its end.

use std::io::Result;
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// Starts `work` on a thread called `name`, which ends before `scope` does.
pub(crate) fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().name(name.to_owned()).spawn_scoped(scope, work)
}
