//! [`Versions`]: the versions of the protocol between nodes that a program speaks. The rules for a new one are in `wire/mod.rs`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The versions of this program. Before 5 there was no negotiation, so these are not understood.
pub(crate) const OWN: Versions = Versions { oldest: 5, newest: 5 };

/// A range of versions of the protocol between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The oldest version that is spoken.
    pub oldest: u32,
    /// The newest version.
    pub newest: u32,
}

impl Versions {
    /// The newest version that both sides speak.
    pub(crate) fn common(self, other: Self) -> Option<u32> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }

    /// The reason why two sides without a common version part.
    pub(crate) fn refusal(self, other: Self) -> String {
        format!(
            "no common version of the protocol between nodes: the called node speaks {self}, the calling node {other}; upgrade by way of a \
             release that speaks both, or stop all nodes and start them with the same release"
        )
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.oldest == self.newest {
            true => write!(f, "{}", self.newest),
            false => write!(f, "{} to {}", self.oldest, self.newest),
        }
    }
}
