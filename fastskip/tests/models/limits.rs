//! A table's settings, the writes that its limits allow, and the rules that its statistics must follow.

use fastskip::{BuildTable, Builder, InsertError, MAX_KEY_LEN, Stats};

use super::input::Input;

/// The length of a value that fits into no table with a memory limit.
const TOO_LARGE: usize = 2 << 20;

/// The most bytes that an entry takes besides key and value: the link and two more words, lengths, a tag, padding.
const OVERHEAD: usize = (1 + 2) * 8 + 11 + 7;

/// The bytes that a batch reserves for the index, for each entry but one.
const INDEX: usize = 4 * 8;

/// A value of [`TOO_LARGE`] bytes. Static, because most of the run time would go into filling a new one each time.
pub(crate) fn too_large() -> &'static [u8] {
    static ZEROS: [u8; TOO_LARGE] = [0; TOO_LARGE];
    &ZEROS
}

/// Lengths of an entry's key and value.
pub(crate) type Size = (usize, usize);

/// The limits of a table (0 for none), and the facts known about them.
#[derive(Debug, Clone)]
pub(crate) struct TableLimits {
    shards: usize,
    chunk_bytes: usize,
    pub(crate) memory: usize,
    entries: usize,
    backpressure_at: f64,
    /// Back-pressure was seen; from then on it must stay.
    pressed: bool,
    /// The most bytes by which a single write can have exceeded the limit.
    excess: usize,
}

impl TableLimits {
    pub(crate) fn choose(input: &mut Input<'_>) -> Self {
        Self {
            shards: input.choose(&[1, 2, 8]),
            chunk_bytes: input.choose(&[0, 256, 4096]),
            memory: input.choose(&[0, 0, 256, 1000, 4096]),
            entries: input.choose(&[0, 0, 1, 7, 40]),
            backpressure_at: input.choose(&[0.9, 0.0, 0.5, 1.0]),
            pressed: false,
            excess: 0,
        }
    }

    /// A table with these limits.
    pub(crate) fn table<T: BuildTable>(&self, builder: Builder<T>) -> T {
        builder
            .shards(self.shards)
            .arena_bytes_per_shard(self.chunk_bytes)
            .max_memory_bytes(self.memory)
            .max_entries(self.entries)
            .backpressure_at(self.backpressure_at)
            .huge_pages(false)
            .build()
    }

    /// Notes that the table is empty and open again, or that another table with the same limits takes its place.
    pub(crate) fn renew(&mut self) {
        (self.pressed, self.excess) = (false, 0);
    }

    /// Whether the table accepts no write at all, not even a deletion. A dropped reservation returns room and so opens the table again.
    pub(crate) fn is_full(&self, stats: &Stats) -> bool {
        self.is_spent(stats) || (self.entries > 0 && stats.entries >= self.entries)
    }

    fn is_spent(&self, stats: &Stats) -> bool {
        self.memory > 0 && stats.memory_usage >= self.memory.next_multiple_of(8)
    }

    /// The expected refusal of a write of new entries, as far as it can be predicted: the memory that they take is unknown.
    pub(crate) fn foretell(&self, stats: &Stats, sizes: &[Size]) -> Result<(), InsertError> {
        self.foretell_new(stats, sizes, sizes.len())
    }

    /// As [`foretell`](Self::foretell), for a write in which only `new` entries are new; the others replace existing entries.
    pub(crate) fn foretell_new(&self, stats: &Stats, sizes: &[Size], new: usize) -> Result<(), InsertError> {
        if sizes.iter().any(|(key, _)| *key > MAX_KEY_LEN) {
            return Err(InsertError::TooLarge);
        }
        if sizes.is_empty() {
            return Ok(());
        }
        let too_large = self.memory > 0 && sizes.iter().any(|(_, value)| *value >= TOO_LARGE);
        if too_large || (self.entries > 0 && new > self.entries) {
            return Err(InsertError::TooLarge);
        }
        if self.is_spent(stats) || (self.entries > 0 && stats.entries + new > self.entries) {
            return Err(InsertError::Full);
        }
        Ok(())
    }

    /// Compares the result of a write with the expected one. If memory is limited, the write may have been refused instead, provided that the
    /// statistics confirm the lack of memory.
    pub(crate) fn judge(
        &mut self,
        foretold: Result<(), InsertError>,
        found: Result<(), InsertError>,
        stats: &Stats,
        sizes: &[Size],
    ) {
        // Only the last entry of a batch may exceed the limit.
        let before_last = sizes.split_last().map_or(&[][..], |(_, others)| others);
        let bytes: usize = before_last.iter().map(|(key, value)| key + value).sum();
        let index = before_last.len() * INDEX;
        let most = bytes + before_last.len() * OVERHEAD + index;
        match (found, foretold) {
            (Err(InsertError::Full), Ok(())) if self.memory > 0 => {
                assert!(stats.memory_reserved + most >= self.memory, "full, with memory left: {stats:?}");
                assert!(bytes + index < self.memory, "full, and too large for an empty table: {sizes:?}");
            }
            (Err(InsertError::TooLarge), Ok(()) | Err(InsertError::Full)) if self.memory > 0 => {
                // The address range exceeds the limit by less than an entry.
                let all = sizes.iter().map(|(key, value)| key + value + OVERHEAD).sum::<usize>();
                assert!(most.max(all + index) >= self.memory, "too large, and an empty table could hold it: {sizes:?}");
            }
            _ => assert_eq!(found, foretold, "{stats:?}"),
        }
        if found.is_ok() {
            self.excess = self.excess.max(sizes.last().map_or(0, |(key, value)| key + value + OVERHEAD));
        }
    }

    /// Checks the rules that the statistics follow at any time.
    pub(crate) fn check(&mut self, stats: &Stats) {
        assert_eq!(stats.memory_usage + stats.memory_idle, stats.memory_reserved);
        assert!(stats.memory_wasted <= stats.memory_usage);
        assert!((0.0..=1.0).contains(&stats.memory_utilization()));
        assert_eq!((stats.max_memory_bytes, stats.max_entries), (self.memory, self.entries));
        assert!(self.entries == 0 || stats.entries <= self.entries, "more entries than the limit: {stats:?}");
        let most = self.memory.next_multiple_of(8) + self.excess;
        assert!(self.memory == 0 || stats.memory_usage <= most, "past the limit by more than an entry: {stats:?}");
        assert!(
            stats.is_under_backpressure || !(self.pressed || self.is_full(stats)),
            "back-pressure was taken back: {stats:?}"
        );
        self.pressed = stats.is_under_backpressure;
    }
}

/// The mean, computed as tables compute it.
pub(crate) fn mean(bytes: usize, count: usize) -> f64 {
    if count == 0 { 0.0 } else { bytes as f64 / count as f64 }
}
