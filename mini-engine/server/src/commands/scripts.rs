//! EVAL, EVALSHA and SCRIPT. There is no Lua interpreter: the server recognises, by their tokens, the scripts with which well-known libraries hold
//! locks, and runs an equivalent function. It recognises the scripts of `limiters` in the same way. Other scripts are refused.

use std::collections::BTreeSet;

use super::expiry::{Unit, expire_in, px, remaining_millis};
use super::key_names::counted;
use super::words::{integer, is};
use super::{limiters, lua};
use crate::protocol::reply::{Outcome, Refusal, Reply};
use crate::protocol::request::Args;
use crate::state::context::{Context, KeyContext};
use crate::state::key_state::KeyState;
use crate::state::keyspace::Keyspace;
use crate::state::scripts::{Call, Script};

/// The maximum length of a text that is compared with the known scripts, in bytes.
const LONGEST: usize = 16 << 10;

/// A script that uses all its keys and this number of arguments.
const fn of_all(args: usize, run: fn(&mut Keyspace, Call<'_>) -> Outcome, text: &'static str) -> Script {
    Script { text, uses: (None, args), run }
}

/// A script that uses its first key and this number of arguments.
const fn of_one(args: usize, run: fn(&mut Keyspace, Call<'_>) -> Outcome, text: &'static str) -> Script {
    Script::of_first(1, args, run, text)
}

#[rustfmt::skip]
static KNOWN: &[Script] = &[
    // From the manual of Redis, and libraries that follow it.
    of_one(1, release, "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"),
    of_one(2, extend, "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end"),
    of_one(2, extend_by_seconds, "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('expire',KEYS[1],ARGV[2]) else return 0 end"),
    // redsync for Go: unlock, and extend or lock again; its plain extend is the script above.
    of_one(1, release_or_absent, "local val = redis.call('get',KEYS[1]) if val == ARGV[1] then return redis.call('del',KEYS[1]) \
      elseif val == false then return -1 else return 0 end"),
    of_one(2, extend_or_acquire, "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) \
      elseif redis.call('set',KEYS[1],ARGV[1],'PX',ARGV[2],'NX') then return 1 else return 0 end"),
    // redis-py: release, extend, reacquire.
    of_one(1, release, "local token = redis.call('get',KEYS[1]) if not token or token ~= ARGV[1] then return 0 end redis.call('del',KEYS[1]) return 1"),
    of_one(3, extend_or_add, "local token = redis.call('get',KEYS[1]) if not token or token ~= ARGV[1] then return 0 end local expiration = redis.call('pttl',KEYS[1]) \
      if not expiration then expiration = 0 end if expiration < 0 then return 0 end local newttl = ARGV[2] \
      if ARGV[3] == '0' then newttl = ARGV[2] + expiration end redis.call('pexpire',KEYS[1],newttl) return 1"),
    of_one(2, extend, "local token = redis.call('get',KEYS[1]) if not token or token ~= ARGV[1] then return 0 end \
      redis.call('pexpire',KEYS[1],ARGV[2]) return 1"),
    // redlock for Node: lock, unlock, extend.
    of_all(2, acquire_all, "for i,key in ipairs(KEYS) do if redis.call('exists',key) == 1 then return 0 end end \
      for i,key in ipairs(KEYS) do redis.call('set',key,ARGV[1],'PX',ARGV[2]) end return #KEYS"),
    of_all(1, release, "local count = 0 for i,key in ipairs(KEYS) do if redis.call('get',key) == ARGV[1] then redis.pcall('del',key) count = count + 1 end end \
      return count"),
    of_all(2, renew_all, "for i,key in ipairs(KEYS) do if redis.call('get',key) ~= ARGV[1] then return 0 end end \
      for i,key in ipairs(KEYS) do redis.call('set',key,ARGV[1],'PX',ARGV[2]) end return #KEYS"),
    // redis-semaphore for Node: release and refresh of its mutex.
    of_one(1, release, "local key = KEYS[1] local identifier = ARGV[1] if redis.call('get',key) == identifier then return redis.call('del',key) end return 0"),
    of_one(2, extend, "local key = KEYS[1] local identifier = ARGV[1] local lockTimeout = ARGV[2] local value = redis.call('get',key) \
      if value == identifier then redis.call('pexpire',key,lockTimeout) return 1 end return 0"),
    // redislock for Go: obtain and time to live.
    of_one(3, obtain, "if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[3]) then return redis.status_reply('OK') end local offset = tonumber(ARGV[2]) \
      if redis.call('getrange',KEYS[1],0,offset-1) == string.sub(ARGV[1],1,offset) then \
      return redis.call('set',KEYS[1],ARGV[1],'PX',ARGV[3]) end"),
    of_one(1, time_to_live, "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pttl',KEYS[1]) else return -3 end"),
];

/// Whether this is the text of a script that reads and removes keys, and does nothing else.
pub(super) fn only_removes(text: &[u8]) -> bool {
    let is_known = |known: &&Script| text.len() <= LONGEST && lua::is_same(known.text.as_bytes(), text);
    let adds = |known: &Script| ["'set'", "expire'"].iter().any(|call| known.text.contains(call));
    KNOWN.iter().find(is_known).is_some_and(|known| !adds(known))
}

/// The script with this text, and its hash, by which EVALSHA finds the script from now on.
fn load(state: &mut KeyState, text: &[u8]) -> Result<(&'static Script, String), Refusal> {
    let is_known = |known: &&Script| text.len() <= LONGEST && lua::is_same(known.text.as_bytes(), text);
    let script = KNOWN.iter().chain(limiters::KNOWN).find(is_known);
    let refusal = || Refusal::new("ERR unknown script: only the scripts that the server's manual names are known");
    let script = script.ok_or_else(refusal)?;
    let hash = sha1_smol::Sha1::from(text).digest().to_string();
    state.scripts.keep(&hash, script);
    Ok((script, hash))
}

/// Keeps the script of this text for EVALSHA, if the server recognises it.
pub(crate) fn keep(state: &mut KeyState, text: &[u8]) {
    load(state, text).ok();
}

/// EVAL script numkeys [key ...] [arg ...]
pub(super) fn eval(context: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    let (script, _) = load(context.state, args.at(1))?;
    run(script, keys, &args)
}

/// The text of the script with this hash, if a client has sent it before.
pub(crate) fn text(state: &KeyState, hash: &[u8]) -> Result<&'static str, Refusal> {
    find(state, hash).map(|script| script.text)
}

fn find(state: &KeyState, hash: &[u8]) -> Result<&'static Script, Refusal> {
    state.scripts.find(hash).ok_or_else(|| Refusal::new("NOSCRIPT No matching script. Please use EVAL."))
}

/// EVALSHA hash numkeys [key ...] [arg ...]
pub(super) fn evalsha(context: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    run(find(context.state, args.at(1))?, keys, &args)
}

/// As in Redis, additional keys and arguments that the script does not use are ignored.
fn run(script: &Script, keys: &mut Keyspace, args: &Args<'_>) -> Outcome {
    let (mut names, rest) = counted(*args)?;
    let (used, least) = script.uses;
    if names.len() < used.unwrap_or(0) || rest.len() < least {
        return Err(Refusal::new("ERR the script uses more keys or arguments than it was given"));
    }
    names.truncate(used.unwrap_or(names.len()));
    (script.run)(keys, Call { keys: names, args: rest })
}

/// SCRIPT LOAD text, EXISTS hash ..., FLUSH [ASYNC | SYNC]
pub(super) fn script(context: &mut Context<'_>, _: &mut Keyspace, args: Args<'_>) -> Outcome {
    match args.at(1) {
        word if is(word, "LOAD") => Ok(Reply::text(load(&mut context.shared.keys, args.at(2))?.1)),
        word if is(word, "EXISTS") => {
            let exists = |hash| Reply::Integer(i64::from(context.shared.keys.scripts.find(hash).is_some()));
            Ok(Reply::Array(args.from(2).map(exists).collect()))
        }
        _ if args.len() < 4 => {
            context.shared.keys.scripts.clear();
            Ok(Reply::OK)
        }
        _ => Err(Refusal::syntax()),
    }
}

/// Removes the locks whose value is the token, and returns their number.
fn release(keys: &mut Keyspace, call: Call<'_>) -> Outcome {
    let mut released = 0;
    // A key that is named twice counts once.
    for key in call.keys.into_iter().collect::<BTreeSet<_>>() {
        if keys.has_value(key, call.args[0])? {
            keys.remove(key)?;
            released += 1;
        }
    }
    Ok(Reply::Integer(released))
}

/// Like `release`, for one lock; returns -1 if nobody holds it.
fn release_or_absent(keys: &mut Keyspace, call: Call<'_>) -> Outcome {
    match keys.contains(call.keys[0])? {
        true => release(keys, call),
        false => Ok(Reply::Integer(-1)),
    }
}

/// Sets the expiry time, relative to now, of a lock whose value is the token. Returns 1 on success, otherwise 0.
fn extend(keys: &mut Keyspace, call: Call<'_>) -> Outcome {
    extend_by(keys, &call, Unit::Millis)
}

fn extend_by_seconds(keys: &mut Keyspace, call: Call<'_>) -> Outcome {
    extend_by(keys, &call, Unit::Seconds)
}

fn extend_by(keys: &mut Keyspace, call: &Call<'_>, unit: Unit) -> Outcome {
    if !keys.has_value(call.keys[0], call.args[0])? {
        return Ok(Reply::Integer(0));
    }
    expire_in(keys, call.keys[0], Some(integer(call.args[1])?), unit)
}

/// Like `extend`, but also takes a lock that nobody holds.
fn extend_or_acquire(keys: &mut Keyspace, call: Call<'_>) -> Outcome {
    match keys.contains(call.keys[0])? {
        true => extend(keys, call),
        false => acquire_all(keys, call),
    }
}

/// Extends a lock that has an expiry time: to a time relative to now, or, if the third argument is 0, by adding to the present one.
fn extend_or_add(keys: &mut Keyspace, call: Call<'_>) -> Outcome {
    let key = call.keys[0];
    let Some((token, Some(expiry))) = keys.get_with_expiry(key)? else { return Ok(Reply::Integer(0)) };
    if &*token != call.args[0] {
        return Ok(Reply::Integer(0));
    }
    let added = if call.args[2] == b"0" { remaining_millis(keys, expiry) } else { 0 };
    expire_in(keys, key, integer(call.args[1])?.checked_add(added), Unit::Millis)
}

/// Sets all locks, with their expiry times. Returns the number of locks.
fn set_all(keys: &mut Keyspace, call: &Call<'_>) -> Outcome {
    for key in &call.keys {
        let at = px(keys, call.args[1])?;
        keys.insert_until(key, call.args[0], Some(at))?;
    }
    Ok(Reply::count(call.keys.len()))
}

/// Takes all locks if none of them is held. Returns the number of locks, or 0.
fn acquire_all(keys: &mut Keyspace, call: Call<'_>) -> Outcome {
    for key in &call.keys {
        if keys.contains(key)? {
            return Ok(Reply::Integer(0));
        }
    }
    set_all(keys, &call)
}

/// Renews all locks if the token is the value of each. Returns the number of locks, or 0.
fn renew_all(keys: &mut Keyspace, call: Call<'_>) -> Outcome {
    for key in &call.keys {
        if !keys.has_value(key, call.args[0])? {
            return Ok(Reply::Integer(0));
        }
    }
    set_all(keys, &call)
}

/// Takes a lock that is free, or whose value has the same first bytes as the new value; the second argument gives their number.
fn obtain(keys: &mut Keyspace, call: Call<'_>) -> Outcome {
    let (key, value, at) = (call.keys[0], call.args[0], px(keys, call.args[2])?);
    if let Some(old) = keys.get(key)? {
        let len = usize::try_from(integer(call.args[1])?).unwrap_or(0);
        // If that number is 0, the script compares the whole old value with the empty string.
        if len == 0 || old[..len.min(old.len())] != value[..len.min(value.len())] {
            return Ok(Reply::Null);
        }
    }
    keys.insert_until(key, value, Some(at))?;
    Ok(Reply::OK)
}

/// The remaining milliseconds of a lock whose value is the token; -3 if the lock is not held with it.
fn time_to_live(keys: &mut Keyspace, call: Call<'_>) -> Outcome {
    Ok(Reply::Integer(match keys.get_with_expiry(call.keys[0])? {
        Some((value, expiry)) if &*value == call.args[0] => expiry.map_or(-1, |expiry| remaining_millis(keys, expiry)),
        _ => -3,
    }))
}
