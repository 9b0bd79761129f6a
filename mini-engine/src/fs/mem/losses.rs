//! Losses: the draws of a power cut, and what it took.

use crate::random::Random;

/// What a power cut took of the unsynced changes, for tests that want to know that they have met something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// Changed blocks of which nothing of the newest content is left.
    pub lost_blocks: u64,
    /// Changed blocks of which a part is left.
    pub torn_blocks: u64,
    /// Files of which a changed block is lost or torn, and one behind it is not.
    pub holes: u64,
    /// Files that are shorter than they were.
    pub cut_lengths: u64,
    /// Creations, renames and removals that did not take place.
    pub lost_entries: u64,
    /// Creations, renames and removals that took place although one before them in their directory did not.
    pub reordered_entries: u64,
}

/// How many of `count` changes take place: often none, often all.
pub(super) fn reach(random: &mut Random, count: usize) -> usize {
    match random.below(3) {
        0 => 0,
        1 => count,
        _ => random.index(count + 1),
    }
}
