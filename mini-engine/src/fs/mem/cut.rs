//! What a power cut draws from, and what it took.

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

/// The generator splitmix64: a sequence that its seed determines.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    /// A number below `limit`, which is not 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// How many of `count` changes take place: often none, often all.
    pub(super) fn reach(&mut self, count: usize) -> usize {
        match self.below(3) {
            0 => 0,
            1 => count,
            _ => self.below(count + 1),
        }
    }
}
