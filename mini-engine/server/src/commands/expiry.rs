//! Commands for the times at which keys expire. As in Redis, times are whole milliseconds or seconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::words::{integer, is};
use crate::protocol::reply::{Outcome, Refusal, Reply};
use crate::protocol::request::Args;
use crate::state::clock::since_1970;
use crate::state::context::KeyContext;
use crate::state::keyspace::Keyspace;

/// The unit of a number in a request.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Seconds,
    Millis,
}

/// The time from which a number in a request counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    Now,
    Epoch,
}

/// What a number in a request, or in a reply, means.
pub(super) type When = (Unit, Base);
pub(super) const SECONDS: When = (Unit::Seconds, Base::Now);
pub(super) const MILLIS: When = (Unit::Millis, Base::Now);
pub(super) const UNIX_SECONDS: When = (Unit::Seconds, Base::Epoch);
pub(super) const UNIX_MILLIS: When = (Unit::Millis, Base::Epoch);

fn invalid(command: &str) -> Refusal {
    Refusal::new(format!("ERR invalid expire time in '{command}' command"))
}

/// The time that a request gives, in milliseconds since 1970; negative before 1970.
fn millis(keys: &Keyspace, number: i64, (unit, from): When) -> Option<i64> {
    let base = if from == Base::Now { millis_of(keys.now()) } else { 0 };
    let factor = if let Unit::Seconds = unit { 1000 } else { 1 };
    number.checked_mul(factor)?.checked_add(base)
}

/// A time before 1970 has passed, like any other time in the past.
pub(super) fn instant(millis: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

fn millis_of(at: SystemTime) -> i64 {
    i64::try_from(since_1970(at).as_millis()).unwrap_or(i64::MAX)
}

/// The options of SET and GETEX that take a number.
const TIMES: [(&str, When); 4] = [("EX", SECONDS), ("PX", MILLIS), ("EXAT", UNIX_SECONDS), ("PXAT", UNIX_MILLIS)];

/// The time at which the value expires, according to the options of SET or GETEX.
pub(super) enum Until {
    /// The option that takes no number.
    Alone,
    At(SystemTime),
}

/// The option of SET or GETEX that was given: its index in `TIMES`, or the index after the last one, and its number. As in Redis, the option may be
/// repeated, and the last one counts.
#[derive(Clone, Copy, Default)]
pub(super) struct TimeOption<'a>(Option<(usize, &'a [u8])>);

impl<'a> TimeOption<'a> {
    /// Accepts the option `word`, and takes the option's number from `words`. The option `alone` takes no number.
    pub(super) fn take(
        &mut self,
        word: &[u8],
        words: &mut impl Iterator<Item = &'a [u8]>,
        alone: &str,
    ) -> Result<(), Refusal> {
        let place = TIMES.iter().position(|(name, _)| is(word, name));
        let place = place.or_else(|| is(word, alone).then_some(TIMES.len()));
        let is_only = |place: &usize| self.0.is_none_or(|(other, _)| other == *place);
        let place = place.filter(is_only).ok_or_else(Refusal::syntax)?;
        let number = if place < TIMES.len() { words.next().ok_or_else(Refusal::syntax)? } else { &[] };
        self.0 = Some((place, number));
        Ok(())
    }

    pub(super) fn until(self, keys: &Keyspace, command: &str) -> Result<Option<Until>, Refusal> {
        let Some((place, number)) = self.0 else { return Ok(None) };
        let Some(&(_, when)) = TIMES.get(place) else { return Ok(Some(Until::Alone)) };
        lifetime(keys, number, when, command).map(|at| Some(Until::At(at)))
    }
}

/// The expiry time of a value that is being set; the number must be positive.
fn lifetime(keys: &Keyspace, number: &[u8], when: When, command: &str) -> Result<SystemTime, Refusal> {
    let number = integer(number)?;
    let at = Some(number).filter(|&number| number > 0).and_then(|number| millis(keys, number, when));
    at.map(instant).ok_or_else(|| invalid(command))
}

/// The expiry time of SET with PX.
pub(super) fn px(keys: &Keyspace, number: &[u8]) -> Result<SystemTime, Refusal> {
    lifetime(keys, number, MILLIS, "set")
}

/// The milliseconds until `at`; 0 if that time has passed.
pub(super) fn remaining_millis(keys: &Keyspace, at: SystemTime) -> i64 {
    (millis_of(at) - millis_of(keys.now())).max(0)
}

/// SETEX key number value, and PSETEX.
pub(super) fn setex(keys: &mut Keyspace, args: Args<'_>, when: When, command: &str) -> Outcome {
    let at = lifetime(keys, args.at(2), when, command)?;
    keys.insert_until(args.at(1), args.at(3), Some(at))?;
    Ok(Reply::OK)
}

/// GETEX key [EX s | PX ms | EXAT s | PXAT ms | PERSIST]
pub(super) fn getex(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let (mut time, mut words) = (TimeOption::default(), args.from(2));
    while let Some(word) = words.next() {
        time.take(word, &mut words, "PERSIST")?;
    }
    let Some((value, old)) = keys.get_with_expiry(args.at(1))? else { return Ok(Reply::Null) };
    match time.until(keys, "getex")? {
        Some(Until::At(at)) => keys.insert_until(args.at(1), &value, Some(at))?,
        Some(Until::Alone) if old.is_some() => keys.insert(args.at(1), &value)?,
        Some(Until::Alone) | None => {}
    }
    Ok(Reply::Bulk(value))
}

/// EXPIRE key seconds [NX | XX | GT | LT], and the related commands. Rewrites the value with its new expiry time. An expired key is removed.
pub(super) fn expire(keys: &mut Keyspace, args: Args<'_>, when: When, command: &str) -> Outcome {
    let is_met = conditions(&args)?;
    let at = millis(keys, integer(args.at(2))?, when).ok_or_else(|| invalid(command))?;
    expire_at(keys, args.at(1), at, is_met)
}

/// Sets the expiry time of a key, in milliseconds since 1970, if its old expiry time allows this.
fn expire_at(keys: &mut Keyspace, key: &[u8], at: i64, is_met: impl Fn(Option<i64>, i64) -> bool) -> Outcome {
    let Some((value, old)) = keys.get_with_expiry(key)? else { return Ok(Reply::Integer(0)) };
    if !is_met(old.map(millis_of), at) {
        return Ok(Reply::Integer(0));
    }
    match at > millis_of(keys.now()) {
        true => keys.insert_until(key, &value, Some(instant(at)))?,
        false => keys.remove(key)?,
    }
    Ok(Reply::Integer(1))
}

/// Sets the expiry time of a key relative to now, like EXPIRE or PEXPIRE; `None` stands for a number that is too large.
pub(super) fn expire_in(keys: &mut Keyspace, key: &[u8], number: Option<i64>, unit: Unit) -> Outcome {
    expire_at(keys, key, millis_after(keys, number, unit)?, |_, _| true)
}

/// The absolute expiry time for a number of EXPIRE or PEXPIRE, in milliseconds since 1970.
pub(super) fn millis_after(keys: &Keyspace, number: Option<i64>, unit: Unit) -> Result<i64, Refusal> {
    let at = number.and_then(|number| millis(keys, number, (unit, Base::Now)));
    let command = if let Unit::Seconds = unit { "expire" } else { "pexpire" };
    at.ok_or_else(|| invalid(command))
}

/// Whether the old expiry time, if there is one, may be replaced by the new one.
type IsMet = fn(Option<i64>, i64) -> bool;

fn conditions(args: &Args<'_>) -> Result<impl Fn(Option<i64>, i64) -> bool + use<>, Refusal> {
    const OPTIONS: [(&str, IsMet); 4] = [
        ("NX", |old, _| old.is_none()),
        ("XX", |old, _| old.is_some()),
        // A key without an expiry time counts as expiring last.
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

pub(super) fn persist(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let Some((value, Some(_))) = keys.get_with_expiry(args.at(1))? else { return Ok(Reply::Integer(0)) };
    keys.insert(args.at(1), &value)?;
    Ok(Reply::Integer(1))
}

/// TTL key, and the related commands: the time at which a key expires; -1 if never, -2 if the key is absent.
pub(super) fn ttl(keys: &Keyspace, args: Args<'_>, (unit, from): When) -> Outcome {
    let at = match keys.get_with_expiry(args.at(1))? {
        None => return Ok(Reply::Integer(-2)),
        Some((_, None)) => return Ok(Reply::Integer(-1)),
        Some((_, Some(at))) => at,
    };
    let millis = if from == Base::Now { remaining_millis(keys, at) } else { millis_of(at) };
    Ok(Reply::Integer(match unit {
        Unit::Millis => millis,
        // Rounded, as in Redis. The value is never negative.
        Unit::Seconds => millis / 1000 + i64::from(millis % 1000 >= 500),
    }))
}
