//! Carries out a command.

use crate::commands::Command;
use crate::protocol::reply::{Refusal, Reply};
use crate::protocol::request::Args;
use crate::state::context::Context;
use crate::state::keyspace::Keyspace;

/// Runs a command on its own.
pub(super) fn run_alone(context: &mut Context<'_>, command: &Command, args: Args<'_>) -> Result<Reply, Refusal> {
    // A separate handle, so that the command can also change the rest of the shared state.
    let db = context.shared.db.clone();
    let mut keyspace = Keyspace::of_command(&db);
    let reply = run_in(context, &mut keyspace, command, args)?;
    context.commit(keyspace)?;
    Ok(reply)
}

/// Runs a command in a keyspace that the caller commits.
pub(super) fn run_in(
    context: &mut Context<'_>,
    keyspace: &mut Keyspace<'_>,
    command: &Command,
    args: Args<'_>,
) -> Result<Reply, Refusal> {
    let reply = (command.run)(context, keyspace, args)?;
    context.check_size(&reply).map(|()| reply)
}
