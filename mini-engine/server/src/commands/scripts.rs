//! EVAL, EVALSHA and SCRIPT. There is no Lua: the scripts with which well-known libraries hold their locks are recognised by their texts, and functions
//! do what they say. Other scripts are refused.
//!
//! Comments, spaces and the kind of quotes make no difference, since versions of a library differ in them.

use super::expiry::{in_millis, remaining_millis};
use super::key_names::counted;
use super::words::{integer, is, unknown_subcommand};
use crate::protocol::reply::{Refusal, Reply};
use crate::protocol::request::Args;
use crate::state::context::Context;
use crate::state::keyspace::Keyspace;
use crate::state::scripts::{Call, Script};
use crate::state::shared::Shared;

type Answer = Result<Reply, Refusal>;

const fn script_of(text: &'static str, keys: usize, args: usize, run: fn(&mut Keyspace, Call<'_>) -> Answer) -> Script {
    Script { text, uses: (keys, args), run }
}

/// The scripts, in the spelling of `plain`, with the numbers of keys and of arguments that they use.
#[rustfmt::skip]
static KNOWN: &[Script] = &[
    // The manual of Redis, and libraries that follow it.
    script_of("if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end", 1, 1, release),
    script_of("if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end", 1, 2, extend),
    script_of("if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('expire',KEYS[1],ARGV[2]) else return 0 end", 1, 2, extend_by_seconds),
    // redis-py: release, extend, reacquire.
    script_of("local token = redis.call('get',KEYS[1]) if not token or token ~= ARGV[1] then return 0 end redis.call('del',KEYS[1]) return 1", 1, 1, release),
    script_of("local token = redis.call('get',KEYS[1]) if not token or token ~= ARGV[1] then return 0 end local expiration = redis.call('pttl',KEYS[1]) \
      if not expiration then expiration = 0 end if expiration < 0 then return 0 end local newttl = ARGV[2] \
      if ARGV[3] == '0' then newttl = ARGV[2] + expiration end redis.call('pexpire',KEYS[1],newttl) return 1", 1, 3, extend_or_add),
    script_of("local token = redis.call('get',KEYS[1]) if not token or token ~= ARGV[1] then return 0 end \
      redis.call('pexpire',KEYS[1],ARGV[2]) return 1", 1, 2, extend),
    // redlock for Node: lock, unlock, extend.
    script_of("for i,key in ipairs(KEYS) do if redis.call('exists',key) == 1 then return 0 end end \
      for i,key in ipairs(KEYS) do redis.call('set',key,ARGV[1],'PX',ARGV[2]) end return #KEYS", 0, 2, acquire_all),
    script_of("local count = 0 for i,key in ipairs(KEYS) do if redis.call('get',key) == ARGV[1] then redis.pcall('del',key) count = count + 1 end end \
      return count", 0, 1, release),
    script_of("for i,key in ipairs(KEYS) do if redis.call('get',key) ~= ARGV[1] then return 0 end end \
      for i,key in ipairs(KEYS) do redis.call('set',key,ARGV[1],'PX',ARGV[2]) end return #KEYS", 0, 2, extend),
    // redis-semaphore for Node: release and refresh of its mutex.
    script_of("local key = KEYS[1] local identifier = ARGV[1] if redis.call('get',key) == identifier then return redis.call('del',key) end return 0",
      1, 1, release),
    script_of("local key = KEYS[1] local identifier = ARGV[1] local lockTimeout = ARGV[2] local value = redis.call('get',key) \
      if value == identifier then redis.call('pexpire',key,lockTimeout) return 1 end return 0", 1, 2, extend),
    // redislock for Go: obtain and time to live.
    script_of("if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[3]) then return redis.status_reply('OK') end local offset = tonumber(ARGV[2]) \
      if redis.call('getrange',KEYS[1],0,offset-1) == string.sub(ARGV[1],1,offset) then \
      return redis.call('set',KEYS[1],ARGV[1],'PX',ARGV[3]) end", 1, 3, obtain),
    script_of("if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pttl',KEYS[1]) else return -3 end", 1, 1, time_to_live),
];

/// The text without comments, in single spaces and quotes, and without spaces after commas.
fn plain(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text).replace('"', "'");
    let words = text.lines().flat_map(|line| line.split("--").next().unwrap_or_default().split_ascii_whitespace());
    words.collect::<Vec<_>>().join(" ").replace(", ", ",")
}

/// The script of a text, which EVALSHA finds from now on; and its hash.
fn load(context: &mut Context<'_>, text: &[u8]) -> Result<(&'static Script, String), Refusal> {
    let plain = plain(text);
    let script = KNOWN.iter().find(|known| known.text == plain).ok_or_else(|| {
        Refusal::new("ERR unknown script: there is no Lua, and only the scripts of locks that the server's manual names are known")
    })?;
    let hash = sha1_smol::Sha1::from(text).digest().to_string();
    context.shared.scripts.keep(&hash, script);
    Ok((script, hash))
}

/// EVAL script numkeys [key ...] [arg ...]
pub(super) fn eval(context: &mut Context<'_>, keys: &mut Keyspace, args: Args<'_>) -> Answer {
    let (script, _) = load(context, args.at(1))?;
    run(script, keys, &args)
}

/// The text of the script with this hash, if it was sent before.
pub(crate) fn text(shared: &Shared, hash: &[u8]) -> Result<&'static str, Refusal> {
    find(shared, hash).map(|script| script.text)
}

fn find(shared: &Shared, hash: &[u8]) -> Result<&'static Script, Refusal> {
    shared.scripts.find(hash).ok_or_else(|| Refusal::new("NOSCRIPT No matching script. Please use EVAL."))
}

/// EVALSHA hash numkeys [key ...] [arg ...]
pub(super) fn evalsha(context: &mut Context<'_>, keys: &mut Keyspace, args: Args<'_>) -> Answer {
    run(find(context.shared, args.at(1))?, keys, &args)
}

fn run(script: &Script, keys: &mut Keyspace, args: &Args<'_>) -> Answer {
    let (names, rest) = counted(*args)?;
    let call = Call { keys: names, args: rest };
    if call.keys.len() < script.uses.0 || call.args.len() < script.uses.1 {
        return Err(Refusal::new("ERR the script uses more keys or arguments than it was given"));
    }
    (script.run)(keys, call)
}

/// SCRIPT LOAD text, EXISTS hash ..., FLUSH [ASYNC | SYNC]
pub(super) fn script(context: &mut Context<'_>, _: &mut Keyspace, args: Args<'_>) -> Answer {
    let word = args.at(1);
    match args.len() {
        3 if is(word, "LOAD") => Ok(Reply::text(load(context, args.at(2))?.1)),
        3.. if is(word, "EXISTS") => {
            let exists = |hash| Reply::Integer(i64::from(context.shared.scripts.find(hash).is_some()));
            Ok(Reply::Array(args.from(2).map(exists).collect()))
        }
        2 | 3 if is(word, "FLUSH") => {
            context.shared.scripts.clear();
            Ok(Reply::OK)
        }
        _ => Err(unknown_subcommand(word, "SCRIPT")),
    }
}

/// Whether the lock `key` is held with this token.
fn is_held(keys: &Keyspace, key: &[u8], token: &[u8]) -> Result<bool, Refusal> {
    Ok(keys.get(key)?.is_some_and(|value| &*value == token))
}

/// Holds the lock `key` for so many milliseconds from now; for none, it is removed.
fn hold(keys: &mut Keyspace, key: &[u8], token: &[u8], millis: i64) -> Result<(), Refusal> {
    match in_millis(keys, millis) {
        Some(at) => keys.insert_until(key, token, Some(at))?,
        None => keys.remove(key)?,
    }
    Ok(())
}

/// Removes the locks that are held with the token, and returns their number.
fn release(keys: &mut Keyspace, call: Call<'_>) -> Answer {
    let mut released = 0;
    for key in call.keys {
        if is_held(keys, key, call.args[0])? {
            keys.remove(key)?;
            released += 1;
        }
    }
    Ok(Reply::Integer(released))
}

/// Holds the locks for so long from now, if all are held with the token. Returns their number, or 0.
fn extend(keys: &mut Keyspace, call: Call<'_>) -> Answer {
    extend_by(keys, &call, integer(call.args[1])?)
}

fn extend_by_seconds(keys: &mut Keyspace, call: Call<'_>) -> Answer {
    extend_by(keys, &call, integer(call.args[1])?.saturating_mul(1000))
}

fn extend_by(keys: &mut Keyspace, call: &Call<'_>, millis: i64) -> Answer {
    for key in &call.keys {
        if !is_held(keys, key, call.args[0])? {
            return Ok(Reply::Integer(0));
        }
    }
    for key in &call.keys {
        hold(keys, key, call.args[0], millis)?;
    }
    Ok(Reply::count(call.keys.len()))
}

/// Extends a lock that expires: to a time from now, or by a time if the third argument is 0.
fn extend_or_add(keys: &mut Keyspace, call: Call<'_>) -> Answer {
    let Some((_, Some(expiry))) = keys.get_with_expiry(call.keys[0])? else { return Ok(Reply::Integer(0)) };
    let added = if call.args[2] == b"0" { remaining_millis(keys, expiry) } else { 0 };
    extend_by(keys, &call, integer(call.args[1])?.saturating_add(added))
}

/// Takes all locks if none is taken. Returns their number, or 0.
fn acquire_all(keys: &mut Keyspace, call: Call<'_>) -> Answer {
    let millis = integer(call.args[1])?;
    for key in &call.keys {
        if keys.contains(key)? {
            return Ok(Reply::Integer(0));
        }
    }
    for key in &call.keys {
        hold(keys, key, call.args[0], millis)?;
    }
    Ok(Reply::count(call.keys.len()))
}

/// Takes a lock that is free, or whose value begins with the same bytes as the new one: as many as the second argument says.
fn obtain(keys: &mut Keyspace, call: Call<'_>) -> Answer {
    let (key, value, millis) = (call.keys[0], call.args[0], integer(call.args[2])?);
    let len = usize::try_from(integer(call.args[1])?).unwrap_or(0);
    let token = |value: &[u8]| value[..len.min(value.len())].to_vec();
    if keys.get(key)?.is_some_and(|old| token(&old) != token(value)) {
        return Ok(Reply::Null);
    }
    hold(keys, key, value, millis)?;
    Ok(Reply::OK)
}

/// The milliseconds for which a lock is still held with the token; -3 if it is not.
fn time_to_live(keys: &mut Keyspace, call: Call<'_>) -> Answer {
    Ok(Reply::Integer(match keys.get_with_expiry(call.keys[0])? {
        Some((value, expiry)) if &*value == call.args[0] => expiry.map_or(-1, |expiry| remaining_millis(keys, expiry)),
        _ => -3,
    }))
}
