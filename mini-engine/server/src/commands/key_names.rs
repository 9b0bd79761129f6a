//! The keys that a request names: their positions in the request, or a range or prefix to which they belong.

use super::words::integer;
use crate::protocol::reply::Refusal;
use crate::protocol::request::Args;

/// The parts of a request that name keys.
#[derive(Clone, Copy)]
pub(super) enum Keys {
    None,
    First,
    Second,
    /// The first two parts.
    Two,
    All,
    /// Every second part: keys and values alternate.
    Pairs,
    /// The second part gives the number of keys, and the keys follow it.
    Counted,
    /// The first two parts are the bounds of a range of keys.
    Bounds,
    /// The first part is a prefix of keys.
    Beginning,
    /// No part: the request may concern any key.
    Any,
}

/// The keys that a request names.
pub(crate) enum Named<'a> {
    Keys(Vec<&'a [u8]>),
    /// The keys from the first bound up to the second one, which is excluded; an empty second bound means no bound.
    Range(&'a [u8], &'a [u8]),
    /// The keys that begin with this prefix.
    Prefix(&'a [u8]),
    /// Any key.
    Any,
}

impl Keys {
    /// First position, last position and step, in the form of the reply to COMMAND.
    pub(super) fn positions(self) -> [i64; 3] {
        match self {
            Self::None | Self::Counted | Self::Bounds | Self::Beginning | Self::Any => [0, 0, 0],
            Self::First => [1, 1, 1],
            Self::Second => [2, 2, 1],
            Self::Two => [1, 2, 1],
            Self::All => [1, -1, 1],
            Self::Pairs => [1, -1, 2],
        }
    }

    /// The keys of a request that has the right number of parts.
    pub(super) fn named<'a>(self, args: Args<'a>) -> Result<Named<'a>, Refusal> {
        let keys = args.from(1);
        Ok(Named::Keys(match self {
            Self::None => Vec::new(),
            Self::First => keys.take(1).collect(),
            Self::Second => keys.skip(1).take(1).collect(),
            Self::Two => keys.take(2).collect(),
            Self::All => keys.collect(),
            Self::Pairs => keys.step_by(2).collect(),
            Self::Counted => counted(args)?.0,
            Self::Bounds => return Ok(Named::Range(args.at(1), args.at(2))),
            Self::Beginning => return Ok(Named::Prefix(args.at(1))),
            Self::Any => return Ok(Named::Any),
        }))
    }
}

/// Parts of a request.
type Parts<'a> = Vec<&'a [u8]>;

/// The keys of a request whose second part gives their number, and the parts after the keys.
pub(super) fn counted(args: Args<'_>) -> Result<(Parts<'_>, Parts<'_>), Refusal> {
    let count = usize::try_from(integer(args.at(2))?);
    let count = count.map_err(|_| Refusal::new("ERR Number of keys can't be negative"))?;
    if count > args.len() - 3 {
        return Err(Refusal::new("ERR Number of keys can't be greater than number of args"));
    }
    Ok((args.from(3).take(count).collect(), args.from(3 + count).collect()))
}
