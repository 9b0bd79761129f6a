//! Commands on keys, whatever their values are.

use std::collections::BTreeSet;

use super::words::{database_number, is};
use crate::protocol::reply::{Outcome, Refusal, Reply};
use crate::protocol::request::Args;
use crate::state::context::KeyContext;
use crate::state::keyspace::Keyspace;

pub(super) fn del(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let mut removed = 0;
    // A key that is named twice counts once.
    for key in args.from(1).collect::<BTreeSet<_>>() {
        if keys.contains(key)? {
            keys.remove(key)?;
            removed += 1;
        }
    }
    Ok(Reply::Integer(removed))
}

pub(super) fn exists(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let mut found = 0;
    for key in args.from(1) {
        found += i64::from(keys.contains(key)?);
    }
    Ok(Reply::Integer(found))
}

pub(super) fn kind(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    Ok(Reply::Simple(if keys.contains(args.at(1))? { "string" } else { "none" }))
}

/// OBJECT ENCODING key, or REFCOUNT key. Other subcommands are missing, because the server does not record when a key is used.
pub(super) fn object(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let word = args.at(1);
    let answer = match word {
        _ if is(word, "ENCODING") => Reply::text("raw"),
        _ if is(word, "REFCOUNT") => Reply::Integer(1),
        _ => {
            return Err(Refusal::new(
                "ERR OBJECT FREQ and IDLETIME are not there: nothing records when a key was used",
            ));
        }
    };
    Ok(if keys.contains(args.at(2))? { answer } else { Reply::Null })
}

pub(super) fn rename(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    move_to(keys, args.at(1), args.at(2))?;
    Ok(Reply::OK)
}

pub(super) fn renamenx(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    if keys.contains(args.at(2))? {
        // The first key must exist in any case.
        return match keys.contains(args.at(1))? {
            true => Ok(Reply::Integer(0)),
            false => Err(no_key()),
        };
    }
    move_to(keys, args.at(1), args.at(2))?;
    Ok(Reply::Integer(1))
}

fn move_to(keys: &mut Keyspace, from: &[u8], to: &[u8]) -> Result<(), Refusal> {
    let (value, expiry) = keys.get_with_expiry(from)?.ok_or_else(no_key)?;
    if from != to {
        keys.insert_until(to, &value, expiry)?;
        keys.remove(from)?;
    }
    Ok(())
}

fn no_key() -> Refusal {
    Refusal::new("ERR no such key")
}

/// COPY from to [DB number] [REPLACE]
pub(super) fn copy(context: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let (from, to, mut replaces, mut number) = (args.at(1), args.at(2), false, keys.number());
    let mut words = args.from(3);
    while let Some(word) = words.next() {
        match word {
            _ if is(word, "REPLACE") => replaces = true,
            _ if is(word, "DB") => {
                number = database_number(words.next().ok_or_else(Refusal::syntax)?)?;
                context.check_database(number)?;
            }
            _ => return Err(Refusal::syntax()),
        }
    }
    if from == to && number == keys.number() {
        return Err(is_same());
    }
    let mut target = None;
    if number != keys.number() {
        target = context.open(number)?;
        if target.is_none() {
            return Ok(Reply::Nothing);
        }
    }
    let Some((value, expiry)) = keys.get_with_expiry(from)? else { return Ok(Reply::Integer(0)) };
    let is_copied = keys.in_database(target, |keys| {
        let may = replaces || !keys.contains(to)?;
        if may {
            keys.insert_until(to, &value, expiry)?;
        }
        Ok::<_, Refusal>(may)
    })?;
    Ok(Reply::Integer(i64::from(is_copied)))
}

/// MOVE key number
pub(super) fn move_key(context: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let (key, number) = (args.at(1), database_number(args.at(2))?);
    if number == keys.number() {
        return Err(is_same());
    }
    let Some(target) = context.open(number)? else { return Ok(Reply::Nothing) };
    let Some((value, expiry)) = keys.get_with_expiry(key)? else { return Ok(Reply::Integer(0)) };
    if keys.in_database(Some(target.clone()), |keys| keys.contains(key))? {
        return Ok(Reply::Integer(0));
    }
    keys.remove(key)?;
    keys.in_database(Some(target), |keys| keys.insert_until(key, &value, expiry))?;
    Ok(Reply::Integer(1))
}

fn is_same() -> Refusal {
    Refusal::new("ERR source and destination objects are the same")
}
