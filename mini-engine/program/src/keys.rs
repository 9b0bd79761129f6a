//! The keys of a command, as arguments: a prefix, or a range.

use std::ffi::OsString;
use std::ops::Bound;

use clap::Args;
use mini_engine::{Iter, Keyspace};

use crate::bytes::HexArgs;
use crate::failure::Failure;

/// The arguments that select keys by a prefix or by a range.
#[derive(Args)]
pub(crate) struct KeysArgs {
    /// Only keys that begin with this
    #[arg(long, value_name = "KEY", conflicts_with_all = ["from", "to"])]
    prefix: Option<OsString>,
    #[command(flatten)]
    range: RangeArgs,
}

/// The arguments for a range of keys.
#[derive(Args)]
pub(crate) struct RangeArgs {
    /// Only keys from this one on, itself included
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// Only keys before this one
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
}

/// A lower and an upper bound.
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The selected keys, as bytes.
pub(crate) enum Keys {
    Prefix(Vec<u8>),
    Range(Bounds),
}

impl KeysArgs {
    pub(crate) fn parse(&self, hex: &HexArgs) -> Result<Keys, Failure> {
        if let Some(prefix) = &self.prefix {
            return Ok(Keys::Prefix(hex.parse("--prefix", prefix)?));
        }
        Ok(Keys::Range(self.range.parse(hex)?))
    }
}

impl RangeArgs {
    pub(crate) fn parse(&self, hex: &HexArgs) -> Result<Bounds, Failure> {
        let parse = |name, key: &Option<OsString>| key.as_ref().map(|key| hex.parse(name, key)).transpose();
        let (from, to) = (parse("--from", &self.from)?, parse("--to", &self.to)?);
        Ok((from.map_or(Bound::Unbounded, Bound::Included), to.map_or(Bound::Unbounded, Bound::Excluded)))
    }
}

impl Keys {
    /// The records of these keys.
    pub(crate) fn records(self, keyspace: &Keyspace) -> Iter {
        match self {
            Self::Prefix(prefix) => keyspace.prefix(prefix),
            Self::Range(bounds) => keyspace.range(bounds),
        }
    }
}
