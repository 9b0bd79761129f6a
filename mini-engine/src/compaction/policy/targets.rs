//! Target sizes of levels that are one run each.
//!
//! Sizes are derived from the deepest level upwards, like RocksDB's dynamic level sizes (its wiki, "Leveled Compaction"): the deepest level is as
//! large as the data, and each level above it is smaller by the size ratio. Levels too small to be useful are left out, so level 0 is compacted into
//! the first useful one. There are at most as many obsolete entries as entries above the deepest level, so they stay below one part in (ratio - 1),
//! however large the database is. Sizes derived from the top would allow a deepest level no larger than the level above it, and so twice the space.

use super::{BOTTOM, Context};

/// The targets of one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Targets {
    /// The level into which level 0 is compacted.
    base: usize,
    /// The target bytes of each level; 0 above the base, unlimited at the bottom.
    bytes: [u64; BOTTOM + 1],
}

impl Targets {
    pub(super) fn of(context: &Context<'_>) -> Targets {
        let Context { version, options, .. } = context;
        let batch = (options.level_0_tables() as u64).saturating_mul(options.memtable_bytes as u64);
        let mut targets = Targets { base: BOTTOM, bytes: [0; BOTTOM + 1] };
        targets.bytes[BOTTOM] = u64::MAX;
        // Data that another policy left on higher levels will move down to the deepest.
        let mut target = (1..=BOTTOM).map(|level| version.level_bytes(level)).max().unwrap_or(0);
        // A level smaller than the output of one compaction of level 0 would be rewritten each time and be useless.
        while targets.base > 1 && target > options.level1_bytes && target / options.size_ratio >= batch {
            target /= options.size_ratio;
            targets.base -= 1;
            targets.bytes[targets.base] = target;
        }
        targets
    }

    pub(super) fn bytes(&self, level: usize) -> u64 {
        self.bytes.get(level).copied().unwrap_or(u64::MAX)
    }

    /// The level to which tables of `level` go: the base, or the next level below that, but never past a level that holds tables.
    pub(super) fn below(&self, context: &Context<'_>, level: usize) -> usize {
        let next = self.base.max(level + 1).min(BOTTOM);
        (level + 1..next).find(|&between| !context.version.runs(between).is_empty()).unwrap_or(next)
    }
}
