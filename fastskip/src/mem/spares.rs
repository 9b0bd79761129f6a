//! Pieces of the range that were handed out and given back, or taken back from a shard: free, and not counted as reserved.
//!
//! Each slot holds one piece in one word. A thread takes a piece out whole, by CAS, before it joins, divides or uses it; so a piece
//! has one owner at any time, and no thread waits. Pieces that touch are joined when one of them comes in. When all slots are in
//! use, the smallest piece is forgotten: addresses are lost then, but no memory, which nobody has touched, and no part of the limit. The
//! arena allocates from here before that happens (`Arena::give_back`).
//!
//! Relaxed, as all that divides the range (see `arena.rs`): nothing was written to a piece that is here.

use super::chunk::Chunk;
use crate::sync::{AtomicU64, Ordering};
use crate::tuning::SPARES;

/// The free pieces of one arena.
#[derive(Debug)]
pub(super) struct Spares([AtomicU64; SPARES]);

impl Spares {
    pub(super) fn new() -> Self {
        Self(core::array::from_fn(|_| AtomicU64::new(Chunk::EMPTY.pack())))
    }

    /// Takes the first piece out that `fits`.
    fn take(&self, fits: impl Fn(Chunk) -> bool) -> Option<Chunk> {
        self.0.iter().find_map(|slot| {
            let seen = slot.load(Ordering::Relaxed);
            let piece = Chunk::unpack(seen);
            let taken = piece.room() != 0 && fits(piece) && Self::replace(slot, piece, Chunk::EMPTY);
            taken.then_some(piece)
        })
    }

    fn replace(slot: &AtomicU64, old: Chunk, new: Chunk) -> bool {
        slot.compare_exchange(old.pack(), new.pack(), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Takes the smallest piece of `words` at least.
    pub(super) fn take_fitting(&self, words: u64) -> Option<Chunk> {
        loop {
            let fitting = self.pieces().filter(|(_, piece)| u64::from(piece.room()) >= words);
            let (slot, smallest) = fitting.min_by_key(|(_, piece)| piece.room())?;
            if Self::replace(slot, smallest, Chunk::EMPTY) {
                return Some(smallest);
            }
        }
    }

    /// Whether more than half of the slots are in use.
    pub(super) fn are_many(&self) -> bool {
        self.pieces().filter(|(_, piece)| piece.room() != 0).count() > SPARES / 2
    }

    /// Whether there is a piece of `words` at least and less than `most`.
    pub(super) fn has_fitting_below(&self, words: u64, most: u64) -> bool {
        self.pieces().any(|(_, piece)| (words..most).contains(&piece.room().into()))
    }

    /// Takes the piece that ends where `end` says.
    pub(super) fn take_before(&self, end: u32) -> Option<Chunk> {
        self.take(|piece| piece.end == end)
    }

    /// Keeps `piece`, which is the caller's alone.
    pub(super) fn put(&self, mut piece: Chunk) {
        while let Some(other) = self.take(|other| other.end == piece.next || piece.end == other.next) {
            piece = Chunk { next: other.next.min(piece.next), end: other.end.max(piece.end) };
        }
        while piece.room() != 0 {
            let Some((slot, smallest)) = self.smallest_slot().filter(|(_, other)| other.room() < piece.room()) else {
                return;
            };
            if Self::replace(slot, smallest, piece) {
                return;
            }
        }
    }

    fn smallest_slot(&self) -> Option<(&AtomicU64, Chunk)> {
        self.pieces().min_by_key(|(_, piece)| piece.room())
    }

    fn pieces(&self) -> impl Iterator<Item = (&AtomicU64, Chunk)> {
        self.0.iter().map(|slot| (slot, Chunk::unpack(slot.load(Ordering::Relaxed))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(next: u32, end: u32) -> Chunk {
        Chunk { next, end }
    }

    /// Catches pieces that touch and are not joined, so that no large piece ever comes together again.
    #[test]
    fn pieces_that_touch_become_one() {
        let spares = Spares::new();
        for at in [20, 0, 40, 30, 10] {
            spares.put(piece(at, at + 10));
        }
        assert_eq!(spares.take_fitting(51), None);
        assert_eq!(spares.take_fitting(50), Some(piece(0, 50)));
        assert_eq!(spares.take_fitting(1), None);
    }

    /// Catches slots in use that keep a large piece out, and a smaller piece that replaces a larger one.
    #[test]
    fn the_largest_pieces_are_kept() {
        let spares = Spares::new();
        for at in 1..2 * SPARES as u32 {
            spares.put(piece(1000 * at, 1001 * at));
        }
        spares.put(piece(1, 2));
        for _ in 0..SPARES {
            assert!(spares.take_fitting(SPARES as u64).is_some());
        }
        assert_eq!(spares.take_fitting(1), None);
    }

    /// Catches the wrong piece before an address.
    #[test]
    fn a_piece_is_found_by_its_end() {
        let spares = Spares::new();
        spares.put(piece(10, 20));
        assert_eq!(spares.take_before(10), None);
        assert_eq!(spares.take_before(21), None);
        assert_eq!(spares.take_before(20), Some(piece(10, 20)));
    }

    /// Catches a single word that is forgotten or not joined.
    #[test]
    fn a_single_word_is_a_piece() {
        let spares = Spares::new();
        for at in [1, 3, 2] {
            spares.put(piece(at, at + 1));
        }
        assert_eq!(spares.take_fitting(1), Some(piece(1, 4)));
    }

    /// Catches pieces that are handed out first while few lie apart, or not before some are forgotten.
    #[test]
    fn pieces_are_many_when_more_than_half_of_the_slots_are_used() {
        let spares = Spares::new();
        for at in 1..=SPARES as u32 / 2 {
            assert!(!spares.are_many());
            spares.put(piece(2 * at, 2 * at + 1));
        }
        assert!(!spares.are_many());
        spares.put(piece(0, 1));
        assert!(spares.are_many());
    }

    /// Catches a piece that is called too small for a chunk and is not, or the other way round.
    #[test]
    fn a_piece_fits_below_a_size_or_not() {
        let spares = Spares::new();
        spares.put(piece(10, 20));
        assert_eq!(
            [(9, 11), (10, 11), (10, 10), (11, 12)].map(|(words, most)| spares.has_fitting_below(words, most)),
            [true, true, false, false]
        );
    }
}
