//! CLIENT: lists the connected clients, sets their names, and disconnects clients.

use std::collections::BTreeSet;

use super::words::{integer, is, shown};
use crate::protocol::reply::{Outcome, Refusal, Reply};
use crate::protocol::request::{Args, parse_number};
use crate::state::clients::Record;
use crate::state::context::{After, Context};
use crate::state::keyspace::Keyspace;

/// The maximum length of a connection's name, in bytes.
const LONGEST_NAME: usize = 256;

/// Checks a name: it must not break lists that are separated by spaces.
pub(super) fn client_name(name: &[u8]) -> Result<Vec<u8>, Refusal> {
    in_lists(name)
        .ok_or_else(|| Refusal::new("ERR Client names cannot contain spaces, newlines or special characters."))
}

fn in_lists(text: &[u8]) -> Option<Vec<u8>> {
    (text.len() <= LONGEST_NAME && text.iter().all(u8::is_ascii_graphic)).then(|| text.to_vec())
}

pub(super) fn client(context: &mut Context<'_>, _: &mut Keyspace, args: Args<'_>) -> Outcome {
    let (word, own) = (args.at(1), context.client.id);
    match args.len() {
        2 if is(word, "ID") => Ok(Reply::Integer(own as i64)),
        2 if is(word, "GETNAME") => {
            let name = context.record().map_or(&[][..], |record| &record.name);
            Ok(if name.is_empty() { Reply::Null } else { Reply::Bulk(name.into()) })
        }
        2 if is(word, "INFO") => Ok(lines(context, |id, _| id == own)),
        _ if is(word, "LIST") => list(context, args),
        3 if is(word, "KILL") => kill_at(context, args.at(2)),
        _ if is(word, "KILL") => kill(context, args),
        3 if is(word, "SETNAME") => {
            let name = client_name(args.at(2))?;
            if let Some(record) = context.record() {
                record.name = name;
            }
            Ok(Reply::OK)
        }
        4 if is(word, "SETINFO") => set_info(context, args),
        // Accepted without effect: this server stores no time of a key's last use.
        3 if is(word, "NO-TOUCH") && (is(args.at(2), "ON") || is(args.at(2), "OFF")) => Ok(Reply::OK),
        3 if is(word, "NO-EVICT") && is(args.at(2), "OFF") => Ok(Reply::OK),
        3 if is(word, "NO-EVICT") && is(args.at(2), "ON") => {
            Err(Refusal::new("ERR NO-EVICT is not there: one bound holds for the buffers of all clients"))
        }
        // This error shows libraries with client-side caches that they must work without tracking.
        _ if is(word, "TRACKING") && is(args.at(2), "ON") => Err(Refusal::new(
            "ERR CLIENT TRACKING is not there: the server does not say which keys change, so clients must not cache them",
        )),
        _ if is(word, "TRACKING") && is(args.at(2), "OFF") => Ok(Reply::OK),
        2 if is(word, "TRACKINGINFO") => Ok(Reply::Map(vec![
            (Reply::text("flags"), Reply::Array(vec![Reply::text("off")])),
            (Reply::text("redirect"), Reply::Integer(-1)),
            (Reply::text("prefixes"), Reply::Array(Vec::new())),
        ])),
        2 if is(word, "GETREDIR") => Ok(Reply::Integer(-1)),
        3 if is(word, "CACHING") => Err(Refusal::new(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        )),
        _ => Err(Refusal::syntax()),
    }
}

fn lines(context: &Context<'_>, is_wanted: impl Fn(u64, &Record) -> bool) -> Reply {
    let mut text = String::new();
    context.shared.clients.filter(is_wanted).for_each(|(id, _)| context.shared.clients.print(id, &mut text));
    Reply::Text(text)
}

/// CLIENT LIST [TYPE type] [ID id ...]
fn list(context: &Context<'_>, args: Args<'_>) -> Outcome {
    let mut words = args.from(2);
    match (words.next(), words.len()) {
        (None, _) => Ok(lines(context, |_, _| true)),
        (Some(word), 1) if is(word, "TYPE") => {
            let is_normal = is_normal(args.at(3))?;
            Ok(lines(context, |_, _| is_normal))
        }
        (Some(word), 1..) if is(word, "ID") => {
            let wanted: BTreeSet<u64> = words.map(client_id).collect::<Result<_, _>>()?;
            Ok(lines(context, |id, _| wanted.contains(&id)))
        }
        _ => Err(Refusal::syntax()),
    }
}

/// Whether a type of clients is `normal`, the type of all clients here.
fn is_normal(kind: &[u8]) -> Result<bool, Refusal> {
    let is_normal = is(kind, "NORMAL");
    match is_normal || ["MASTER", "REPLICA", "SLAVE", "PUBSUB"].iter().any(|name| is(kind, name)) {
        true => Ok(is_normal),
        false => Err(Refusal::new(format!("ERR Unknown client type '{}'", shown(kind)))),
    }
}

fn client_id(word: &[u8]) -> Result<u64, Refusal> {
    let id = parse_number(word).and_then(|id| u64::try_from(id).ok());
    id.ok_or_else(|| Refusal::new("ERR Invalid client ID"))
}

/// CLIENT KILL address: the old form, which disconnects the sender too.
fn kill_at(context: &mut Context<'_>, address: &[u8]) -> Outcome {
    match disconnect(context, |_, record| record.addresses[0].as_bytes() == address) {
        0 => Err(Refusal::new("ERR No such client")),
        _ => Ok(Reply::OK),
    }
}

/// Whether a client, given its number and its record, is to be disconnected.
type Condition<'a> = Box<dyn Fn(u64, &Record) -> bool + 'a>;

/// CLIENT KILL [ID id] [TYPE type] [USER user] [ADDR address] [LADDR address] [MAXAGE seconds] [SKIPME yes|no]
fn kill(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let (own, mut skips_own) = (context.client.id, true);
    let mut conditions: Vec<Condition<'_>> = Vec::new();
    let mut words = args.from(2);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(Refusal::syntax)?;
        conditions.push(match word {
            _ if is(word, "ID") => {
                let wanted = client_id(value)?;
                Box::new(move |id, _| id == wanted)
            }
            _ if is(word, "TYPE") => {
                let is_normal = is_normal(value)?;
                Box::new(move |_, _| is_normal)
            }
            _ if is(word, "USER") => Box::new(move |_, _| value == b"default"),
            _ if is(word, "ADDR") => Box::new(move |_, record| record.addresses[0].as_bytes() == value),
            _ if is(word, "LADDR") => Box::new(move |_, record| record.addresses[1].as_bytes() == value),
            _ if is(word, "MAXAGE") => {
                let age = u64::try_from(integer(value)?).map_err(|_| Refusal::syntax())?;
                Box::new(move |_, record| record.age() >= age)
            }
            _ if is(word, "SKIPME") && (is(value, "YES") || is(value, "NO")) => {
                skips_own = is(value, "YES");
                continue;
            }
            _ => return Err(Refusal::syntax()),
        });
    }
    let is_wanted = |id, record: &Record| conditions.iter().all(|is_met| is_met(id, record));
    Ok(Reply::count(disconnect(context, |id, record| !(skips_own && id == own) && is_wanted(id, record))))
}

/// Marks clients for disconnection; the sender is disconnected after its reply. Returns the number of these clients.
fn disconnect(context: &mut Context<'_>, is_wanted: impl Fn(u64, &Record) -> bool) -> usize {
    let wanted: Vec<u64> = context.shared.clients.filter(is_wanted).map(|(id, _)| id).collect();
    for &id in &wanted {
        if id == context.client.id {
            context.after = After::Close;
        } else {
            context.shared.clients.killed.push(id);
        }
    }
    wanted.len()
}

/// CLIENT SETINFO LIB-NAME name, or LIB-VER version: the facts that libraries report about themselves when they connect.
fn set_info(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
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
