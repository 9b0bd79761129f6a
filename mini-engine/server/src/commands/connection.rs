//! Commands of the connection itself.

use std::collections::BTreeSet;

use super::words::is;
use crate::protocol::reply::{Refusal, Reply, Version};
use crate::protocol::request::{Args, parse_number};
use crate::state::context::{After, Context};
use crate::state::keyspace::Keyspace;

type Answer = Result<Reply, Refusal>;

/// The version of Redis whose commands these are: clients decide from it which commands they may send.
pub(super) const REDIS_VERSION: &str = "7.0.0";

pub(super) fn ping(_: &mut Context<'_>, _: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    match args.len() {
        1 => Ok(Reply::Simple("PONG")),
        2 => Ok(Reply::Bulk(args.at(1).into())),
        _ => Err(Refusal::new("ERR wrong number of arguments for 'ping' command")),
    }
}

pub(super) fn echo(_: &mut Context<'_>, _: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    Ok(Reply::Bulk(args.at(1).into()))
}

/// HELLO [version [AUTH user password] [SETNAME name]]
pub(super) fn hello(context: &mut Context<'_>, _: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
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
        match (words.next(), is(word, "AUTH"), is(word, "SETNAME")) {
            (Some(user), true, _) => {
                let password = words.next().ok_or_else(Refusal::syntax)?;
                authenticate(context, user, password)?;
            }
            (Some(chosen), _, true) => name = Some(client_name(chosen)?),
            _ => return Err(Refusal::syntax()),
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
    Ok(Reply::Map(vec![
        (Reply::text("server"), Reply::text("mini-engine")),
        (Reply::text("version"), Reply::text(REDIS_VERSION)),
        (Reply::text("proto"), Reply::Integer(number)),
        (Reply::text("id"), Reply::Integer(context.client.id as i64)),
        (Reply::text("mode"), Reply::text("standalone")),
        (Reply::text("role"), Reply::text("master")),
        (Reply::text("modules"), Reply::Array(Vec::new())),
    ]))
}

pub(super) fn auth(context: &mut Context<'_>, _: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    match args.len() {
        2 => authenticate(context, b"default", args.at(1))?,
        3 => authenticate(context, args.at(1), args.at(2))?,
        _ => return Err(Refusal::syntax()),
    }
    Ok(Reply::OK)
}

fn authenticate(context: &mut Context<'_>, user: &[u8], password: &[u8]) -> Result<(), Refusal> {
    let Some(expected) = &context.shared.settings.password else {
        return Err(Refusal::new(
            "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
        ));
    };
    if user != b"default" || !is_same(expected, password) {
        return Err(Refusal::new("WRONGPASS invalid username-password pair or user is disabled."));
    }
    context.client.is_authenticated = true;
    Ok(())
}

/// Takes the same time wherever the two first differ, so that a password cannot be guessed byte by byte.
fn is_same(expected: &[u8], found: &[u8]) -> bool {
    let pairs = expected.iter().zip(found);
    let differences = pairs.fold(0, |differences, (a, b)| std::hint::black_box(differences | (a ^ b)));
    expected.len() == found.len() && differences == 0
}

pub(super) fn select(_: &mut Context<'_>, _: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    match parse_number(args.at(1)) {
        Some(0) => Ok(Reply::OK),
        Some(_) => Err(Refusal::new("ERR DB index is out of range: there is one database, 0")),
        None => Err(Refusal::new("ERR value is not an integer or out of range")),
    }
}

pub(super) fn quit(context: &mut Context<'_>, _: &mut Keyspace<'_>, _: Args<'_>) -> Answer {
    context.after = After::Close;
    Ok(Reply::OK)
}

pub(super) fn reset(context: &mut Context<'_>, _: &mut Keyspace<'_>, _: Args<'_>) -> Answer {
    context.client.transaction = None;
    context.client.version = Version::Resp2;
    if let Some(record) = context.record() {
        record.name.clear();
    }
    context.client.is_authenticated = context.shared.settings.password.is_none();
    Ok(Reply::Simple("RESET"))
}

/// The longest name of a connection.
const LONGEST_NAME: usize = 256;

/// Checks a name: it appears in lists that are separated by spaces.
fn client_name(name: &[u8]) -> Result<Vec<u8>, Refusal> {
    in_lists(name)
        .ok_or_else(|| Refusal::new("ERR Client names cannot contain spaces, newlines or special characters."))
}

fn in_lists(text: &[u8]) -> Option<Vec<u8>> {
    (text.len() <= LONGEST_NAME && text.iter().all(u8::is_ascii_graphic)).then(|| text.to_vec())
}

pub(super) fn client(context: &mut Context<'_>, _: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    let word = args.at(1);
    match args.len() {
        2 if is(word, "ID") => Ok(Reply::Integer(context.client.id as i64)),
        2 if is(word, "GETNAME") => {
            let name = context.record().map_or(&[][..], |record| &record.name);
            Ok(if name.is_empty() { Reply::Null } else { Reply::Bulk(name.into()) })
        }
        2 if is(word, "INFO") => Ok(Reply::Text(context.shared.clients.lines(|id| id == context.client.id))),
        _ if is(word, "LIST") => client_list(context, args),
        3 if is(word, "SETNAME") => {
            let name = client_name(args.at(2))?;
            if let Some(record) = context.record() {
                record.name = name;
            }
            Ok(Reply::OK)
        }
        4 if is(word, "SETINFO") => set_info(context, args),
        // Keys have no time of last use.
        3 if is(word, "NO-TOUCH") && (is(args.at(2), "ON") || is(args.at(2), "OFF")) => Ok(Reply::OK),
        3 if is(word, "NO-EVICT") && is(args.at(2), "OFF") => Ok(Reply::OK),
        3 if is(word, "NO-EVICT") && is(args.at(2), "ON") => {
            Err(Refusal::new("ERR NO-EVICT is not there: one bound holds for the buffers of all clients"))
        }
        3 if is(word, "NO-EVICT") || is(word, "NO-TOUCH") => Err(Refusal::syntax()),
        _ => Err(unknown_subcommand(word, "CLIENT")),
    }
}

/// CLIENT LIST [TYPE type] [ID id ...]
fn client_list(context: &Context<'_>, args: Args<'_>) -> Answer {
    let clients = &context.shared.clients;
    let mut words = args.from(2);
    let lines = match (words.next(), words.len()) {
        (None, _) => clients.lines(|_| true),
        (Some(word), 1) if is(word, "TYPE") => {
            // All clients are of this type.
            let is_normal = is(args.at(3), "NORMAL");
            if !is_normal && !["MASTER", "REPLICA", "SLAVE", "PUBSUB"].iter().any(|name| is(args.at(3), name)) {
                return Err(Refusal::new(format!("ERR Unknown client type '{}'", shown(args.at(3)))));
            }
            clients.lines(|_| is_normal)
        }
        (Some(word), 1..) if is(word, "ID") => {
            let id = |word| parse_number(word).and_then(|id| u64::try_from(id).ok());
            let wanted: Option<BTreeSet<u64>> = words.map(id).collect();
            let wanted = wanted.ok_or_else(|| Refusal::new("ERR Invalid client ID"))?;
            clients.lines(|id| wanted.contains(&id))
        }
        _ => return Err(Refusal::syntax()),
    };
    Ok(Reply::Text(lines))
}

/// CLIENT SETINFO LIB-NAME name, or LIB-VER version: the facts that libraries report about themselves when they connect.
fn set_info(context: &mut Context<'_>, args: Args<'_>) -> Answer {
    let (what, text) = (args.at(2), in_lists(args.at(3)));
    let text = text.ok_or_else(|| {
        Refusal::new(format!("ERR {} cannot contain spaces, newlines or special characters.", shown(what)))
    })?;
    let Some(record) = context.record() else { return Ok(Reply::OK) };
    if is(what, "LIB-NAME") {
        record.library = text;
    } else if is(what, "LIB-VER") {
        record.library_version = text;
    } else {
        return Err(Refusal::new(format!("ERR Unrecognized option '{}'", shown(what))));
    }
    Ok(Reply::OK)
}

/// The part of a word that errors repeat.
fn shown(word: &[u8]) -> impl std::fmt::Display {
    word[..word.len().min(128)].escape_ascii()
}

pub(super) fn unknown_subcommand(word: &[u8], command: &str) -> Refusal {
    Refusal::new(format!("ERR unknown subcommand or wrong number of arguments for '{}' of {command}", shown(word)))
}
