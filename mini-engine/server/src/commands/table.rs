//! The table of all commands. Requests are looked up in it, and it answers COMMAND. A new command is a function and a row here.

use super::command::{Command, Flag, Keys};
use super::connection::unknown_subcommand;
use super::words::is;
use super::{connection, ordered, server, strings, transaction};
use crate::protocol::reply::{Refusal, Reply};
use crate::protocol::request::Args;
use crate::state::context::{Context, Run};
use crate::state::keyspace::Keyspace;

/// All commands, sorted by name.
#[rustfmt::skip]
static COMMANDS: &[Command] = {
    use Flag::{Admin, AtOnce, Blind, Fast, NoAuth, NoMulti, Readonly, Together, Write};
    use Keys::{All, First, None, Pairs};
    const fn command(
        name: &'static str, arity: i64, flags: &'static [Flag], keys: Keys, run: Run, summary: &'static str,
    ) -> Command {
        Command { name, arity, flags, keys, summary, run }
    }
    &[
        command("APPEND", 3, &[Write, Fast], First, strings::append, "Appends to a value, and returns its length"),
        command("AUTH", -2, &[NoAuth, Fast, NoMulti], None, connection::auth, "Tells the password"),
        command("BGSAVE", -1, &[Admin, NoMulti], None, server::bgsave, "Begins to make a checkpoint"),
        command("CLIENT", -2, &[Fast], None, connection::client, "Names this connection, or tells of it"),
        command("COMMAND", -1, &[Fast], None, describe, "Describes the commands"),
        command("CONFIG", -2, &[Admin], None, server::config, "Shows settings"),
        command("DBSIZE", 1, &[Readonly], None, server::dbsize, "Counts the keys, by reading all of them"),
        command("DECR", 2, &[Write, Fast, Together], First, strings::decr, "Subtracts one from a number"),
        command("DECRBY", 3, &[Write, Fast, Together], First, strings::decrby, "Subtracts from a number"),
        command("DEL", -2, &[Write], All, strings::del, "Removes keys, and returns how many there were"),
        command("DISCARD", 1, &[Fast, AtOnce], None, transaction::discard, "Gives up the transaction"),
        command("ECHO", 2, &[Fast], None, connection::echo, "Returns its argument"),
        command("EXEC", 1, &[AtOnce], None, transaction::exec, "Carries out the transaction as one batch"),
        command("EXISTS", -2, &[Readonly, Fast], All, strings::exists, "Counts those of the keys that are there"),
        command("FLUSHALL", -1, &[Write, NoMulti], None, server::flushall, "Removes all keys, if the server was started with --allow-flushall"),
        command("FLUSHDB", -1, &[Write, NoMulti], None, server::flushall, "As FLUSHALL: there is one database"),
        command("GET", 2, &[Readonly, Fast, Together], First, strings::get, "Returns a value"),
        command("GETDEL", 2, &[Write, Fast], First, strings::getdel, "Returns a value and removes its key"),
        command("GETRANGE", 4, &[Readonly], First, strings::getrange, "Returns a part of a value"),
        command("GETSET", 3, &[Write, Fast], First, strings::getset, "Sets a value, and returns the one before"),
        command("HELLO", -1, &[NoAuth, Fast, NoMulti], None, connection::hello, "Chooses the version of the protocol"),
        command("INCR", 2, &[Write, Fast, Together], First, strings::incr, "Adds one to a number"),
        command("INCRBY", 3, &[Write, Fast, Together], First, strings::incrby, "Adds to a number"),
        command("INFO", -1, &[Readonly], None, server::info, "Describes the server and the database"),
        command("LASTSAVE", 1, &[Fast], None, server::lastsave, "Tells when the last checkpoint was made"),
        command("MGET", -2, &[Readonly, Fast], All, strings::mget, "Returns several values, of one moment"),
        command("MSET", -3, &[Write], Pairs, strings::mset, "Sets several values as one batch"),
        command("MSETNX", -3, &[Write], Pairs, strings::msetnx, "Sets several values as one batch if none of the keys is there"),
        command("MULTI", 1, &[Fast, AtOnce], None, transaction::multi, "Begins a transaction"),
        command("PING", -1, &[Fast], None, connection::ping, "Answers"),
        command("PREFIX", -2, &[Readonly], None, ordered::prefix, "PREFIX prefix [LIMIT n] [REV]: the entries whose keys begin with it"),
        command("QUIT", -1, &[NoAuth, Fast, AtOnce], None, connection::quit, "Ends the connection"),
        command("RANGE", -3, &[Readonly], None, ordered::range, "RANGE from to [LIMIT n] [REV]: the entries from a key to before another; an empty `to` is the end"),
        command("RESET", 1, &[NoAuth, Fast, AtOnce], None, connection::reset, "Makes the connection as new"),
        command("SAVE", 1, &[Admin, NoMulti], None, server::save, "Makes a checkpoint"),
        command("SCAN", -2, &[Readonly], None, ordered::scan, "SCAN cursor [MATCH pattern] [COUNT n]: some keys, in order, and the cursor of the next"),
        command("SELECT", 2, &[Fast], None, connection::select, "Chooses database 0, the only one"),
        command("SET", -3, &[Write, Blind], First, strings::set, "SET key value [NX | XX] [GET]: sets a value"),
        command("SETNX", 3, &[Write, Fast], First, strings::setnx, "Sets a value if the key is not there"),
        command("SHUTDOWN", -1, &[Admin, NoMulti], None, server::shutdown, "Ends the server, as SIGTERM does"),
        command("STRLEN", 2, &[Readonly, Fast, Together], First, strings::strlen, "Returns the length of a value"),
        command("TIME", 1, &[Fast], None, server::time, "Returns seconds and microseconds since 1970"),
        command("TYPE", 2, &[Readonly, Fast], First, strings::kind, "Returns string, or none"),
        command("UNLINK", -2, &[Write, Fast], All, strings::del, "As DEL"),
        command("WAIT", 3, &[], None, server::wait, "Returns the number of replicas, which is 0"),
        command("WAITAOF", 4, &[], None, server::waitaof, "Syncs, and returns 1 and the number of replicas, which is 0"),
    ]
};

/// The longest name of a command, in bytes.
const LONGEST_NAME: usize = 16;

fn lookup(name: &[u8]) -> Option<&'static Command> {
    let mut capitals = [0; LONGEST_NAME];
    let capitals = capitals.get_mut(..name.len())?;
    capitals.copy_from_slice(name);
    capitals.make_ascii_uppercase();
    let place = COMMANDS.binary_search_by(|command| command.name.as_bytes().cmp(capitals)).ok()?;
    COMMANDS.get(place)
}

/// The command that a request names, if such requests may be carried out together.
pub(crate) fn of_pipelines(args: Args<'_>) -> Option<&'static Command> {
    let command = lookup(args.from(0).next()?)?;
    let may_join = command.flags.iter().any(|flag| matches!(flag, Flag::Together | Flag::Blind));
    (may_join && args.len() == command.least_parts()).then_some(command)
}

/// The command that a request names, if the request has the right number of parts.
pub(crate) fn find(args: Args<'_>) -> Result<&'static Command, Refusal> {
    let name = args.at(0);
    let Some(command) = lookup(name) else {
        let shown = name[..name.len().min(128)].escape_ascii();
        return Err(Refusal::new(format!("ERR unknown command '{shown}'")));
    };
    if !command.takes(args.len()) {
        let name = command.name.to_lowercase();
        return Err(Refusal::new(format!("ERR wrong number of arguments for '{name}' command")));
    }
    Ok(command)
}

/// COMMAND: the table itself.
fn describe(_: &mut Context<'_>, _: &mut Keyspace<'_>, args: Args<'_>) -> Result<Reply, Refusal> {
    if args.len() == 1 {
        return Ok(Reply::Array(COMMANDS.iter().map(|command| command.info()).collect()));
    }
    let (word, names) = (args.at(1), args.from(2));
    if is(word, "COUNT") && names.len() == 0 {
        return Ok(Reply::count(COMMANDS.len()));
    }
    if is(word, "LIST") && names.len() == 0 {
        return Ok(Reply::Array(COMMANDS.iter().map(|command| Reply::text(command.name.to_lowercase())).collect()));
    }
    let is_all = names.len() == 0;
    if is(word, "INFO") {
        let named = names.map(|name| lookup(name).map_or(Reply::Null, |command| command.info()));
        let all = COMMANDS.iter().filter(|_| is_all).map(|command| command.info());
        return Ok(Reply::Array(named.chain(all).collect()));
    }
    if is(word, "DOCS") {
        let named = names.filter_map(lookup).map(|command| command.docs());
        let all = COMMANDS.iter().filter(|_| is_all).map(|command| command.docs());
        return Ok(Reply::Map(named.chain(all).collect()));
    }
    Err(unknown_subcommand(word, "COMMAND"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_every_command_is_found_by_its_name() {
        // Catches a command that a binary search does not find, and a name too long for the lookup.
        for command in COMMANDS {
            let found = lookup(command.name.to_lowercase().as_bytes()).expect(command.name);
            assert_eq!(found.name, command.name);
        }
        assert!(COMMANDS.is_sorted_by_key(|command| command.name));
        assert!(lookup(b"").is_none() && lookup(b"GE").is_none() && lookup(&[b'A'; 100]).is_none());
    }
}
