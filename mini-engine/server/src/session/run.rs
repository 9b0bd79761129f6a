//! Carries out a command.

use crate::commands::Command;
use crate::protocol::reply::{Refusal, Reply};
use crate::protocol::request::Args;
use crate::state::context::Context;
use crate::state::keyspace::Keyspace;

/// Runs a command on its own.
pub(crate) fn run_alone(context: &mut Context<'_>, command: &Command, args: Args<'_>) -> Result<Reply, Refusal> {
    let mut keyspace = Keyspace::of_command(context.client.database.clone());
    let reply = run_in(context, &mut keyspace, command, args)?;
    if !context.is_held() {
        context.commit(keyspace)?;
    }
    Ok(reply)
}

/// Runs a command in a keyspace that the caller commits.
pub(crate) fn run_in(
    context: &mut Context<'_>,
    keyspace: &mut Keyspace,
    command: &Command,
    args: Args<'_>,
) -> Result<Reply, Refusal> {
    let reply = (command.run)(context, keyspace, args)?;
    context.check_size(&reply).map(|()| reply)
}
