//! The properties of commands: names, arities, flags.

use super::key_names::{Keys, Named};
use super::scripts;
use super::words::{is, shown};
use crate::protocol::reply::{Refusal, Reply};
use crate::protocol::request::Args;
use crate::state::context::Run;

/// The flags of a command. The names are those that the command COMMAND reports to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flag {
    Write,
    Readonly,
    Fast,
    Admin,
    /// May run before the password was sent.
    NoAuth,
    /// Not allowed in a transaction.
    NoMulti,
    /// In a transaction, it is carried out at once instead of being queued.
    AtOnce,
    /// Without options, it may be carried out together with neighbouring requests of a pipeline: it reads or writes the value of one key. Its write
    /// comes last and its reply is then short, so nothing can refuse the request after the write.
    Together,
    /// Like `Together`, but without a read, and possibly with several keys.
    Blind,
    /// Not allowed in a cluster.
    OneNode,
}

impl Flag {
    /// The name of the flag for clients, and the category of commands to which a command with this flag belongs.
    fn names(self) -> [Option<&'static str>; 2] {
        match self {
            Self::Write => [Some("write"), Some("@write")],
            Self::Readonly => [Some("readonly"), Some("@read")],
            Self::Fast => [Some("fast"), Some("@fast")],
            Self::Admin => [Some("admin"), Some("@admin")],
            Self::NoAuth => [Some("no_auth"), None],
            Self::NoMulti => [Some("no_multi"), None],
            Self::AtOnce | Self::Together | Self::Blind | Self::OneNode => [None, None],
        }
    }
}

/// The part of a cluster that carries out a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The node that receives the command: it concerns the connection or the node.
    Node,
    /// The nodes that hold the command's keys.
    Keys,
    /// No part: the command works only on a server of one node.
    OneNode,
}

pub(crate) struct Command {
    /// In capital letters.
    pub(super) name: &'static str,
    /// The number of parts of the request, including the name; a negative number gives the minimum.
    pub(super) arity: i64,
    pub(super) flags: &'static [Flag],
    pub(super) keys: Keys,
    /// The subcommands, if any, each with the number of parts of the whole request, as in `arity`.
    pub(super) subcommands: &'static [(&'static str, i64)],
    pub(super) summary: &'static str,
    pub(crate) run: Run,
    /// The command's index in the table.
    pub(super) place: usize,
}

impl Command {
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The command's index in the table of commands.
    pub(crate) fn place(&self) -> usize {
        self.place
    }

    pub(crate) fn scope(&self) -> Scope {
        match (self.flags.contains(&Flag::OneNode), self.keys) {
            (true, _) => Scope::OneNode,
            (false, Keys::None) => Scope::Node,
            (false, _) => Scope::Keys,
        }
    }

    pub(crate) fn writes(&self) -> bool {
        self.flags.contains(&Flag::Write)
    }

    /// Whether the command may add data: a write that does more than read and remove keys.
    pub(crate) fn grows(&self, args: Args<'_>) -> bool {
        match self.name {
            "DEL" | "DELPREFIX" | "DELRANGE" | "GETDEL" | "UNLINK" => false,
            "EVAL" => !scripts::only_removes(args.at(1)),
            _ => self.writes(),
        }
    }

    /// Whether a request of this length has no options and the command then only writes.
    pub(crate) fn is_blind(&self, parts: usize) -> bool {
        !self.reads_its_key() && self.has_no_options(parts)
    }

    /// Whether a request of this length has the right number of parts and no options.
    pub(super) fn has_no_options(&self, parts: usize) -> bool {
        match self.keys {
            Keys::Pairs => parts >= self.least_parts() && !parts.is_multiple_of(2),
            _ => parts == self.least_parts(),
        }
    }

    /// Whether the command's result depends only on the request and the keys, not on the node's cursors or the scripts that it has received.
    pub(crate) fn follows_from_keys(&self) -> bool {
        !matches!(self.keys, Keys::Any) && self.name != "EVALSHA"
    }

    /// The refusal of a request for this command in a place where the command is not carried out.
    pub(crate) fn misplaced(&self) -> Refusal {
        Refusal::new(format!("ERR {} is not carried out in this place", self.name))
    }

    /// The keys that a request of this command names.
    ///
    /// # Errors
    /// Refuses the request if it does not show how many keys it names.
    pub(crate) fn named<'a>(&self, args: Args<'a>) -> Result<Named<'a>, Refusal> {
        self.keys.named(args)
    }

    pub(crate) fn runs_before_password(&self) -> bool {
        self.flags.contains(&Flag::NoAuth)
    }

    pub(crate) fn runs_in_transactions(&self) -> bool {
        !self.flags.contains(&Flag::NoMulti)
    }

    pub(crate) fn runs_at_once(&self) -> bool {
        self.flags.contains(&Flag::AtOnce)
    }

    /// Whether the command reads its key if it has no options.
    pub(crate) fn reads_its_key(&self) -> bool {
        !self.flags.contains(&Flag::Blind)
    }

    pub(super) const fn with(mut self, subcommands: &'static [(&'static str, i64)]) -> Self {
        self.subcommands = subcommands;
        self
    }

    /// Refuses a request with too few or too many parts, or with an unknown subcommand.
    pub(super) fn check(&self, args: Args<'_>) -> Result<(), Refusal> {
        let takes = |arity: i64| {
            let (parts, least) = (args.len(), arity.unsigned_abs() as usize);
            parts == least || (arity < 0 && parts > least)
        };
        if !takes(self.arity) {
            let name = self.name.to_lowercase();
            return Err(Refusal::new(format!("ERR wrong number of arguments for '{name}' command")));
        }
        let word = args.from(1).next().filter(|_| !self.subcommands.is_empty());
        let is_there = |word| self.subcommands.iter().any(|&(name, arity)| is(word, name) && takes(arity));
        match word.filter(|word| !is_there(word)) {
            None => Ok(()),
            Some(word) => Err(Refusal::new(format!(
                "ERR unknown subcommand or wrong number of arguments for '{}' of {}",
                shown(word),
                self.name
            ))),
        }
    }

    fn least_parts(&self) -> usize {
        self.arity.unsigned_abs() as usize
    }

    /// The command's entry in the reply of COMMAND: name, arity, flags, keys, categories; without tips, further key positions or subcommands.
    pub(super) fn info(&self) -> Reply {
        let words = |which: usize| {
            Reply::Array(self.flags.iter().filter_map(|flag| flag.names()[which]).map(Reply::Simple).collect())
        };
        let [first, last, step] = self.keys.positions().map(Reply::Integer);
        let (name, arity) = (Reply::text(self.name.to_lowercase()), Reply::Integer(self.arity));
        let none = || Reply::Array(Vec::new());
        let (flags, categories) = (words(0), words(1));
        Reply::Array(vec![name, arity, flags, first, last, step, categories, none(), none(), none()])
    }

    pub(super) fn docs(&self) -> (Reply, Reply) {
        let fields = [("summary", self.summary), ("since", env!("CARGO_PKG_VERSION")), ("group", "generic")];
        let fields = fields.map(|(name, text)| (Reply::text(name), Reply::text(text)));
        (Reply::text(self.name.to_lowercase()), Reply::Map(fields.into()))
    }
}
