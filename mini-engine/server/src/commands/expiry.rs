//! Commands of the times at which keys expire. In Redis, and so here: whole milliseconds since 1970, and seconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::words::{integer, is};
use crate::protocol::reply::{Refusal, Reply};
use crate::protocol::request::Args;
use crate::state::clock::since_1970;
use crate::state::context::Context;
use crate::state::keyspace::Keyspace;

type Answer = Result<Reply, Refusal>;

/// What a number of a request counts.
#[derive(Clone, Copy)]
enum Unit {
    Seconds,
    Millis,
}

/// Where a number of a request counts from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    Now,
    Epoch,
}

fn invalid(command: &str) -> Refusal {
    Refusal::new(format!("ERR invalid expire time in '{command}' command"))
}

/// The milliseconds since 1970 that a request names; negative before.
fn millis(keys: &Keyspace, number: i64, unit: Unit, from: Base) -> Option<i64> {
    let base = if from == Base::Now { millis_of(keys.now()) } else { 0 };
    let factor = if let Unit::Seconds = unit { 1000 } else { 1 };
    number.checked_mul(factor)?.checked_add(base)
}

/// A time before 1970 has come as any other.
fn instant(millis: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

fn millis_of(at: SystemTime) -> i64 {
    i64::try_from(since_1970(at).as_millis()).unwrap_or(i64::MAX)
}

/// The time of the option EX, PX, EXAT or PXAT with its number.
pub(super) fn expiry_option(
    keys: &Keyspace,
    option: &[u8],
    number: Option<&[u8]>,
    command: &str,
) -> Result<SystemTime, Refusal> {
    let (unit, from) = match option {
        _ if is(option, "EX") => (Unit::Seconds, Base::Now),
        _ if is(option, "PX") => (Unit::Millis, Base::Now),
        _ if is(option, "EXAT") => (Unit::Seconds, Base::Epoch),
        _ if is(option, "PXAT") => (Unit::Millis, Base::Epoch),
        _ => return Err(Refusal::syntax()),
    };
    lifetime(keys, number.ok_or_else(Refusal::syntax)?, (unit, from), command)
}

/// A time that a value is set with: it must be positive.
fn lifetime(keys: &Keyspace, number: &[u8], (unit, from): (Unit, Base), command: &str) -> Result<SystemTime, Refusal> {
    let number = integer(number)?;
    let at = Some(number).filter(|&number| number > 0).and_then(|number| millis(keys, number, unit, from));
    at.map(instant).ok_or_else(|| invalid(command))
}

/// The time so many milliseconds from now, if that is in the future.
pub(super) fn in_millis(keys: &Keyspace, number: i64) -> Option<SystemTime> {
    let at = Some(number).filter(|&number| number > 0).and_then(|number| millis(keys, number, Unit::Millis, Base::Now));
    at.map(instant)
}

/// The milliseconds until `at`; 0 if it has come.
pub(super) fn remaining_millis(keys: &Keyspace, at: SystemTime) -> i64 {
    (millis_of(at) - millis_of(keys.now())).max(0)
}

pub(super) fn setex(_: &mut Context<'_>, keys: &mut Keyspace, args: Args<'_>) -> Answer {
    let at = lifetime(keys, args.at(2), (Unit::Seconds, Base::Now), "setex")?;
    keys.insert_until(args.at(1), args.at(3), Some(at))?;
    Ok(Reply::OK)
}

pub(super) fn psetex(_: &mut Context<'_>, keys: &mut Keyspace, args: Args<'_>) -> Answer {
    let at = lifetime(keys, args.at(2), (Unit::Millis, Base::Now), "psetex")?;
    keys.insert_until(args.at(1), args.at(3), Some(at))?;
    Ok(Reply::OK)
}

/// GETEX key [EX s | PX ms | EXAT s | PXAT ms | PERSIST]
pub(super) fn getex(_: &mut Context<'_>, keys: &mut Keyspace, args: Args<'_>) -> Answer {
    let new = match args.len() {
        2 => None,
        3 if is(args.at(2), "PERSIST") => Some(None),
        4 => Some(Some(expiry_option(keys, args.at(2), Some(args.at(3)), "getex")?)),
        _ => return Err(Refusal::syntax()),
    };
    let found = keys.get_with_expiry(args.at(1))?;
    if let (Some((value, old)), Some(new)) = (&found, new)
        && *old != new
    {
        keys.insert_until(args.at(1), value, new)?;
    }
    Ok(Reply::value(found.map(|(value, _)| value)))
}

pub(super) fn expire(_: &mut Context<'_>, keys: &mut Keyspace, args: Args<'_>) -> Answer {
    set_expiry(keys, args, (Unit::Seconds, Base::Now), "expire")
}

pub(super) fn pexpire(_: &mut Context<'_>, keys: &mut Keyspace, args: Args<'_>) -> Answer {
    set_expiry(keys, args, (Unit::Millis, Base::Now), "pexpire")
}

pub(super) fn expireat(_: &mut Context<'_>, keys: &mut Keyspace, args: Args<'_>) -> Answer {
    set_expiry(keys, args, (Unit::Seconds, Base::Epoch), "expireat")
}

pub(super) fn pexpireat(_: &mut Context<'_>, keys: &mut Keyspace, args: Args<'_>) -> Answer {
    set_expiry(keys, args, (Unit::Millis, Base::Epoch), "pexpireat")
}

/// EXPIRE key seconds [NX | XX | GT | LT], and its kin. Rewrites the value. A key whose time has come is removed.
fn set_expiry(keys: &mut Keyspace, args: Args<'_>, (unit, from): (Unit, Base), command: &str) -> Answer {
    let at = millis(keys, integer(args.at(2))?, unit, from).ok_or_else(|| invalid(command))?;
    let is_met = conditions(&args)?;
    let Some((value, old)) = keys.get_with_expiry(args.at(1))? else { return Ok(Reply::Integer(0)) };
    if !is_met(old.map(millis_of), at) {
        return Ok(Reply::Integer(0));
    }
    match at > millis_of(keys.now()) {
        true => keys.insert_until(args.at(1), &value, Some(instant(at)))?,
        false => keys.remove(args.at(1))?,
    }
    Ok(Reply::Integer(1))
}

/// Whether an old time, if there is one, may be replaced by a new one.
type IsMet = fn(Option<i64>, i64) -> bool;

fn conditions(args: &Args<'_>) -> Result<impl Fn(Option<i64>, i64) -> bool + use<>, Refusal> {
    const OPTIONS: [(&str, IsMet); 4] = [
        ("NX", |old, _| old.is_none()),
        ("XX", |old, _| old.is_some()),
        // A key that does not expire has the latest time of all.
        ("GT", |old, new| old.is_some_and(|old| new > old)),
        ("LT", |old, new| old.is_none_or(|old| new < old)),
    ];
    let mut is_given = [false; OPTIONS.len()];
    for word in args.from(3) {
        let place = OPTIONS.iter().position(|(name, _)| is(word, name));
        let unsupported = || Refusal::new(format!("ERR Unsupported option {}", word.escape_ascii()));
        is_given[place.ok_or_else(unsupported)?] = true;
    }
    match is_given {
        [true, true, ..] | [true, _, true, _] | [true, .., true] => {
            Err(Refusal::new("ERR NX and XX, GT or LT options at the same time are not compatible"))
        }
        [_, _, true, true] => Err(Refusal::new("ERR GT and LT options at the same time are not compatible")),
        _ => Ok(move |old, new| {
            OPTIONS.iter().zip(is_given).all(|((_, is_met), is_given)| !is_given || is_met(old, new))
        }),
    }
}

pub(super) fn persist(_: &mut Context<'_>, keys: &mut Keyspace, args: Args<'_>) -> Answer {
    let Some((value, Some(_))) = keys.get_with_expiry(args.at(1))? else { return Ok(Reply::Integer(0)) };
    keys.insert(args.at(1), &value)?;
    Ok(Reply::Integer(1))
}

pub(super) fn ttl(_: &mut Context<'_>, keys: &mut Keyspace, args: Args<'_>) -> Answer {
    asked(keys, args, Unit::Seconds, Base::Now)
}

pub(super) fn pttl(_: &mut Context<'_>, keys: &mut Keyspace, args: Args<'_>) -> Answer {
    asked(keys, args, Unit::Millis, Base::Now)
}

pub(super) fn expiretime(_: &mut Context<'_>, keys: &mut Keyspace, args: Args<'_>) -> Answer {
    asked(keys, args, Unit::Seconds, Base::Epoch)
}

pub(super) fn pexpiretime(_: &mut Context<'_>, keys: &mut Keyspace, args: Args<'_>) -> Answer {
    asked(keys, args, Unit::Millis, Base::Epoch)
}

/// When a key expires: -1 if never, -2 if it is absent.
fn asked(keys: &Keyspace, args: Args<'_>, unit: Unit, from: Base) -> Answer {
    let at = match keys.get_with_expiry(args.at(1))? {
        None => return Ok(Reply::Integer(-2)),
        Some((_, None)) => return Ok(Reply::Integer(-1)),
        Some((_, Some(at))) => at,
    };
    let millis = if from == Base::Now { remaining_millis(keys, at) } else { millis_of(at) };
    Ok(Reply::Integer(match unit {
        Unit::Millis => millis,
        // Rounded, as in Redis.
        Unit::Seconds => (millis + 500) / 1000,
    }))
}
