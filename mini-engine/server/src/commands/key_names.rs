//! The keys that a request names: the positions of keys in it, or what it says of them.

use super::words::integer;
use crate::protocol::reply::Refusal;
use crate::protocol::request::Args;

/// The parts of a request that name keys.
#[derive(Clone, Copy)]
pub(super) enum Keys {
    None,
    First,
    Second,
    /// The first two.
    Two,
    All,
    /// Every other part.
    Pairs,
    /// As many as the second part says, behind it.
    Counted,
    /// The first two are the bounds of a range.
    Bounds,
    /// The first is the beginning of keys.
    Beginning,
    /// None: it may be any key.
    Any,
}

/// The keys that a request names.
pub(crate) enum Named<'a> {
    Keys(Vec<&'a [u8]>),
    /// Those from the first to before the second; an empty end is none.
    Range(&'a [u8], &'a [u8]),
    /// Those that begin so.
    Prefix(&'a [u8]),
    /// It may be any key.
    Any,
}

impl Keys {
    /// First, last and step, as COMMAND gives them.
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

/// The keys of a request whose second part says how many they are, and the parts behind them.
pub(super) fn counted(args: Args<'_>) -> Result<(Parts<'_>, Parts<'_>), Refusal> {
    let count = usize::try_from(integer(args.at(2))?);
    let count = count.map_err(|_| Refusal::new("ERR Number of keys can't be negative"))?;
    if count > args.len() - 3 {
        return Err(Refusal::new("ERR Number of keys can't be greater than number of args"));
    }
    Ok((args.from(3).take(count).collect(), args.from(3 + count).collect()))
}
