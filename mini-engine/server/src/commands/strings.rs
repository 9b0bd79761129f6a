//! Commands of single keys and their values.

use std::collections::BTreeSet;

use mini_engine::Slice;

use super::words::{integer, is};
use crate::protocol::reply::{Refusal, Reply};
use crate::protocol::request::Args;
use crate::state::context::Context;
use crate::state::keyspace::Keyspace;

type Answer = Result<Reply, Refusal>;

pub(super) fn get(_: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    Ok(Reply::value(keys.get(args.at(1))?))
}

pub(super) fn set(_: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    let (mut if_absent, mut if_present, mut returns_old) = (false, false, false);
    for option in args.from(3) {
        match option {
            _ if is(option, "NX") => if_absent = true,
            _ if is(option, "XX") => if_present = true,
            _ if is(option, "GET") => returns_old = true,
            // Values do not expire, so there is no time to keep.
            _ if is(option, "KEEPTTL") => {}
            _ if ["EX", "PX", "EXAT", "PXAT"].iter().any(|name| is(option, name)) => {
                return Err(Refusal::new("ERR values do not expire: SET takes NX, XX and GET"));
            }
            _ => return Err(Refusal::syntax()),
        }
    }
    let (key, value) = (args.at(1), args.at(2));
    if if_absent && if_present {
        return Err(Refusal::syntax());
    }
    let old = if returns_old { keys.get(key)? } else { None };
    let is_present = match returns_old {
        true => old.is_some(),
        false => (if_absent || if_present) && keys.contains(key)?,
    };
    let is_set = !(if_absent && is_present || if_present && !is_present);
    if is_set {
        keys.insert(key, value)?;
    }
    Ok(match (returns_old, is_set) {
        (true, _) => Reply::value(old),
        (false, true) => Reply::OK,
        (false, false) => Reply::Null,
    })
}

pub(super) fn setnx(_: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    if keys.contains(args.at(1))? {
        return Ok(Reply::Integer(0));
    }
    keys.insert(args.at(1), args.at(2))?;
    Ok(Reply::Integer(1))
}

pub(super) fn getset(_: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    let old = keys.get(args.at(1))?;
    keys.insert(args.at(1), args.at(2))?;
    Ok(Reply::value(old))
}

pub(super) fn getdel(_: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    let old = keys.get(args.at(1))?;
    if old.is_some() {
        keys.remove(args.at(1))?;
    }
    Ok(Reply::value(old))
}

pub(super) fn mget(context: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    let most = context.shared.settings.limits.request_bytes;
    let (mut replies, mut bytes) = (Vec::with_capacity(args.len() - 1), 0);
    let names: Vec<&[u8]> = args.from(1).collect();
    for part in names.chunks(MGET_PART) {
        // So at most the values of one reply, plus one value, are in memory. A key without an answer means that they are too many.
        for found in keys.get_many(part, most - bytes + 1)? {
            bytes += found.iter().flatten().map(|value| value.len()).sum::<usize>();
            let Some(value) = found.filter(|_| bytes <= most) else {
                return Err(Refusal::new(format!("ERR the values are longer than {most} bytes")));
            };
            replies.push(Reply::value(value));
        }
    }
    Ok(Reply::Array(replies))
}

/// The number of keys that MGET searches together.
const MGET_PART: usize = 64;

/// A key and a value.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// The pairs of MSET and MSETNX.
fn pairs<'a>(args: Args<'a>, name: &str) -> Result<Vec<Pair<'a>>, Refusal> {
    if args.len().is_multiple_of(2) {
        return Err(Refusal::new(format!("ERR wrong number of arguments for '{name}' command")));
    }
    let keys = args.from(1).step_by(2);
    Ok(keys.zip(args.from(2).step_by(2)).collect())
}

pub(super) fn mset(_: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    for (key, value) in pairs(args, "mset")? {
        keys.insert(key, value)?;
    }
    Ok(Reply::OK)
}

pub(super) fn msetnx(_: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    let pairs = pairs(args, "msetnx")?;
    for (key, _) in &pairs {
        if keys.contains(key)? {
            return Ok(Reply::Integer(0));
        }
    }
    for (key, value) in pairs {
        keys.insert(key, value)?;
    }
    Ok(Reply::Integer(1))
}

pub(super) fn del(_: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
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

pub(super) fn exists(_: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    let mut found = 0;
    for key in args.from(1) {
        found += i64::from(keys.contains(key)?);
    }
    Ok(Reply::Integer(found))
}

pub(super) fn kind(_: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    Ok(Reply::Simple(if keys.contains(args.at(1))? { "string" } else { "none" }))
}

pub(super) fn strlen(_: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    Ok(Reply::count(keys.get(args.at(1))?.map_or(0, |value| value.len())))
}

/// The part from `start` to `end`, both included; a negative place is counted from the end.
pub(super) fn getrange(_: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    let (start, end) = (integer(args.at(2))?, integer(args.at(3))?);
    let value = keys.get(args.at(1))?.unwrap_or_default();
    let len = i64::try_from(value.len()).unwrap_or(i64::MAX);
    let place = |place: i64| if place < 0 { place.saturating_add(len).max(0) } else { place.min(len) };
    // The byte at `end` is included. An end before the first byte counts as that byte, as in Redis, unless the start is after it.
    let (from, to) = (place(start), place(end).saturating_add(1).min(len));
    if (start < 0 && end < 0 && start > end) || from >= to {
        return Ok(Reply::Bulk(Slice::default()));
    }
    Ok(Reply::Bulk(Slice::from(&value[from as usize..to as usize])))
}

pub(super) fn append(context: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    let old = keys.get(args.at(1))?.unwrap_or_default();
    if old.len() + args.at(2).len() > context.shared.settings.limits.request_bytes {
        return Err(Refusal::new("ERR string exceeds maximum allowed size (proto-max-bulk-len)"));
    }
    let value = [&*old, args.at(2)].concat();
    drop(old);
    keys.insert(args.at(1), &value)?;
    Ok(Reply::count(value.len()))
}

pub(super) fn incr(_: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    add(keys, args.at(1), 1)
}

pub(super) fn decr(_: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    add(keys, args.at(1), -1)
}

pub(super) fn incrby(_: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    add(keys, args.at(1), integer(args.at(2))?)
}

pub(super) fn decrby(_: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    let by = integer(args.at(2))?;
    add(keys, args.at(1), by.checked_neg().ok_or_else(|| Refusal::new("ERR decrement would overflow"))?)
}

fn add(keys: &mut Keyspace<'_>, key: &[u8], by: i64) -> Answer {
    let old = keys.get(key)?.map_or(Ok(0), |value| integer(&value))?;
    let sum = old.checked_add(by).ok_or_else(|| Refusal::new("ERR increment or decrement would overflow"))?;
    keys.insert(key, sum.to_string().as_bytes())?;
    Ok(Reply::Integer(sum))
}
