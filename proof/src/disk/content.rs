//! The bytes of one file: the durable ones, the changes since, and the changes that a power cut may keep.
//!
//! A system writes pages back in any order and at any time, and a device writes sectors. So each block of [`BLOCK`] bytes has, independently of all
//! others, the content after some of the changes since the last sync. In a torn block, this holds for each sector of [`SECTOR`] bytes. The length is
//! the length after some of the changes, or any length in between. If the length survives without the bytes, the file has a hole of zeros.

use std::ops::Range;
use std::sync::Arc;

use proof::Random;

use super::losses::{Losses, reach};

/// Bytes that a system writes back together.
const BLOCK: usize = 4096;
/// Bytes that a device writes whole or not at all.
const SECTOR: usize = 512;

/// A step from one content to the next.
#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Arc<[u8]> },
    Truncate { len: usize },
}

impl Change {
    fn len_after(&self, len: usize) -> usize {
        match self {
            Self::Write { offset, bytes } => len.max(offset + bytes.len()),
            Self::Truncate { len } => *len,
        }
    }

    /// Applies this change to `out`, the bytes at `place` of the file.
    fn apply(&self, out: &mut [u8], place: &Range<usize>) {
        match self {
            Self::Write { offset, bytes } => {
                let (start, end) = (place.start.max(*offset), place.end.min(offset + bytes.len()));
                if start < end {
                    out[start - place.start..end - place.start].copy_from_slice(&bytes[start - offset..end - offset]);
                }
            }
            Self::Truncate { len } => {
                let kept = len.saturating_sub(place.start).min(out.len());
                out[kept..].fill(0);
            }
        }
    }

    fn touches(&self, place: &Range<usize>) -> bool {
        match self {
            Self::Write { offset, bytes } => *offset < place.end && place.start < offset + bytes.len(),
            Self::Truncate { len } => *len < place.end,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    /// The number of changes so far, as a system shows it by the time of the last one.
    version: u64,
    durable: Arc<Vec<u8>>,
    now: Arc<Vec<u8>>,
    /// The changes since the last sync.
    changes: Vec<Change>,
    /// The changes whose sync failed: readers see them, but no later sync makes them durable.
    given_up: Vec<Change>,
}

impl Content {
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// The content that a reader sees.
    pub(super) fn now(&self) -> &[u8] {
        &self.now
    }

    pub(super) fn write(&mut self, offset: usize, bytes: &Arc<[u8]>) {
        self.change(Change::Write { offset, bytes: bytes.clone() });
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.change(Change::Truncate { len });
    }

    fn change(&mut self, change: Change) {
        let now = Arc::make_mut(&mut self.now);
        now.resize(change.len_after(now.len()), 0);
        let all = 0..now.len();
        change.apply(now, &all);
        self.changes.push(change);
        self.version += 1;
    }

    pub(super) fn sync(&mut self) {
        if self.given_up.is_empty() {
            self.durable = self.now.clone();
        } else {
            let len = self.len_after(self.durable.len(), self.changes.iter());
            let mut bytes = vec![0; len];
            self.fill(&mut bytes, 0, self.changes.iter());
            self.durable = Arc::new(bytes);
        }
        self.changes.clear();
    }

    /// A sync that fails as on Linux: the pages stay readable, count as clean, and are never written back again. It is unknown which pages reached
    /// the device.
    pub(super) fn fail_sync(&mut self) {
        self.given_up.append(&mut self.changes);
    }

    /// Whether no power cut can change the content.
    pub(super) fn is_durable(&self) -> bool {
        self.changes.is_empty() && self.given_up.is_empty()
    }

    fn len_after<'a>(&self, len: usize, changes: impl Iterator<Item = &'a Change>) -> usize {
        changes.fold(len, |len, change| change.len_after(len))
    }

    /// Fills `out` with the bytes from `start` on, after `changes` are applied to the durable content.
    fn fill<'a>(&self, out: &mut [u8], start: usize, changes: impl Iterator<Item = &'a Change>) {
        let place = start..start + out.len();
        let kept = self.durable.get(start..).unwrap_or_default();
        let kept = &kept[..kept.len().min(out.len())];
        out[..kept.len()].copy_from_slice(kept);
        changes.for_each(|change| change.apply(out, &place));
    }

    /// The content after a power cut, chosen by `random`.
    pub(super) fn after_power_cut(&self, random: &mut Random, losses: &mut Losses) -> Self {
        if self.is_durable() {
            return self.clone();
        }
        let changes: Vec<&Change> = self.given_up.iter().chain(&self.changes).collect();
        let mut bytes = vec![0; self.draw_len(&changes, random, losses)];
        let mood = random.below(4);
        let whole = random.index(changes.len() + 1);
        let (mut is_damaged, mut has_hole) = (false, false);
        for start in (0..bytes.len()).step_by(BLOCK) {
            let end = bytes.len().min(start + BLOCK);
            let place = start..end;
            let out = &mut bytes[place.clone()];
            if !changes.iter().any(|change| change.touches(&place)) {
                self.fill(out, start, [].into_iter());
                continue;
            }
            let reach = match mood {
                // Keeps the file of one moment, or everything, or each block independently.
                0 => whole,
                1 => changes.len(),
                _ => reach(random, changes.len()),
            };
            if mood == 3 && random.below(2) == 0 {
                self.tear(out, start, &changes, random);
            } else {
                self.fill(out, start, changes.iter().take(reach).copied());
            }
            let is_newest = losses.count_block(out, self.now.get(place).unwrap_or_default());
            has_hole |= is_newest && is_damaged;
            is_damaged |= !is_newest;
        }
        losses.holes += u64::from(has_hole);
        // The time may survive without the bytes, or the bytes without the time.
        let version = self.version - random.index(changes.len() + 1) as u64;
        let durable = Arc::new(bytes);
        Self { version, now: durable.clone(), durable, ..Self::default() }
    }

    fn draw_len(&self, changes: &[&Change], random: &mut Random, losses: &mut Losses) -> usize {
        let reach = reach(random, changes.len());
        let len = self.len_after(self.durable.len(), changes.iter().take(reach).copied());
        let before = self.durable.len();
        let drawn = if len > before && random.below(3) == 0 { before + random.index(len - before) } else { len };
        losses.cut_lengths += u64::from(drawn < self.now.len());
        drawn
    }

    /// Makes a block whose sectors come from different moments.
    fn tear(&self, out: &mut [u8], start: usize, changes: &[&Change], random: &mut Random) {
        for (sector, at) in out.chunks_mut(SECTOR).zip((start..).step_by(SECTOR)) {
            let reach = reach(random, changes.len());
            self.fill(sector, at, changes.iter().take(reach).copied());
        }
    }
}

impl Losses {
    /// Counts a changed block as lost or torn, unless it has its newest content. Returns whether it has.
    fn count_block(&mut self, found: &[u8], newest: &[u8]) -> bool {
        let mut sectors = found.chunks(SECTOR).zip(newest.chunks(SECTOR));
        let is_newest = found == newest;
        match sectors.any(|(found, newest)| found == newest) {
            _ if is_newest => {}
            true => self.torn_blocks += 1,
            false => self.lost_blocks += 1,
        }
        is_newest
    }
}
