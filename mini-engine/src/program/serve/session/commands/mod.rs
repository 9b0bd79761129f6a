//! The commands: one table, which dispatches requests and answers COMMAND.

mod connection;
mod ordered;
mod server;
mod strings;

pub(super) use self::ordered::Listing;
use super::reply::{Refusal, Reply};
use super::request::Args;
use super::{Run, transaction};

/// What else is to be known of a command. The names are those that COMMAND gives to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flag {
    Write,
    Readonly,
    Fast,
    Admin,
    /// May run before the password was told.
    NoAuth,
    /// Not in a transaction.
    NoMulti,
    /// In a transaction it runs instead of being queued.
    AtOnce,
    /// May be carried out together with its neighbours of a pipeline, if it has no options: reads or writes the value of one key. It
    /// writes last, and then its reply is short: nothing refuses it after that.
    Together,
    /// As `Together`, and does not read.
    Blind,
}

impl Flag {
    fn name(self) -> Option<&'static str> {
        match self {
            Self::Write => Some("write"),
            Self::Readonly => Some("readonly"),
            Self::Fast => Some("fast"),
            Self::Admin => Some("admin"),
            Self::NoAuth => Some("no_auth"),
            Self::NoMulti => Some("no_multi"),
            Self::AtOnce | Self::Together | Self::Blind => None,
        }
    }

    /// The group of commands that the flag puts a command in.
    fn category(self) -> Option<&'static str> {
        match self {
            Self::Write => Some("@write"),
            Self::Readonly => Some("@read"),
            Self::Fast => Some("@fast"),
            Self::Admin => Some("@admin"),
            Self::NoAuth | Self::NoMulti | Self::AtOnce | Self::Together | Self::Blind => None,
        }
    }
}

/// Which parts of a request are keys.
#[derive(Clone, Copy)]
enum Keys {
    None,
    First,
    All,
    /// Every other part.
    Pairs,
}

impl Keys {
    /// First, last and step, as COMMAND gives them.
    fn positions(self) -> [i64; 3] {
        match self {
            Self::None => [0, 0, 0],
            Self::First => [1, 1, 1],
            Self::All => [1, -1, 1],
            Self::Pairs => [1, -1, 2],
        }
    }
}

pub(super) struct Command {
    /// In capitals.
    name: &'static str,
    /// How many parts the request has with the name; negative if that is the least.
    arity: i64,
    flags: &'static [Flag],
    keys: Keys,
    summary: &'static str,
    pub(super) run: Run,
}

impl Command {
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn runs_before_password(&self) -> bool {
        self.flags.contains(&Flag::NoAuth)
    }

    pub(super) fn runs_in_transactions(&self) -> bool {
        !self.flags.contains(&Flag::NoMulti)
    }

    pub(super) fn runs_at_once(&self) -> bool {
        self.flags.contains(&Flag::AtOnce)
    }

    /// Whether it reads its key where it has no options.
    pub(super) fn reads_its_key(&self) -> bool {
        !self.flags.contains(&Flag::Blind)
    }

    fn takes(&self, parts: usize) -> bool {
        if self.arity < 0 { parts >= self.least_parts() } else { parts == self.least_parts() }
    }

    fn least_parts(&self) -> usize {
        self.arity.unsigned_abs() as usize
    }

    /// What COMMAND says of it: name, arity, flags, keys, categories; and no tips, no further places of keys, no subcommands.
    fn info(&self) -> Reply {
        let words = |word: fn(Flag) -> Option<&'static str>| {
            Reply::Array(self.flags.iter().copied().filter_map(word).map(Reply::Simple).collect())
        };
        let [first, last, step] = self.keys.positions().map(Reply::Integer);
        let (name, arity) = (Reply::text(self.name.to_lowercase()), Reply::Integer(self.arity));
        let none = || Reply::Array(Vec::new());
        let (flags, categories) = (words(Flag::name), words(Flag::category));
        Reply::Array(vec![name, arity, flags, first, last, step, categories, none(), none(), none()])
    }

    fn docs(&self) -> (Reply, Reply) {
        let fields = [("summary", self.summary), ("since", env!("CARGO_PKG_VERSION")), ("group", "generic")];
        let fields = fields.map(|(name, text)| (Reply::text(name), Reply::text(text)));
        (Reply::text(self.name.to_lowercase()), Reply::Map(fields.into()))
    }
}

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
        command("COMMAND", -1, &[Fast], None, connection::command, "Describes the commands"),
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

/// The command that a request names, if requests of that kind may be carried out together.
pub(super) fn of_pipelines(args: Args<'_>) -> Option<&'static Command> {
    let command = lookup(args.from(0).next()?)?;
    let may_join = command.flags.iter().any(|flag| matches!(flag, Flag::Together | Flag::Blind));
    (may_join && args.len() == command.least_parts()).then_some(command)
}

/// The command that a request names, if its parts are as many as they have to be.
pub(super) fn find(args: Args<'_>) -> Result<&'static Command, Refusal> {
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

/// Whether `word` is `name`, in letters of either case.
fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}

/// A number among the arguments.
fn integer(text: &[u8]) -> Result<i64, Refusal> {
    super::request::parse_number(text).ok_or_else(|| Refusal::new("ERR value is not an integer or out of range"))
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
