//! MULTI, EXEC and DISCARD: commands are queued, then carried out together.
//!
//! All their writes are one batch, so after a crash all of it is there or none. No other client's command comes in between, since one thread
//! executes them. As in Redis, a command that is refused when it is queued prevents the whole transaction, and one that is refused when it runs
//! does not: the writes of the others stay. Unlike in Redis, a failure to write is a failure of all.

use super::command::Command;
use crate::protocol::reply::{Refusal, Reply};
use crate::protocol::request::{Args, OwnedArgs};
use crate::state::context::{Context, Transaction};
use crate::state::keyspace::Keyspace;

/// The maximum number of commands in one transaction.
const MOST_COMMANDS: usize = 100_000;

pub(crate) fn queue(context: &mut Context<'_>, command: &'static Command, args: Args<'_>) -> Result<Reply, Refusal> {
    let most = context.shared.settings.limits.request_bytes;
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
    transaction.bytes += args.size();
    if transaction.bytes > most || transaction.commands.len() == MOST_COMMANDS {
        return Err(Refusal::new(format!("ERR a transaction has at most {most} bytes and {MOST_COMMANDS} commands")));
    }
    transaction.commands.push((command.run, args));
    Ok(Reply::Simple("QUEUED"))
}

pub(crate) fn multi(context: &mut Context<'_>, _: &mut Keyspace<'_>, _: Args<'_>) -> Result<Reply, Refusal> {
    if context.client.transaction.is_some() {
        return Err(Refusal::new("ERR MULTI calls can not be nested"));
    }
    context.client.transaction = Some(Transaction::default());
    Ok(Reply::OK)
}

pub(crate) fn discard(context: &mut Context<'_>, _: &mut Keyspace<'_>, _: Args<'_>) -> Result<Reply, Refusal> {
    match context.client.transaction.take() {
        Some(_) => Ok(Reply::OK),
        None => Err(Refusal::new("ERR DISCARD without MULTI")),
    }
}

pub(crate) fn exec(context: &mut Context<'_>, _: &mut Keyspace<'_>, _: Args<'_>) -> Result<Reply, Refusal> {
    let Some(transaction) = context.client.transaction.take() else {
        return Err(Refusal::new("ERR EXEC without MULTI"));
    };
    if transaction.is_spoilt {
        return Err(Refusal::new("EXECABORT Transaction discarded because of previous errors."));
    }
    let db = context.shared.db.clone();
    let mut keyspace = Keyspace::of_several(&db);
    let mut replies = Vec::with_capacity(transaction.commands.len());
    let (most, mut size) = (context.shared.settings.limits.request_bytes, 0);
    for (run, args) in &transaction.commands {
        let outcome = run(context, &mut keyspace, args.args());
        let reply = context.shared.reply(outcome);
        size += reply.size();
        if size > most {
            return Err(Refusal::new(format!("EXECABORT the replies are longer than {most} bytes: nothing was done")));
        }
        // APPEND rewrites the whole value each time.
        if keyspace.bytes() > most {
            return Err(Refusal::new(format!("EXECABORT the writes are longer than {most} bytes: nothing was done")));
        }
        replies.push(reply);
    }
    let reply = Reply::Array(replies);
    context.check_size(&reply)?;
    context.commit(keyspace)?;
    if context.is_held() {
        context.client.transaction = Some(transaction);
    }
    Ok(reply)
}
