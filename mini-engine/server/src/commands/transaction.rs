//! MULTI, EXEC and DISCARD: commands are queued, and then carried out together. WATCH makes EXEC depend on keys being unchanged.
//!
//! All writes of a transaction are one batch, so after a crash either all of them are there or none. No command of another client is carried out in
//! between, since one thread executes all commands. As in Redis, a command that is refused when it is queued prevents the whole transaction. A
//! command that is refused when it runs does not: it has written nothing, and the writes of the other commands stay. Unlike in Redis, if the batch
//! cannot be written, all commands fail.

use super::command::Command;
use crate::protocol::reply::{Outcome, Refusal, Reply};
use crate::protocol::request::{Args, OwnedArgs};
use crate::state::context::{Context, Queued, Transaction};
use crate::state::keyspace::Keyspace;
use crate::state::watched::Watched;

pub(crate) fn queue(context: &mut Context<'_>, command: &'static Command, args: Args<'_>) -> Outcome {
    let most = context.shared.keys.request_bytes;
    let Some(transaction) = &mut context.client.transaction else {
        return Err(Refusal::new("ERR no transaction is open"));
    };
    if !command.runs_in_transactions() {
        return Err(Refusal::new("ERR Command not allowed inside a transaction"));
    }
    if transaction.is_spoilt {
        return Ok(Reply::Simple("QUEUED"));
    }
    let args = OwnedArgs::new(&args);
    transaction.bytes += args.size() + size_of::<Queued>();
    if transaction.bytes > most {
        return Err(Refusal::new(format!("ERR a transaction has at most {most} bytes")));
    }
    transaction.commands.push(Queued { run: command.run, args, place: command.place(), name: command.name() });
    Ok(Reply::Simple("QUEUED"))
}

pub(crate) fn multi(context: &mut Context<'_>, _: &mut Keyspace, _: Args<'_>) -> Outcome {
    if context.client.transaction.is_some() {
        return Err(Refusal::new("ERR MULTI calls can not be nested"));
    }
    context.client.transaction = Some(Transaction::default());
    Ok(Reply::OK)
}

pub(crate) fn discard(context: &mut Context<'_>, _: &mut Keyspace, _: Args<'_>) -> Outcome {
    context.client.take_transaction("DISCARD")?;
    forget_watched(context);
    Ok(Reply::OK)
}

/// Gives up the transaction whose EXEC was refused.
pub(crate) fn abort(context: &mut Context<'_>, refusal: Refusal) -> Refusal {
    context.client.transaction = None;
    forget_watched(context);
    refusal.of_exec()
}

/// The maximum memory for the keys that one client watches, in bytes. It is limited because any client's removal of a range visits all watched keys.
const MOST_WATCHED: usize = 4 << 20;

/// WATCH key ...
pub(crate) fn watch(context: &mut Context<'_>, _: &mut Keyspace, args: Args<'_>) -> Outcome {
    if context.client.transaction.is_some() {
        return Err(Refusal::new("ERR WATCH inside MULTI is not allowed"));
    }
    let mut watched = take_watched(context).unwrap_or_default();
    let (db, most) = (&context.shared.keys.db, context.shared.keys.request_bytes.min(MOST_WATCHED));
    let added = watched.add((db, &context.client.database), args.from(1), most);
    keep_watched(context, Some(watched));
    added?;
    Ok(Reply::OK)
}

fn take_watched(context: &mut Context<'_>) -> Option<Watched> {
    context.record()?.watched.take()
}

fn keep_watched(context: &mut Context<'_>, watched: Option<Watched>) {
    if let Some(record) = context.record() {
        record.watched = watched;
    }
}

pub(super) fn forget_watched(context: &mut Context<'_>) {
    keep_watched(context, None);
}

pub(crate) fn unwatch(context: &mut Context<'_>, _: &mut Keyspace, _: Args<'_>) -> Outcome {
    forget_watched(context);
    Ok(Reply::OK)
}

pub(crate) fn exec(context: &mut Context<'_>, _: &mut Keyspace, _: Args<'_>) -> Outcome {
    let transaction = context.client.take_transaction("EXEC")?;
    let watched = take_watched(context);
    transaction.check()?;
    if let Some(watched) = &watched
        && !watched.is_unchanged()?
    {
        return Ok(Reply::NullArray);
    }
    let (database, version) = (context.client.database.clone(), context.client.version);
    let replies = carry_out(context, &transaction);
    if replies.is_err() || context.is_held() {
        // Selects the earlier database again: SELECT and HELLO have not taken place.
        context.use_database(database);
        context.client.version = version;
    }
    if context.is_held() {
        context.client.transaction = Some(transaction);
        keep_watched(context, watched);
    }
    replies
}

/// Carries out the commands, unless one of them or the batch has to wait.
fn carry_out(context: &mut Context<'_>, transaction: &Transaction) -> Outcome {
    let mut keyspace = Keyspace::of_several(context.client.database.clone());
    let most = context.shared.keys.request_bytes;
    let replies = run_all(most, &mut keyspace, transaction.commands.iter(), |keyspace, queued| {
        let outcome = keyspace.attempt(|keyspace| queued.run.call(context, keyspace, queued.args.args()));
        Ok((!context.is_held()).then(|| context.shared.counters.reply(outcome)))
    })?;
    if context.is_held() {
        return Ok(Reply::Nothing);
    }
    context.commit(keyspace)?;
    if !context.is_held() {
        for (queued, reply) in transaction.commands.iter().zip(&replies) {
            // The time of the commands is counted for EXEC.
            context.shared.counters.stats.of(queued.place, queued.name).add(0, matches!(reply, Reply::Error(_)));
        }
    }
    Ok(Reply::Array(replies))
}

/// Runs commands in a keyspace that the caller commits; stops if a command has to wait. `run` carries out one command in the keyspace and makes a
/// reply of its result. It returns no reply if the command has to wait, and an error if the whole transaction is refused.
pub(crate) fn run_all<C>(
    most: usize,
    keyspace: &mut Keyspace,
    commands: impl ExactSizeIterator<Item = C>,
    mut run: impl FnMut(&mut Keyspace, C) -> Result<Option<Reply>, Refusal>,
) -> Result<Vec<Reply>, Refusal> {
    let mut size = 0;
    let mut replies = Vec::with_capacity(commands.len());
    for command in commands {
        let Some(reply) = run(keyspace, command)? else { break };
        size += reply.size();
        if size > most {
            return Err(Refusal::new(format!("EXECABORT the replies are longer than {most} bytes: nothing was done")));
        }
        // Checked after each command: APPEND, for example, rewrites the whole value each time.
        if keyspace.bytes() > most {
            return Err(Refusal::new(format!("EXECABORT the writes are longer than {most} bytes: nothing was done")));
        }
        replies.push(reply);
    }
    Ok(replies)
}
