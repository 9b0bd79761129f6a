//! [`Pace`]: when a group is compacted next.

/// The compactions of a group while its node lacks room; locked while one runs.
#[derive(Debug)]
pub(super) struct Pace {
    /// The number of measures until the next compaction.
    pub(super) left: u32,
    pub(super) pause: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { left: 0, pause: 2 }
    }
}
