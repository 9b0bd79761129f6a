//! Commands on values.

use mini_engine::Slice;

use super::expiry::{TimeOption, Until};
use super::words::{float, integer, is};
use crate::protocol::reply::{Outcome, Refusal, Reply};
use crate::protocol::request::Args;
use crate::state::context::KeyContext;
use crate::state::keyspace::Keyspace;

pub(super) fn get(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    Ok(Reply::value(keys.get(args.at(1))?))
}

/// SET key value [NX | XX] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]
pub(super) fn set(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let (mut if_absent, mut if_present, mut returns_old, mut time) = (false, false, false, TimeOption::default());
    let mut options = args.from(3);
    while let Some(option) = options.next() {
        match option {
            _ if is(option, "NX") => if_absent = true,
            _ if is(option, "XX") => if_present = true,
            _ if is(option, "GET") => returns_old = true,
            _ => time.take(option, &mut options, "KEEPTTL")?,
        }
    }
    let (key, value) = (args.at(1), args.at(2));
    if if_absent && if_present {
        return Err(Refusal::syntax());
    }
    let until = time.until(keys, "set")?;
    let old = match (returns_old, &until) {
        (false, Some(Until::At(_)) | None) => None,
        _ => keys.get_with_expiry(key)?,
    };
    let is_present = match returns_old {
        true => old.is_some(),
        false => (if_absent || if_present) && keys.contains(key)?,
    };
    let (old, old_expiry) = old.map_or((None, None), |(old, expiry)| (Some(old), expiry));
    let is_set = !(if_absent && is_present || if_present && !is_present);
    if is_set {
        let expiry = until.and_then(|until| match until {
            Until::At(at) => Some(at),
            Until::Alone => old_expiry,
        });
        keys.insert_until(key, value, expiry)?;
    }
    Ok(match (returns_old, is_set) {
        (true, _) => Reply::value(old),
        (false, true) => Reply::OK,
        (false, false) => Reply::Null,
    })
}

pub(super) fn setnx(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    if keys.contains(args.at(1))? {
        return Ok(Reply::Integer(0));
    }
    keys.insert(args.at(1), args.at(2))?;
    Ok(Reply::Integer(1))
}

pub(super) fn getset(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let old = keys.get(args.at(1))?;
    keys.insert(args.at(1), args.at(2))?;
    Ok(Reply::value(old))
}

pub(super) fn getdel(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let old = keys.get(args.at(1))?;
    if old.is_some() {
        keys.remove(args.at(1))?;
    }
    Ok(Reply::value(old))
}

pub(super) fn mget(context: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let most = context.state.request_bytes;
    let (mut replies, mut bytes) = (Vec::with_capacity(args.len() - 1), 0);
    let names: Vec<&[u8]> = args.from(1).collect();
    for part in names.chunks(MGET_PART) {
        // So at most the values of one reply, plus one value, are in memory at once. A missing result for a key means that the values are too long.
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

/// The number of keys that MGET searches for together.
const MGET_PART: usize = 64;

/// The pairs of keys and values of MSET and MSETNX.
fn pairs<'a>(
    args: Args<'a>,
    name: &str,
) -> Result<impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a>, Refusal> {
    if args.len().is_multiple_of(2) {
        return Err(Refusal::new(format!("ERR wrong number of arguments for '{name}' command")));
    }
    Ok(args.from(1).step_by(2).zip(args.from(2).step_by(2)))
}

pub(super) fn mset(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    for (key, value) in pairs(args, "mset")? {
        keys.insert(key, value)?;
    }
    Ok(Reply::OK)
}

pub(super) fn msetnx(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let pairs = pairs(args, "msetnx")?;
    for (key, _) in pairs.clone() {
        if keys.contains(key)? {
            return Ok(Reply::Integer(0));
        }
    }
    for (key, value) in pairs {
        keys.insert(key, value)?;
    }
    Ok(Reply::Integer(1))
}

pub(super) fn strlen(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    Ok(Reply::count(keys.get(args.at(1))?.map_or(0, |value| value.len())))
}

/// The part of the value from `start` to `end`, both included; negative positions count from the end.
pub(super) fn getrange(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let (start, end) = (integer(args.at(2))?, integer(args.at(3))?);
    let value = keys.get(args.at(1))?.unwrap_or_default();
    let len = i64::try_from(value.len()).unwrap_or(i64::MAX);
    let place = |place: i64| if place < 0 { place.saturating_add(len).max(0) } else { place.min(len) };
    // The byte at `end` is included. As in Redis, an end before the first byte counts as that byte, unless the start is after it.
    let (from, to) = (place(start), place(end).saturating_add(1).min(len));
    if (start < 0 && end < 0 && start > end) || from >= to {
        return Ok(Reply::Bulk(Slice::default()));
    }
    Ok(Reply::Bulk(Slice::from(&value[from as usize..to as usize])))
}

/// Refuses values that are too long to be sent in one request.
fn check_length(context: &KeyContext<'_>, len: usize) -> Result<(), Refusal> {
    match len > context.state.request_bytes {
        true => Err(Refusal::new("ERR string exceeds maximum allowed size (proto-max-bulk-len)")),
        false => Ok(()),
    }
}

pub(super) fn append(context: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let (old, expiry) = keys.get_with_expiry(args.at(1))?.unwrap_or_default();
    check_length(context, old.len() + args.at(2).len())?;
    let value = [&*old, args.at(2)].concat();
    drop(old);
    keys.insert_until(args.at(1), &value, expiry)?;
    Ok(Reply::count(value.len()))
}

pub(super) fn decrby(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let by = integer(args.at(2))?;
    add(keys, args.at(1), by.checked_neg().ok_or_else(|| Refusal::new("ERR decrement would overflow"))?)
}

/// INCR key, and the related commands.
pub(super) fn add(keys: &mut Keyspace, key: &[u8], by: i64) -> Outcome {
    let old = keys.get_with_expiry(key)?;
    let sum = sum(old.as_ref().map(|(value, _)| &**value), by)?;
    keys.insert_until(key, itoa::Buffer::new().format(sum).as_bytes(), old.and_then(|(_, expiry)| expiry))?;
    Ok(Reply::Integer(sum))
}

/// The sum of the number in a value, which is 0 if the value is absent, and another number.
pub(super) fn sum(value: Option<&[u8]>, by: i64) -> Result<i64, Refusal> {
    let number = value.map_or(Ok(0), integer)?;
    number.checked_add(by).ok_or_else(|| Refusal::new("ERR increment or decrement would overflow"))
}

/// INCRBYFLOAT key increment. Uses 64-bit numbers, where Redis uses longer ones; prints the shortest form that can be read back exactly.
pub(super) fn incrbyfloat(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let old = keys.get_with_expiry(args.at(1))?;
    let sum = old.as_ref().map_or(Ok(0.0), |(value, _)| float(value))? + float(args.at(2))?;
    if !sum.is_finite() {
        return Err(Refusal::new("ERR increment would produce NaN or Infinity"));
    }
    let text = sum.to_string();
    keys.insert_until(args.at(1), text.as_bytes(), old.and_then(|(_, expiry)| expiry))?;
    Ok(Reply::text(text))
}

/// SETRANGE key offset value: overwrites a part of the value. If the value is shorter than the offset, the gap is filled with zeros.
pub(super) fn setrange(context: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let offset = usize::try_from(integer(args.at(2))?).map_err(|_| Refusal::new("ERR offset is out of range"))?;
    let (key, part) = (args.at(1), args.at(3));
    let (old, expiry) = keys.get_with_expiry(key)?.unwrap_or_default();
    let mut value = old.to_vec();
    if part.is_empty() {
        return Ok(Reply::count(value.len()));
    }
    let end = offset.saturating_add(part.len());
    check_length(context, end)?;
    value.resize(value.len().max(end), 0);
    value[offset..end].copy_from_slice(part);
    keys.insert_until(key, &value, expiry)?;
    Ok(Reply::count(value.len()))
}
