//! The scripts of well-known rate limiters and caches, and of an addition that may be repeated, for EVAL. As in Lua, a number is
//! a 64-bit float, and a reply contains only its integer part.

use std::time::SystemTime;

use mini_engine::Slice;

use super::expiry::{TimeOption, Unit, Until, instant, millis_after, remaining_millis};
use super::strings::sum;
use super::words::{float, integer};
use crate::protocol::reply::{Outcome, Refusal, Reply};
use crate::state::clock::since_1970;
use crate::state::keyspace::Keyspace;
use crate::state::scripts::{Call, Script};

#[rustfmt::skip]
pub(crate) static KNOWN: &[Script] = &[
    // The library limits for Python, also used by flask-limiter and slowapi: the fixed window, and state and hit of the sliding window counter.
    Script::of_first(1, 2, limits_fixed, "local current local amount = tonumber(ARGV[2]) \
      current = redis.call('incrby',KEYS[1],amount) if tonumber(current) == amount then redis.call('expire',KEYS[1],ARGV[1]) end return current"),
    Script::of_first(2, 1, limits_state, "local expiry = tonumber(ARGV[1]) * 1000 local previous_count = redis.call('get',KEYS[1]) local previous_ttl = \
      redis.call('pttl',KEYS[1]) local current_count = redis.call('get',KEYS[2]) local current_ttl = redis.call('pttl',KEYS[2]) if current_ttl > 0 and \
      current_ttl < expiry then redis.call('rename',KEYS[2],KEYS[1]) redis.call('set',KEYS[2],0,'PX',current_ttl + expiry) previous_count = \
      redis.call('get',KEYS[1]) previous_ttl = redis.call('pttl',KEYS[1]) current_count = redis.call('get',KEYS[2]) current_ttl = redis.call('pttl',KEYS[2]) end \
      return {previous_count,previous_ttl,current_count,current_ttl}"),
    Script::of_first(2, 3, limits_hit, "local limit = tonumber(ARGV[1]) local expiry = tonumber(ARGV[2]) * 1000 local amount = tonumber(ARGV[3]) if amount > limit then \
      return false end local current_ttl = tonumber(redis.call('pttl',KEYS[2])) if current_ttl > 0 and current_ttl < expiry then \
      redis.call('rename',KEYS[2],KEYS[1]) redis.call('set',KEYS[2],0,'PX',current_ttl + expiry) end local previous_count = tonumber(redis.call('get',KEYS[1])) \
      or 0 local previous_ttl = tonumber(redis.call('pttl',KEYS[1])) or 0 local current_count = tonumber(redis.call('get',KEYS[2])) or 0 current_ttl = \
      tonumber(redis.call('pttl',KEYS[2])) or 0 if previous_ttl <= 0 then previous_ttl = 0 end if current_ttl <= 0 then current_ttl = 0 end local weighted_count \
      = math.floor(previous_count * previous_ttl / expiry) + current_count if (weighted_count + amount) > limit then return false end if \
      redis.call('exists',KEYS[2]) == 1 then redis.call('incrby',KEYS[2],amount) else redis.call('set',KEYS[2],amount,'PX',expiry * 2) end return true"),
    // rate-limiter-flexible for Node.
    Script::of_first(1, 2, flexible, "redis.call('set',KEYS[1],0,'EX',ARGV[2],'NX') local consumed = redis.call('incrby',KEYS[1],ARGV[1]) local ttl = \
      redis.call('pttl',KEYS[1]) if ttl == -1 then redis.call('expire',KEYS[1],ARGV[2]) ttl = 1000 * ARGV[2] end return {consumed,ttl}"),
    // rate-limit-redis for Node, which express-rate-limit uses: the increment of version 6, the increment of versions 4.2.3 to 5, and the state.
    Script::of_first(1, 1, |keys, call| hit(keys, &call, call.args[0], false), "local windowMs = tonumber(ARGV[1]) local timeToExpire = redis.call('PTTL',KEYS[1]) if \
      timeToExpire <= 0 then redis.call('SET',KEYS[1],1,'PX',windowMs) return {1,windowMs} end local totalHits = redis.call('INCR',KEYS[1]) return \
      {totalHits,timeToExpire}"),
    Script::of_first(1, 2, |keys, call| hit(keys, &call, call.args[1], call.args[0] == b"1"), "local windowMs = tonumber(ARGV[2]) local resetOnChange = ARGV[1] == '1' \
      local timeToExpire = redis.call('PTTL',KEYS[1]) if timeToExpire <= 0 then redis.call('SET',KEYS[1],1,'PX',windowMs) return {1,windowMs} end local \
      totalHits = redis.call('INCR',KEYS[1]) if resetOnChange then redis.call('PEXPIRE',KEYS[1],windowMs) timeToExpire = windowMs end return \
      {totalHits,timeToExpire}"),
    Script::of_first(1, 0, |keys, call| Ok(Reply::Array(state(keys, keys.get_with_expiry(call.keys[0])?).into())), "local totalHits = redis.call('GET',KEYS[1]) local \
      timeToExpire = redis.call('PTTL',KEYS[1]) return {totalHits,timeToExpire}"),
    // redis_rate for Go: AllowN and AllowAtMost.
    Script::of_first(1, 4, allow, "redis.replicate_commands() local rate_limit_key = KEYS[1] local burst = ARGV[1] local rate = ARGV[2] local period = ARGV[3] local \
      cost = tonumber(ARGV[4]) local emission_interval = period / rate local increment = emission_interval * cost local burst_offset = emission_interval * burst \
      local jan_1_2017 = 1483228800 local now = redis.call('TIME') now = (now[1] - jan_1_2017) + (now[2] / 1000000) local tat = redis.call('GET',rate_limit_key) \
      if not tat then tat = now else tat = tonumber(tat) end tat = math.max(tat,now) local new_tat = tat + increment local allow_at = new_tat - burst_offset \
      local diff = now - allow_at local remaining = diff / emission_interval if remaining < 0 then local reset_after = tat - now local retry_after = diff * -1 \
      return {0,0,tostring(retry_after),tostring(reset_after),} end local reset_after = new_tat - now if reset_after > 0 then \
      redis.call('SET',rate_limit_key,new_tat,'EX',math.ceil(reset_after)) end local retry_after = -1 return \
      {cost,remaining,tostring(retry_after),tostring(reset_after)}"),
    Script::of_first(1, 4, allow_at_most, "redis.replicate_commands() local rate_limit_key = KEYS[1] local burst = ARGV[1] local rate = ARGV[2] local period = ARGV[3] \
      local cost = tonumber(ARGV[4]) local emission_interval = period / rate local burst_offset = emission_interval * burst local jan_1_2017 = 1483228800 local \
      now = redis.call('TIME') now = (now[1] - jan_1_2017) + (now[2] / 1000000) local tat = redis.call('GET',rate_limit_key) if not tat then tat = now else tat \
      = tonumber(tat) end tat = math.max(tat,now) local diff = now - (tat - burst_offset) local remaining = diff / emission_interval if remaining < 1 then local \
      reset_after = tat - now local retry_after = emission_interval - diff return {0,0,tostring(retry_after),tostring(reset_after),} end if remaining < cost \
      then cost = remaining remaining = 0 else remaining = remaining - cost end local increment = emission_interval * cost local new_tat = tat + increment local \
      reset_after = new_tat - now if reset_after > 0 then redis.call('SET',rate_limit_key,new_tat,'EX',math.ceil(reset_after)) end return \
      {cost,remaining,tostring(-1),tostring(reset_after),}"),
    // Caches: the usual compare and set, and the one of aiocache for Python.
    Script::of_first(1, 2, |keys, call| set_if(keys, &call, [0, 1], None), "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('set',KEYS[1],ARGV[2]) else \
      return 0 end"),
    Script::of_first(1, 3, |keys, call| set_if(keys, &call, [0, 1], Some((b"PX", 2))), "if redis.call('get',KEYS[1]) == ARGV[1] then return \
      redis.call('set',KEYS[1],ARGV[2],'PX',ARGV[3]) else return 0 end"),
    Script::of_first(1, 3, |keys, call| set_if(keys, &call, [0, 1], Some((b"EX", 2))), "if redis.call('get',KEYS[1]) == ARGV[1] then return \
      redis.call('set',KEYS[1],ARGV[2],'EX',ARGV[3]) else return 0 end"),
    Script::of_first(1, 2, |keys, call| set_if(keys, &call, [1, 0], (call.args.len() == 4).then(|| (call.args[2], 3))), "if redis.call('get',KEYS[1]) == ARGV[2] then if \
      #ARGV == 4 then return redis.call('set',KEYS[1],ARGV[1],ARGV[3],ARGV[4]) else return redis.call('set',KEYS[1],ARGV[1]) end else return 0 end"),
    // The manual's addition that takes place once for each token.
    Script::of_first(2, 2, add_once, "local sum = redis.call('get',KEYS[2]) if sum then return tonumber(sum) end sum = redis.call('incrby',KEYS[1],ARGV[1]) \
      redis.call('set',KEYS[2],sum,'EX',ARGV[2]) return sum"),
];

/// A value that a script has read, and its expiry time.
type Found = Option<(Slice, Option<SystemTime>)>;

fn value_of(found: &Found) -> Option<&[u8]> {
    found.as_ref().map(|(value, _)| &**value)
}

/// The result of PTTL.
fn millis_left(keys: &Keyspace, found: &Found) -> i64 {
    found.as_ref().map_or(-2, |(_, expiry)| expiry.map_or(-1, |expiry| remaining_millis(keys, expiry)))
}

/// The results of GET and PTTL.
fn state(keys: &Keyspace, found: Found) -> [Reply; 2] {
    let left = Reply::Integer(millis_left(keys, &found));
    [Reply::value(found.map(|(value, _)| value)), left]
}

/// The expiry time that an option of SET sets.
fn until(keys: &Keyspace, option: &[u8], number: &[u8]) -> Result<SystemTime, Refusal> {
    let mut time = TimeOption::default();
    time.take(option, &mut [number].into_iter(), "")?;
    match time.until(keys, "set")? {
        Some(Until::At(at)) => Ok(at),
        Some(Until::Alone) | None => Err(Refusal::syntax()),
    }
}

/// The expiry time that EXPIRE or PEXPIRE sets; it may be in the past.
fn after(keys: &Keyspace, span: &[u8], unit: Unit) -> Result<SystemTime, Refusal> {
    millis_after(keys, Some(integer(span)?), unit).map(instant)
}

fn limits_fixed(keys: &mut Keyspace, call: Call<'_>) -> Outcome {
    let (found, amount) = (keys.get_with_expiry(call.keys[0])?, integer(call.args[1])?);
    let sum = sum(value_of(&found), amount)?;
    let old = found.and_then(|(_, expiry)| expiry);
    let at = if sum == amount { Some(after(keys, call.args[0], Unit::Seconds)?) } else { old };
    keys.insert_until(call.keys[0], sum.to_string().as_bytes(), at)?;
    Ok(Reply::Integer(sum))
}

/// The previous window and the current one. The current one becomes the previous one when the first half of its lifetime is over.
fn windows(keys: &mut Keyspace, call: &Call<'_>, expiry: f64) -> Result<[Found; 2], Refusal> {
    let (previous, current) = (keys.get_with_expiry(call.keys[0])?, keys.get_with_expiry(call.keys[1])?);
    let left = millis_left(keys, &current) as f64;
    match current {
        Some((count, old)) if left > 0.0 && left < expiry => {
            let at = until(keys, b"PX", (left + expiry).to_string().as_bytes())?;
            keys.insert_until(call.keys[0], &count, old)?;
            keys.insert_until(call.keys[1], b"0", Some(at))?;
            Ok([Some((count, old)), Some((Slice::from(&b"0"[..]), Some(at)))])
        }
        current => Ok([previous, current]),
    }
}

fn limits_state(keys: &mut Keyspace, call: Call<'_>) -> Outcome {
    let windows = windows(keys, &call, float(call.args[0])? * 1000.0)?;
    Ok(Reply::Array(windows.into_iter().flat_map(|window| state(keys, window)).collect()))
}

fn limits_hit(keys: &mut Keyspace, call: Call<'_>) -> Outcome {
    let (limit, expiry, amount) = (float(call.args[0])?, float(call.args[1])? * 1000.0, float(call.args[2])?);
    if amount > limit {
        return Ok(Reply::Null);
    }
    let [previous, current] = windows(keys, &call, expiry)?;
    let count = |found: &Found| value_of(found).and_then(|value| float(value).ok()).unwrap_or(0.0);
    let weighted = (count(&previous) * millis_left(keys, &previous).max(0) as f64 / expiry).floor() + count(&current);
    if weighted + amount > limit {
        return Ok(Reply::Null);
    }
    let added = amount.to_string();
    let (sum, at) = match current {
        Some((count, at)) => (sum(Some(&count), integer(added.as_bytes())?)?.to_string(), at),
        None => (added, Some(until(keys, b"PX", (expiry * 2.0).to_string().as_bytes())?)),
    };
    keys.insert_until(call.keys[1], sum.as_bytes(), at)?;
    Ok(Reply::Integer(1))
}

fn flexible(keys: &mut Keyspace, call: Call<'_>) -> Outcome {
    let (key, at) = (call.keys[0], until(keys, b"EX", call.args[1])?);
    let found = keys.get_with_expiry(key)?;
    let sum = sum(value_of(&found), integer(call.args[0])?)?;
    // A counter that is new or has no expiry time gets this one.
    let at = found.and_then(|(_, expiry)| expiry).unwrap_or(at);
    keys.insert_until(key, sum.to_string().as_bytes(), Some(at))?;
    Ok(Reply::Array(vec![Reply::Integer(sum), Reply::Integer(remaining_millis(keys, at))]))
}

/// Increments a counter that expires, or creates it; with `resets`, the window may begin again.
fn hit(keys: &mut Keyspace, call: &Call<'_>, window: &[u8], resets: bool) -> Outcome {
    let found = keys.get_with_expiry(call.keys[0])?;
    let left = millis_left(keys, &found);
    let (sum, at, left) = match left > 0 {
        false => (1, Some(until(keys, b"PX", window)?), integer(window)?),
        true if resets => (sum(value_of(&found), 1)?, Some(after(keys, window, Unit::Millis)?), integer(window)?),
        true => (sum(value_of(&found), 1)?, found.and_then(|(_, expiry)| expiry), left),
    };
    keys.insert_until(call.keys[0], sum.to_string().as_bytes(), at)?;
    Ok(Reply::Array(vec![Reply::Integer(sum), Reply::Integer(left)]))
}

/// A rate limit by the generic cell rate algorithm. Times are in seconds; `arrival` is the theoretical arrival time, which the key stores.
struct Cells {
    interval: f64,
    burst: f64,
    cost: f64,
    now: f64,
    arrival: f64,
}

impl Cells {
    fn of(keys: &Keyspace, call: &Call<'_>) -> Result<Self, Refusal> {
        /// Times are relative to the beginning of 2017.
        const EPOCH: f64 = 1_483_228_800.0;
        let [burst, rate, period, cost] = [0, 1, 2, 3].map(|place| float(call.args[place]));
        let interval = period? / rate?;
        let now = since_1970(keys.now());
        let now = (now.as_secs() as f64 - EPOCH) + f64::from(now.subsec_micros()) / 1_000_000.0;
        let stored = keys.get(call.keys[0])?.map_or(Ok(now), |arrival| float(&arrival))?;
        Ok(Self { interval, burst: interval * burst?, cost: cost?, now, arrival: stored.max(now) })
    }

    fn refuse(&self, retry_after: f64) -> Outcome {
        Ok(self.reply([0.0, 0.0], [retry_after, self.arrival - self.now]))
    }

    fn allow(&self, keys: &mut Keyspace, key: &[u8], [cost, remaining]: [f64; 2]) -> Outcome {
        let arrival = self.arrival + self.interval * cost;
        let reset_after = arrival - self.now;
        if reset_after > 0.0 {
            let at = until(keys, b"EX", reset_after.ceil().to_string().as_bytes())?;
            keys.insert_until(key, arrival.to_string().as_bytes(), Some(at))?;
        }
        Ok(self.reply([cost, remaining], [-1.0, reset_after]))
    }

    fn reply(&self, counts: [f64; 2], times: [f64; 2]) -> Reply {
        let counts = counts.map(|count| Reply::Integer(count as i64));
        Reply::Array(counts.into_iter().chain(times.map(|time| Reply::text(shown(time)))).collect())
    }
}

fn allow(keys: &mut Keyspace, call: Call<'_>) -> Outcome {
    let cells = Cells::of(keys, &call)?;
    let ahead = cells.now - (cells.arrival + cells.interval * cells.cost - cells.burst);
    let remaining = ahead / cells.interval;
    if remaining < 0.0 {
        return cells.refuse(-ahead);
    }
    cells.allow(keys, call.keys[0], [cells.cost, remaining])
}

fn allow_at_most(keys: &mut Keyspace, call: Call<'_>) -> Outcome {
    let cells = Cells::of(keys, &call)?;
    let ahead = cells.now - (cells.arrival - cells.burst);
    let remaining = ahead / cells.interval;
    if remaining < 1.0 {
        return cells.refuse(cells.interval - ahead);
    }
    let cost = if remaining < cells.cost { remaining } else { cells.cost };
    cells.allow(keys, call.keys[0], [cost, remaining - cost])
}

/// A number in the format of Lua's `tostring`: `%.14g`.
fn shown(number: f64) -> String {
    let scientific = format!("{number:.13e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let trimmed = |digits: &str| digits.trim_end_matches('0').trim_end_matches('.').to_owned();
    match exponent.parse::<i32>() {
        Ok(13) => format!("{number:.0}"),
        Ok(exponent @ -4..13) => trimmed(&format!("{number:.*}", (13 - exponent) as usize)),
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
        }
        Err(_) => scientific,
    }
}

/// Sets a key to the argument at `new` if its value is the argument at `old`; `option`, an option of SET, sets an expiry time.
fn set_if(keys: &mut Keyspace, call: &Call<'_>, [old, new]: [usize; 2], option: Option<(&[u8], usize)>) -> Outcome {
    if !keys.has_value(call.keys[0], call.args[old])? {
        return Ok(Reply::Integer(0));
    }
    let at = option.map(|(word, number)| until(keys, word, call.args[number])).transpose()?;
    keys.insert_until(call.keys[0], call.args[new], at)?;
    Ok(Reply::OK)
}

/// Adds to a counter, unless the token, the second key, exists already: it holds the sum.
fn add_once(keys: &mut Keyspace, call: Call<'_>) -> Outcome {
    let (counter, token) = (call.keys[0], call.keys[1]);
    if let Some(done) = keys.get(token)? {
        return integer(&done).map(Reply::Integer);
    }
    let (found, at) = (keys.get_with_expiry(counter)?, until(keys, b"EX", call.args[1])?);
    let sum = sum(value_of(&found), integer(call.args[0])?)?;
    keys.insert_until(counter, sum.to_string().as_bytes(), found.and_then(|(_, expiry)| expiry))?;
    keys.insert_until(token, sum.to_string().as_bytes(), Some(at))?;
    Ok(Reply::Integer(sum))
}
