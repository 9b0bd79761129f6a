//! The numbers of `fastskip/src/tuning.rs`, so small that a handful of nodes reaches every path.

/// Two searches in flight, so that a third one takes the place of the first that ends.
pub(crate) const LANES: usize = 2;

/// Words of a table whose searches are interleaved: the first chunk of a model that asks for as much.
pub(crate) const LARGE_WORDS: u64 = 96;

/// Steps after which a walk looks ahead.
pub(crate) const STEADY_WALK: u32 = 4;

/// Steps after which a walk looks further ahead.
pub(crate) const LONG_WALK: u32 = 6;

/// How stretches are cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) level: usize,
    pub(crate) outer: usize,
    pub(crate) lanes: usize,
}

/// From one node of level 1 to the place.
pub(crate) const NEAR: Shape = Shape { level: 1, outer: 1, lanes: 1 };
/// Two stretches side by side.
pub(crate) const MID: Shape = Shape { level: 1, outer: 2, lanes: 2 };
/// Three stretches, on a higher level.
pub(crate) const FAR: Shape = Shape { level: 2, outer: 2, lanes: 3 };

/// Towers are drawn by coins alone, so that each is known before it is built. How gaps are judged decides how fast a search
/// is and nothing else.
pub(crate) const RAISES_BY_GAPS: bool = false;

/// Levels that a reservation has room for beyond those of its coins.
pub(crate) const SPARE_LEVELS: u32 = 2;

/// Words of the smallest chunk.
pub(crate) const MIN_CHUNK: u64 = 32;

/// Words of the largest chunk.
pub(crate) const MAX_CHUNK: u64 = 256;
