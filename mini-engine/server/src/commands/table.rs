//! The table of all commands. The server looks requests up in it, and COMMAND describes it. A new command needs a function and a row in this table.

use super::command::{Command, Flag};
use super::expiry::{MILLIS, SECONDS, UNIX_MILLIS, UNIX_SECONDS};
use super::key_names::{Keys, Named};
use super::words::{integer, is, shown};
use super::{client, connection, expiry, info, keys, ordered, scripts, server, strings, transaction};
use crate::protocol::reply::{Outcome, Refusal, Reply};
use crate::protocol::request::Args;
use crate::state::context::{Context, KeyContext, Run};
use crate::state::keyspace::Keyspace;

/// All commands, sorted by name.
#[rustfmt::skip]
static COMMANDS: &[Command] = {
    use Flag::{Admin, AtOnce, Blind, Fast, NoAuth, NoMulti, OneNode, Readonly, Together, Write};
    use Keys::{All, Any, Beginning, Bounds, Counted, First, None, Pairs, Second, Two};
    type OfKeys = fn(&mut KeyContext<'_>, &mut Keyspace, Args<'_>) -> Outcome;
    type OfServer = fn(&mut Context<'_>, &mut Keyspace, Args<'_>) -> Outcome;
    const fn command(
        name: &'static str, arity: i64, flags: &'static [Flag], keys: Keys, run: OfKeys, summary: &'static str,
    ) -> Command {
        Command { name, arity, flags, keys, subcommands: &[], summary, run: Run::Keys(run), place: 0 }
    }
    const fn of_server(
        name: &'static str, arity: i64, flags: &'static [Flag], keys: Keys, run: OfServer, summary: &'static str,
    ) -> Command {
        Command { name, arity, flags, keys, subcommands: &[], summary, run: Run::Server(run), place: 0 }
    }
    &numbered([
        command("APPEND", 3, &[Write, Fast], First, strings::append, "Appends to a value, and returns its length"),
        of_server("ASKING", 1, &[Fast, NoMulti], None, server::cluster, "Is for clusters, where slots do not move"),
        of_server("AUTH", -2, &[NoAuth, Fast], None, connection::auth, "Tells the password"),
        of_server("BGSAVE", -1, &[Admin, NoMulti, OneNode], None, server::bgsave, "Begins to make a checkpoint"),
        of_server("CLIENT", -2, &[Fast], None, client::client, "Names this connection, or tells of all or ends them")
            .with(&[("CACHING", 3), ("GETNAME", 2), ("GETREDIR", 2), ("ID", 2), ("INFO", 2), ("KILL", -3), ("LIST", -2), ("NO-EVICT", 3), ("NO-TOUCH", 3), ("SETINFO", 4), ("SETNAME", 3), ("TRACKING", -3), ("TRACKINGINFO", 2)]),
        of_server("CLUSTER", -2, &[NoMulti], None, server::cluster, "Tells of the nodes of a cluster and their slots"),
        of_server("COMMAND", -1, &[Fast], None, describe, "Describes the commands")
            .with(&[("COUNT", 2), ("DOCS", -2), ("GETKEYS", -3), ("INFO", -2), ("LIST", 2)]),
        of_server("CONFIG", -2, &[Admin], None, server::config, "Shows settings, or lets the counters of INFO begin anew")
            .with(&[("GET", -3), ("RESETSTAT", 2), ("SET", -4)]),
        command("COPY", -3, &[Write], Two, keys::copy, "COPY from to [DB number] [REPLACE]: sets a key to the value of another"),
        command("DBSIZE", 1, &[Readonly], Any, server::dbsize, "Counts the keys, by reading all of them"),
        command("DECR", 2, &[Write, Fast, Together], First, |_, keys, args| strings::add(keys, args.at(1), -1), "Subtracts one from a number"),
        command("DECRBY", 3, &[Write, Fast, Together], First, strings::decrby, "Subtracts from a number"),
        command("DEL", -2, &[Write], All, keys::del, "Removes keys, and returns how many there were"),
        command("DELPREFIX", 2, &[Write, Fast], Beginning, ordered::delprefix, "DELPREFIX prefix: removes the keys that begin with it, in one operation"),
        command("DELRANGE", 3, &[Write, Fast], Bounds, ordered::delrange, "DELRANGE from to: removes the keys of RANGE, in one operation"),
        of_server("DISCARD", 1, &[Fast, AtOnce], None, transaction::discard, "Gives up the transaction"),
        of_server("ECHO", 2, &[Fast], None, connection::echo, "Returns its argument"),
        command("EVAL", -3, &[Write], Counted, scripts::eval, "Does what a well-known script says"),
        command("EVALSHA", -3, &[Write], Counted, scripts::evalsha, "As EVAL, with the hash of a script that was sent before"),
        of_server("EXEC", 1, &[AtOnce], None, transaction::exec, "Carries out the transaction as one batch"),
        command("EXISTS", -2, &[Readonly, Fast], All, keys::exists, "Counts those of the keys that are there"),
        command("EXPIRE", -3, &[Write, Fast], First, |_, keys, args| expiry::expire(keys, args, SECONDS, "expire"), "EXPIRE key seconds [NX | XX | GT | LT]: lets a key expire so long from now"),
        command("EXPIREAT", -3, &[Write, Fast], First, |_, keys, args| expiry::expire(keys, args, UNIX_SECONDS, "expireat"), "Lets a key expire at a time in seconds since 1970"),
        command("EXPIRETIME", 2, &[Readonly, Fast], First, |_, keys, args| expiry::ttl(keys, args, UNIX_SECONDS), "Returns when a key expires, in seconds since 1970"),
        command("FLUSHALL", -1, &[Write, OneNode], None, server::flushall, "Removes all keys of all databases, if the server was started with --allow-flushall"),
        command("FLUSHDB", -1, &[Write, OneNode], None, server::flushdb, "As FLUSHALL, for the selected database"),
        command("GET", 2, &[Readonly, Fast, Together], First, strings::get, "Returns a value"),
        command("GETDEL", 2, &[Write, Fast], First, strings::getdel, "Returns a value and removes its key"),
        command("GETEX", -2, &[Write, Fast], First, expiry::getex, "Returns a value, and sets when it expires"),
        command("GETRANGE", 4, &[Readonly], First, strings::getrange, "Returns a part of a value"),
        command("GETSET", 3, &[Write, Fast], First, strings::getset, "Sets a value, and returns the one before"),
        of_server("HELLO", -1, &[NoAuth, Fast], None, connection::hello, "Chooses the version of the protocol"),
        command("INCR", 2, &[Write, Fast, Together], First, |_, keys, args| strings::add(keys, args.at(1), 1), "Adds one to a number"),
        command("INCRBY", 3, &[Write, Fast, Together], First, |_, keys, args| strings::add(keys, args.at(1), integer(args.at(2))?), "Adds to a number"),
        command("INCRBYFLOAT", 3, &[Write, Fast], First, strings::incrbyfloat, "Adds to a number with a fraction"),
        of_server("INFO", -1, &[Readonly], None, info::info, "Describes the server and the database"),
        command("KEYS", 2, &[Readonly], Any, ordered::keys, "Returns the keys that match a pattern, in order"),
        of_server("LASTSAVE", 1, &[Fast, OneNode], None, server::lastsave, "Tells when the last checkpoint was made"),
        command("MGET", -2, &[Readonly, Fast], All, strings::mget, "Returns several values, of one moment"),
        of_server("MONITOR", 1, &[Admin, NoMulti], None, connection::monitor, "Shows the requests of all clients"),
        command("MOVE", 3, &[Write, Fast, OneNode], First, keys::move_key, "Moves a key to another database"),
        command("MSET", -3, &[Write, Blind], Pairs, strings::mset, "Sets several values as one batch"),
        command("MSETNX", -3, &[Write], Pairs, strings::msetnx, "Sets several values as one batch if none of the keys is there"),
        of_server("MULTI", 1, &[Fast, AtOnce], None, transaction::multi, "Begins a transaction"),
        command("OBJECT", -2, &[Readonly], Second, keys::object, "Returns the encoding of a value, which is raw")
            .with(&[("ENCODING", 3), ("FREQ", 3), ("IDLETIME", 3), ("REFCOUNT", 3)]),
        command("PERSIST", 2, &[Write, Fast], First, expiry::persist, "Lets a key not expire"),
        command("PEXPIRE", -3, &[Write, Fast], First, |_, keys, args| expiry::expire(keys, args, MILLIS, "pexpire"), "As EXPIRE, in milliseconds"),
        command("PEXPIREAT", -3, &[Write, Fast], First, |_, keys, args| expiry::expire(keys, args, UNIX_MILLIS, "pexpireat"), "As EXPIREAT, in milliseconds"),
        command("PEXPIRETIME", 2, &[Readonly, Fast], First, |_, keys, args| expiry::ttl(keys, args, UNIX_MILLIS), "As EXPIRETIME, in milliseconds"),
        of_server("PING", -1, &[Fast], None, connection::ping, "Answers"),
        command("PREFIX", -2, &[Readonly], Beginning, ordered::prefix, "PREFIX prefix [LIMIT n] [REV]: the entries whose keys begin with it"),
        command("PSETEX", 4, &[Write], First, |_, keys, args| expiry::setex(keys, args, MILLIS, "psetex"), "As SETEX, in milliseconds"),
        command("PTTL", 2, &[Readonly, Fast], First, |_, keys, args| expiry::ttl(keys, args, MILLIS), "As TTL, in milliseconds"),
        of_server("QUIT", -1, &[NoAuth, Fast, AtOnce], None, connection::quit, "Ends the connection"),
        command("RANGE", -3, &[Readonly], Bounds, ordered::range, "RANGE from to [LIMIT n] [REV]: the entries from a key to before another; an empty `to` is the end"),
        of_server("READONLY", -1, &[Fast, NoMulti], None, server::cluster, "READONLY [LINEARIZABLE]: lets any node of a cluster answer reads, which may be outdated without the option"),
        of_server("READWRITE", 1, &[Fast, NoMulti], None, server::cluster, "Takes READONLY back"),
        command("RENAME", 3, &[Write], Two, keys::rename, "Gives a value another key"),
        command("RENAMENX", 3, &[Write, Fast], Two, keys::renamenx, "Gives a value another key, if that is not there"),
        of_server("RESET", 1, &[NoAuth, Fast, AtOnce], None, connection::reset, "Makes the connection as new"),
        of_server("SAVE", 1, &[Admin, NoMulti, OneNode], None, server::save, "Makes a checkpoint"),
        command("SCAN", -2, &[Readonly], Any, ordered::scan, "SCAN cursor [MATCH pattern] [COUNT n]: some keys, in order, and the cursor of the next"),
        of_server("SCRIPT", -2, &[], None, scripts::script, "Tells which scripts were sent")
            .with(&[("EXISTS", -3), ("FLUSH", -2), ("LOAD", 3)]),
        of_server("SELECT", 2, &[Fast], None, connection::select, "Selects a database by its number"),
        command("SET", -3, &[Write, Blind], First, strings::set, "SET key value [NX | XX] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]: sets a value"),
        command("SETEX", 4, &[Write], First, |_, keys, args| expiry::setex(keys, args, SECONDS, "setex"), "SETEX key seconds value: sets a value that expires"),
        command("SETNX", 3, &[Write, Fast], First, strings::setnx, "Sets a value if the key is not there"),
        command("SETRANGE", 4, &[Write], First, strings::setrange, "Overwrites a part of a value"),
        of_server("SHUTDOWN", -1, &[Admin, NoMulti, OneNode], None, server::shutdown, "Ends the server, as SIGTERM does"),
        of_server("SLOWLOG", -2, &[Admin], None, server::slowlog, "Returns the requests that took long")
            .with(&[("GET", -2), ("LEN", 2), ("RESET", 2)]),
        command("STRLEN", 2, &[Readonly, Fast, Together], First, strings::strlen, "Returns the length of a value"),
        command("SUBSTR", 4, &[Readonly], First, strings::getrange, "As GETRANGE"),
        of_server("TIME", 1, &[Fast], None, server::time, "Returns seconds and microseconds since 1970"),
        command("TOUCH", -2, &[Readonly, Fast], All, keys::exists, "As EXISTS"),
        command("TTL", 2, &[Readonly, Fast], First, |_, keys, args| expiry::ttl(keys, args, SECONDS), "Returns in how many seconds a key expires; -1 is never, -2 for an absent key"),
        command("TYPE", 2, &[Readonly, Fast], First, keys::kind, "Returns string, or none"),
        command("UNLINK", -2, &[Write, Fast], All, keys::del, "As DEL"),
        of_server("UNWATCH", 1, &[Fast], None, transaction::unwatch, "Lets EXEC no longer depend on keys"),
        of_server("WAIT", 3, &[OneNode], None, server::wait, "Returns the number of replicas, which is 0"),
        of_server("WAITAOF", 4, &[OneNode], None, server::waitaof, "Syncs, and returns 1 and the number of replicas, which is 0"),
        of_server("WATCH", -2, &[Fast, AtOnce], All, transaction::watch, "Lets EXEC fail if one of the keys is changed before it"),
    ])
};

/// Sets the index of each command.
const fn numbered<const N: usize>(mut commands: [Command; N]) -> [Command; N] {
    let mut place = 0;
    while place < N {
        commands[place].place = place;
        place += 1;
    }
    commands
}

/// The names of the commands as numbers: the zero-padded bytes, so that the numbers are in the order of the names.
static NAMES: &[u128] = &{
    let (mut names, mut place) = ([0; COMMANDS.len()], 0);
    while place < names.len() {
        names[place] = number_of(COMMANDS[place].name.as_bytes());
        place += 1;
    }
    names
};

/// The number of a name of at most 16 bytes, in any case.
const fn number_of(name: &[u8]) -> u128 {
    let mut capitals = [0; size_of::<u128>()];
    capitals.split_at_mut(name.len()).0.copy_from_slice(name);
    capitals.make_ascii_uppercase();
    u128::from_be_bytes(capitals)
}

fn lookup(name: &[u8]) -> Option<&'static Command> {
    let number = (name.len() <= size_of::<u128>()).then(|| number_of(name))?;
    COMMANDS.get(NAMES.binary_search(&number).ok()?).filter(|command| command.name.len() == name.len())
}

/// The command that a request names, if requests of this form may be carried out together.
pub(crate) fn of_pipelines(args: Args<'_>) -> Option<&'static Command> {
    let command = lookup(args.from(0).next()?)?;
    let may_join = command.flags.iter().any(|flag| matches!(flag, Flag::Together | Flag::Blind));
    (may_join && command.has_no_options(args.len())).then_some(command)
}

/// The command that a request names, if the request has the right number of parts and no unknown subcommand.
pub(crate) fn find(args: Args<'_>) -> Result<&'static Command, Refusal> {
    let name = args.from(0).next().unwrap_or_default();
    let Some(command) = lookup(name) else {
        return Err(Refusal::new(format!("ERR unknown command '{}'", shown(name))));
    };
    command.check(args).map(|()| command)
}

/// All commands that write.
#[cfg(test)]
pub(crate) fn writing() -> impl Iterator<Item = &'static Command> {
    COMMANDS.iter().filter(|command| command.writes())
}

/// COMMAND: describes the table.
fn describe(_: &mut Context<'_>, _: &mut Keyspace, args: Args<'_>) -> Outcome {
    if args.len() == 1 {
        return Ok(Reply::Array(COMMANDS.iter().map(|command| command.info()).collect()));
    }
    let (word, names) = (args.at(1), args.from(2));
    if is(word, "COUNT") {
        return Ok(Reply::count(COMMANDS.len()));
    }
    if is(word, "LIST") {
        return Ok(Reply::Array(COMMANDS.iter().map(|command| Reply::text(command.name.to_lowercase())).collect()));
    }
    if is(word, "GETKEYS") {
        return keys_of(args.behind(2));
    }
    let is_all = names.len() == 0;
    if is(word, "INFO") {
        let named = names.map(|name| lookup(name).map_or(Reply::Null, |command| command.info()));
        let all = COMMANDS.iter().filter(|_| is_all).map(|command| command.info());
        return Ok(Reply::Array(named.chain(all).collect()));
    }
    let named = names.filter_map(lookup).map(|command| command.docs());
    let all = COMMANDS.iter().filter(|_| is_all).map(|command| command.docs());
    Ok(Reply::Map(named.chain(all).collect()))
}

/// The keys that a request names, for COMMAND GETKEYS.
fn keys_of(request: Args<'_>) -> Outcome {
    let command = lookup(request.at(0)).ok_or_else(|| Refusal::new("ERR Invalid command specified"))?;
    if matches!(command.keys, Keys::None | Keys::Bounds | Keys::Beginning | Keys::Any) {
        return Err(Refusal::new("ERR The command has no key arguments"));
    }
    let invalid = |_| Refusal::new("ERR Invalid number of arguments specified for command");
    command.check(request).map_err(invalid)?;
    let keys = match command.named(request) {
        Ok(Named::Keys(keys)) => keys,
        // As in Redis, a wrong number of keys gives no keys.
        _ => Vec::new(),
    };
    Ok(Reply::Array(keys.into_iter().map(|key| Reply::Bulk(key.into())).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_every_command_is_found_by_its_name() {
        // Catches a command that the binary search does not find, and a name that is too long for the lookup or ends with its padding.
        for command in COMMANDS {
            let found = lookup(command.name.to_lowercase().as_bytes()).expect(command.name);
            assert_eq!(found.name, command.name);
        }
        assert!(COMMANDS.is_sorted_by_key(|command| command.name));
        for name in [&b""[..], b"GE", b"GET\0", &[b'A'; 100]] {
            assert!(lookup(name).is_none(), "{}", name.escape_ascii());
        }
    }
}
