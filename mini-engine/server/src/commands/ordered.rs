//! Commands that visit keys in key order.

use std::ops::Bound;

use mini_engine::Slice;

use super::words::{integer, is};
use crate::protocol::reply::{Outcome, Refusal, Reply};
use crate::protocol::request::{Args, parse_number};
use crate::state::context::{After, KeyContext};
use crate::state::glob::{LONGEST_PATTERN, Pattern, literal_prefix};
use crate::state::keyspace::{Bounds, Direction, Entry, Keyspace};
use crate::state::listing::{Listing, Shown, WORK_OF_STEP, too_long};

/// The maximum number of keys that one SCAN visits, whatever COUNT is, because other clients wait during that time.
const MOST_SCANNED: usize = 10_000;
/// The number of keys that SCAN visits by default, as in Redis.
const SCANNED: usize = 10;

/// RANGE from to [LIMIT n] [REV]
pub(super) fn range(context: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    entries(context, keys, bounds_of_range(&args), args, 3)
}

fn bounds_of_range(args: &Args<'_>) -> Bounds {
    let (from, to) = (args.at(1).to_vec(), args.at(2).to_vec());
    // No key comes before the empty one, so as an end it would make every range empty; it means "no end" instead.
    let end = if to.is_empty() { Bound::Unbounded } else { Bound::Excluded(to) };
    (Bound::Included(from), end)
}

/// DELRANGE from to: removes the keys of RANGE, in one operation. The reply does not count the keys, because their number is not known.
pub(super) fn delrange(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    keys.remove_range(bounds_of_range(&args))?;
    Ok(Reply::OK)
}

/// DELPREFIX prefix: removes the keys of PREFIX, in one operation.
pub(super) fn delprefix(_: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    keys.remove_range(bounds_of_prefix(args.at(1)))?;
    Ok(Reply::OK)
}

/// PREFIX prefix [LIMIT n] [REV]
pub(super) fn prefix(context: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    entries(context, keys, bounds_of_prefix(args.at(1)), args, 2)
}

fn bounds_of_prefix(prefix: &[u8]) -> Bounds {
    let mut end = prefix.to_vec();
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    let end = match end.last_mut() {
        Some(last) => {
            *last += 1;
            Bound::Excluded(end)
        }
        None => Bound::Unbounded,
    };
    (Bound::Included(prefix.to_vec()), end)
}

/// Lists keys and values alternately; the options begin at argument `options`.
fn entries(context: &mut KeyContext<'_>, keys: &Keyspace, bounds: Bounds, args: Args<'_>, options: usize) -> Outcome {
    let (mut limit, mut direction) = (usize::MAX, Direction::Forward);
    let mut words = args.from(options);
    while let Some(word) = words.next() {
        if is(word, "REV") {
            direction = Direction::Backward;
        } else if is(word, "LIMIT") {
            let number = integer(words.next().ok_or_else(Refusal::syntax)?)?;
            limit = usize::try_from(number).map_err(|_| Refusal::new("ERR LIMIT is negative"))?;
        } else {
            return Err(Refusal::syntax());
        }
    }
    list(context, keys, bounds, (direction, limit), Shown::Entries)
}

/// KEYS pattern. If the pattern begins with literal bytes, only keys with this prefix are visited.
pub(super) fn keys(context: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let pattern = checked_pattern(args.at(1))?;
    let bounds = bounds_of_prefix(&literal_prefix(pattern));
    list(context, keys, bounds, (Direction::Forward, usize::MAX), Shown::Keys(Pattern::new(pattern)))
}

/// Lists at most `limit` of the entries, in as many steps as necessary.
fn list(
    context: &mut KeyContext<'_>,
    keys: &Keyspace,
    bounds: Bounds,
    (direction, limit): (Direction, usize),
    shown: Shown,
) -> Outcome {
    let most = context.state.request_bytes;
    if keys.is_of_several() {
        return list_at_once(keys.range(bounds, direction).take(limit), &shown, most);
    }
    let begin = || Listing::new(Box::new(keys.entries(bounds, direction).take(limit)), shown);
    let mut listing = context.listing.take().unwrap_or_else(begin);
    *context.after = match listing.go_on(context.version, most)? {
        true => After::Continue(listing),
        false => After::Listed(listing),
    };
    Ok(Reply::Nothing)
}

/// Builds the whole reply in one step: for a transaction, whose commands must not be interrupted.
fn list_at_once(entries: impl Iterator<Item = Entry>, shown: &Shown, most: usize) -> Outcome {
    let (mut replies, mut bytes) = (Vec::new(), 0);
    for entry in entries {
        let (key, value) = entry?;
        for string in shown.of(key, value).into_iter().flatten() {
            let reply = Reply::Bulk(string);
            bytes += reply.size();
            replies.push(reply);
        }
        if bytes > most {
            return Err(too_long(most));
        }
    }
    Ok(Reply::Array(replies))
}

/// Refuses a pattern that is too long to be matched with many keys.
fn checked_pattern(pattern: &[u8]) -> Result<&[u8], Refusal> {
    match pattern.len() > LONGEST_PATTERN {
        true => Err(Refusal::new(format!("ERR a pattern has at most {LONGEST_PATTERN} bytes"))),
        false => Ok(pattern),
    }
}

/// The arguments of SCAN.
struct Scan<'a> {
    pattern: Option<&'a [u8]>,
    count: usize,
    /// Whether the request asks for keys of a type that this server does not have.
    is_of_another_type: bool,
}

fn options<'a>(args: &Args<'a>) -> Result<Scan<'a>, Refusal> {
    let mut scan = Scan { pattern: None, count: SCANNED, is_of_another_type: false };
    let mut words = args.from(2);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(Refusal::syntax)?;
        if is(word, "MATCH") {
            scan.pattern = Some(checked_pattern(value)?);
        } else if is(word, "COUNT") {
            let count = usize::try_from(integer(value)?).ok().filter(|&count| count > 0);
            scan.count = count.ok_or_else(Refusal::syntax)?.min(MOST_SCANNED);
        } else if is(word, "TYPE") {
            scan.is_of_another_type = !is(value, "string");
        } else {
            return Err(Refusal::syntax());
        }
    }
    Ok(scan)
}

/// SCAN cursor [MATCH pattern] [COUNT n] [TYPE t]. If the pattern begins with literal bytes, only keys with this prefix are searched.
pub(super) fn scan(context: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let cursor = parse_number(args.at(1)).and_then(|cursor| u64::try_from(cursor).ok());
    let cursor = cursor.ok_or_else(|| Refusal::new("ERR invalid cursor"))?;
    let scan = options(&args)?;
    let (start, end) = bounds_of_prefix(&scan.pattern.map_or_else(Vec::new, literal_prefix));
    let start = match (cursor, start) {
        (0, start) => start,
        (_, start) => {
            let position = context
                .state
                .cursors
                .position(cursor)
                .ok_or_else(|| Refusal::new("ERR the cursor is not known any more: begin again with 0"))?;
            // With the same pattern as in the first call the position is within the bounds; with another pattern it may be outside.
            match start {
                Bound::Included(first) if first > position => Bound::Included(first),
                _ => Bound::Included(position),
            }
        }
    };
    let pattern = scan.pattern.map(Pattern::new);
    let (mut found, mut next, mut work) = (Vec::new(), None, 0);
    for (seen, entry) in keys.range((start, end), Direction::Forward).enumerate() {
        let (key, value) = entry?;
        if seen == scan.count || work >= WORK_OF_STEP {
            next = Some(key);
            break;
        }
        work += key.len() + value.len() + pattern.as_ref().map_or(0, |pattern| pattern.cost(&key));
        if !scan.is_of_another_type && pattern.as_ref().is_none_or(|pattern| pattern.matches(&key)) {
            found.push(Reply::Bulk(key));
        }
    }
    let next = next.map_or(0, |position: Slice| context.state.cursors.hand_out(position.to_vec()));
    Ok(Reply::Array(vec![Reply::text(next.to_string()), Reply::Array(found)]))
}
