//! Heights as a model wants them: drawn by coins alone, so that each tower is known before it is built. How gaps are judged
//! decides how fast a search is and nothing else; the models leave it out.

/// As shipped.
pub(crate) const MAX_HEIGHT: usize = 28;

/// What a search knows of a gap.
#[derive(Debug, Clone, Copy)]
#[expect(dead_code, reason = "the shipped rule reads them")]
pub(crate) struct Gap {
    pub(crate) left: u32,
    pub(crate) right: bool,
}

impl Gap {
    pub(crate) fn is_split(self, coin: bool) -> bool {
        coin
    }
}

/// The coins that `ticket` tosses.
pub(crate) fn coins(seed: u64, ticket: u64) -> u64 {
    mix(seed ^ ticket)
}

/// The height of a node that was raised by these coins.
pub(crate) fn height(coins: u64) -> usize {
    (coins >> 1).trailing_ones() as usize + 1
}

/// Any mixing will do.
pub(crate) const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
