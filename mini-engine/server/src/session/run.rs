//! Runs a command.

use crate::commands::Command;
use crate::protocol::reply::Outcome;
use crate::protocol::request::Args;
use crate::state::context::{Context, KeyContext, Run};
use crate::state::keyspace::Keyspace;

/// Runs a command on its own.
pub(crate) fn run_alone(context: &mut Context<'_>, command: &Command, args: Args<'_>) -> Outcome {
    let mut keyspace = Keyspace::of_command(context.client.database.clone());
    let reply = run_in(context, &mut keyspace, command, args)?;
    if !context.is_held() {
        context.commit(keyspace)?;
    }
    Ok(reply)
}

/// Runs a command in a keyspace that the caller commits.
pub(crate) fn run_in(context: &mut Context<'_>, keyspace: &mut Keyspace, command: &Command, args: Args<'_>) -> Outcome {
    let reply = command.run.call(context, keyspace, args)?;
    context.of_keys().check_size(&reply).map(|()| reply)
}

/// Runs a command over keys in a keyspace that the caller commits.
pub(crate) fn run_keys(
    context: &mut KeyContext<'_>,
    keyspace: &mut Keyspace,
    command: &Command,
    args: Args<'_>,
) -> Outcome {
    let Run::Keys(run) = command.run else { return Err(command.misplaced()) };
    let reply = run(context, keyspace, args)?;
    context.check_size(&reply).map(|()| reply)
}
