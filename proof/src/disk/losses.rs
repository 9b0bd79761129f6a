//! Losses: the random choices of a power cut, and the changes that it discarded.

use proof::Random;

/// The unsynced changes that a power cut discarded, for tests that check that they cover such losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// Changed blocks without any part of the newest content.
    pub lost_blocks: u64,
    /// Changed blocks with a part of the newest content.
    pub torn_blocks: u64,
    /// Files in which a changed block is lost or torn, but a later one is not.
    pub holes: u64,
    /// Files that became shorter.
    pub cut_lengths: u64,
    /// Creations, renames and removals that did not survive.
    pub lost_entries: u64,
    /// Creations, renames and removals that survived although an earlier one in their directory did not.
    pub reordered_entries: u64,
}

/// Draws the number of changes, of `count`, that survive: often none, often all.
pub(super) fn reach(random: &mut Random, count: usize) -> usize {
    match random.below(3) {
        0 => 0,
        1 => count,
        _ => random.index(count + 1),
    }
}
