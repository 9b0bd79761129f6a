//! Commands that concern the connection itself.

use super::client::client_name;
use super::transaction::forget_watched;
use super::words::{database_number, is, shown};
use crate::protocol::reply::{Outcome, Refusal, Reply, Version};
use crate::protocol::request::{Args, parse_number};
use crate::state::context::{After, Context};
use crate::state::figures::REDIS_VERSION;
use crate::state::keyspace::Keyspace;
use crate::state::refused::Cause;

pub(super) fn ping(_: &mut Context<'_>, _: &mut Keyspace, args: Args<'_>) -> Outcome {
    match args.len() {
        1 => Ok(Reply::Simple("PONG")),
        2 => Ok(Reply::Bulk(args.at(1).into())),
        _ => Err(Refusal::new("ERR wrong number of arguments for 'ping' command")),
    }
}

pub(super) fn echo(_: &mut Context<'_>, _: &mut Keyspace, args: Args<'_>) -> Outcome {
    Ok(Reply::Bulk(args.at(1).into()))
}

/// HELLO [version [AUTH user password] [SETNAME name]]
pub(super) fn hello(context: &mut Context<'_>, _: &mut Keyspace, args: Args<'_>) -> Outcome {
    let mut words = args.from(1);
    let version = match words.next().map(parse_number) {
        None => context.client.version,
        Some(Some(2)) => Version::Resp2,
        Some(Some(3)) => Version::Resp3,
        Some(Some(_)) => return Err(Refusal::new("NOPROTO unsupported protocol version")),
        Some(None) => return Err(Refusal::new("ERR Protocol version is not an integer or out of range")),
    };
    let mut name = None;
    while let Some(word) = words.next() {
        let invalid = || Refusal::new(format!("ERR Syntax error in HELLO option '{}'", shown(word)));
        match (words.next(), is(word, "AUTH"), is(word, "SETNAME")) {
            (Some(user), true, _) => {
                let password = words.next().ok_or_else(invalid)?;
                authenticate(context, user, password)?;
            }
            (Some(chosen), _, true) => name = Some(client_name(chosen)?),
            _ => return Err(invalid()),
        }
    }
    if !context.client.is_authenticated {
        return Err(Refusal::new(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
        ));
    }
    context.client.version = version;
    if let (Some(name), Some(record)) = (name, context.record()) {
        record.name = name;
    }
    let number = if version == Version::Resp3 { 3 } else { 2 };
    let is_replica = context.shared.standing().is_some_and(|standing| standing.followers.is_none());
    let role = if is_replica { "replica" } else { "master" };
    Ok(Reply::Map(vec![
        (Reply::text("server"), Reply::text("mini-engine")),
        (Reply::text("version"), Reply::text(REDIS_VERSION)),
        (Reply::text("proto"), Reply::Integer(number)),
        (Reply::text("id"), Reply::Integer(context.client.id as i64)),
        (Reply::text("mode"), Reply::text(context.shared.mode())),
        (Reply::text("role"), Reply::text(role)),
        (Reply::text("modules"), Reply::Array(Vec::new())),
    ]))
}

pub(super) fn auth(context: &mut Context<'_>, _: &mut Keyspace, args: Args<'_>) -> Outcome {
    match args.len() {
        2 if context.shared.settings.password.is_none() => {
            return Err(Refusal::new(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
            ));
        }
        2 => authenticate(context, b"default", args.at(1))?,
        3 => authenticate(context, args.at(1), args.at(2))?,
        _ => return Err(Refusal::syntax()),
    }
    Ok(Reply::OK)
}

fn authenticate(context: &mut Context<'_>, user: &[u8], password: &[u8]) -> Result<(), Refusal> {
    // As in Redis, any password is accepted if none is configured.
    let is_right = context.shared.settings.password.as_ref().is_none_or(|expected| is_same(expected, password));
    if user != b"default" || !is_right {
        let record = context.shared.clients.get(context.client.id);
        let address = record.map_or("", |record| &record.addresses[0]);
        context.shared.counters.refused.note(Cause::Password, address, "wrong password");
        return Err(Refusal::new("WRONGPASS invalid username-password pair or user is disabled."));
    }
    context.client.is_authenticated = true;
    Ok(())
}

/// The comparison takes the same time wherever the first difference is, so that a password cannot be guessed byte by byte.
fn is_same(expected: &[u8], found: &[u8]) -> bool {
    let pairs = expected.iter().zip(found);
    let differences = pairs.fold(0, |differences, (a, b)| std::hint::black_box(differences | (a ^ b)));
    expected.len() == found.len() && differences == 0
}

/// SELECT number
pub(super) fn select(context: &mut Context<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let Some(database) = context.of_keys().open(database_number(args.at(1))?)? else { return Ok(Reply::Nothing) };
    keys.select(database.clone());
    context.use_database(database);
    Ok(Reply::OK)
}

pub(super) fn quit(context: &mut Context<'_>, _: &mut Keyspace, _: Args<'_>) -> Outcome {
    context.after = After::Close;
    Ok(Reply::OK)
}

pub(super) fn reset(context: &mut Context<'_>, _: &mut Keyspace, _: Args<'_>) -> Outcome {
    context.client.transaction = None;
    forget_watched(context);
    context.client.version = Version::Resp2;
    context.use_database(context.shared.first.clone());
    context.shared.clients.monitors.remove(context.client.id);
    if let Some(record) = context.record() {
        record.name.clear();
    }
    context.client.is_authenticated = context.shared.settings.password.is_none();
    Ok(Reply::Simple("RESET"))
}

/// MONITOR: from now on the client receives the requests of all clients.
pub(super) fn monitor(context: &mut Context<'_>, _: &mut Keyspace, _: Args<'_>) -> Outcome {
    context.shared.clients.monitors.add(context.client.id);
    Ok(Reply::OK)
}
