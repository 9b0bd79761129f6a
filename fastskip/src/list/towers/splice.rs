//! Where a node belongs at every level it may be linked at: a splice (RocksDB's term), as a search leaves it behind.

use super::finger::Finger;
use super::height::Gap;
use crate::list::schema::Schema;
use crate::node::{Link, MAX_HEIGHT, Predecessor};

/// Where a node belongs at one level: between `node` and what `link` leads to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) node: Predecessor,
    pub(super) shared: u8,
    /// How many nodes of this level stand between the last higher one and the new one: no more than [`Self::MANY`] are
    /// told apart.
    pub(super) moves: u8,
    pub(super) link: Link,
}

impl Step {
    const MANY: u32 = 3;

    const NOWHERE: Self = Self { node: Predecessor::HEAD, shared: 0, moves: 0, link: Link::END };

    /// The step that `finger` ended its walk along a level with.
    #[inline(always)]
    pub(super) fn of<S: Schema>(finger: &Finger<'_, '_, S>, link: Link) -> Self {
        // Neither is cut: a shared prefix is counted up to 255.
        let (shared, moves) = (finger.shared() as u8, finger.moves().min(Self::MANY) as u8);
        Self { node: finger.node(), shared, moves, link }
    }

    /// What the keys of `node` and of the new one share.
    #[inline(always)]
    pub(super) fn shared(&self) -> u32 {
        self.shared.into()
    }
}

/// Where a node belongs at level 0 and those above, as far as the search began.
#[derive(Debug, Clone)]
pub(crate) struct Splice {
    pub(super) steps: [Step; MAX_HEIGHT],
    /// The highest level with a step.
    pub(super) top: usize,
}

impl Splice {
    pub(crate) const fn new() -> Self {
        Self { steps: [Step::NOWHERE; MAX_HEIGHT], top: 0 }
    }

    /// How many levels the node is to be linked at, at most `most`.
    #[inline]
    pub(crate) fn height(&self, coins: u64, most: usize) -> usize {
        let most = most.min(self.top + 1);
        let mut height = 1;
        while height < most && self.gap(height - 1).is_split(coins >> height & 1 == 1) {
            height += 1;
        }
        height
    }

    /// The gap at `level`, between the higher nodes that the step above found.
    #[inline(always)]
    fn gap(&self, level: usize) -> Gap {
        let (here, above) = (&self.steps[level], &self.steps[level + 1]);
        Gap { left: here.moves.into(), right: here.link.to != above.link.to }
    }
}
