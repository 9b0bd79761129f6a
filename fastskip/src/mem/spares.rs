//! Spare pieces of the range, which were given back, or taken back from a shard: they are free and are not counted as reserved.
//!
//! The list of pieces is kept in the pieces themselves, so there may be any number of them. A bin is a stack of pieces of similar size: bin `b` has
//! the pieces of at least 2^b and fewer than 2^(b+1) words. The bin's word names the first piece, and the first word of each piece holds the end of
//! the piece and the next piece.
//!
//! Any thread may push a piece, by CAS. To take a piece, a thread takes the whole stack. It leaves an empty stack with the lock bit set, onto which
//! other threads continue to push, and puts back the pieces that it does not need. No thread waits for the bit; a thread that finds it set searches
//! another bin. So a piece that a thread reads belongs to that thread, and cannot have been taken and pushed again meanwhile.
//!
//! Neighbouring pieces are joined from time to time: all pieces are taken out, sorted by address, and joined ([`join`](Spares::join)), which takes
//! O(n log n) for n pieces. The arena decides when a join is worth its time, from the number of words that came since the last join
//! ([`fresh`](Spares::fresh)).
//!
//! Unlike elsewhere in the arena, every step here is Acquire or Release, because the first word of a piece is written. So a thread that receives a
//! piece writes to the piece only after that earlier write.

use super::chunk::Chunk;
use super::storage::Storage;
use crate::sync::{AtomicU64, Ordering, ord};
use crate::tuning::SPARE_BINS;

/// The number of pieces that are examined in a bin whose pieces may be too small.
const LOOKS: usize = 8;

/// The lock bit of a bin's word: another thread is searching the bin for a piece.
const LOCKED: u64 = 1 << 32;

/// More words than any piece has: no search has failed yet.
const NEVER: u64 = u32::MAX as u64;

/// The free pieces of one arena.
#[derive(Debug)]
pub(super) struct Spares {
    bins: [AtomicU64; SPARE_BINS],
    /// The number of words that came since pieces were last joined.
    fresh: AtomicU64,
    /// The number of threads that hold pieces and will put back at least a part of them.
    holders: AtomicU64,
    /// In the upper half, the number of pieces that came; in the lower half, the least size for which a search since then has failed.
    refused: AtomicU64,
}

/// A piece in a stack, and the next one; 0 means none.
#[derive(Debug, Clone, Copy)]
struct Linked {
    piece: Chunk,
    next: u32,
}

impl Spares {
    pub(super) fn new() -> Self {
        Self {
            bins: core::array::from_fn(|_| AtomicU64::new(0)),
            fresh: AtomicU64::new(0),
            holders: AtomicU64::new(0),
            refused: AtomicU64::new(NEVER),
        }
    }

    /// The bin for pieces of this many words.
    fn bin(words: u32) -> usize {
        let size = words.max(1).ilog2() as usize;
        if size < SPARE_BINS { size } else { SPARE_BINS - 1 }
    }

    /// The number of words that came since pieces were last joined.
    pub(super) fn fresh(&self) -> u64 {
        self.fresh.load(Ordering::Relaxed)
    }

    /// Whether there is no piece, except pieces that a thread holds.
    pub(super) fn are_none(&self) -> bool {
        self.bins.iter().all(|bin| bin.load(Ordering::Relaxed) == 0)
    }

    /// Whether a thread holds pieces that it will put back.
    pub(super) fn are_held(&self) -> bool {
        self.holders.load(Ordering::Relaxed) != 0
    }

    /// Keeps `piece`, which was given back and belongs to the caller alone.
    pub(super) fn put(&self, storage: &Storage, piece: Chunk) {
        self.push(storage, piece);
        // Counted after the push: a join that resets this count has either seen the piece, or leaves it to the next join.
        self.fresh.fetch_add(piece.room().into(), Ordering::Relaxed);
    }

    /// Keeps the rest of a piece that was [taken](Self::take_fitting).
    pub(super) fn put_rest(&self, storage: &Storage, piece: Chunk) {
        self.push(storage, piece);
        self.holders.fetch_sub(1, Ordering::Relaxed);
    }

    fn push(&self, storage: &Storage, piece: Chunk) {
        if piece.room() == 0 {
            return;
        }
        let bin = &self.bins[Self::bin(piece.room())];
        let mut seen = bin.load(Ordering::Relaxed);
        loop {
            Linked { piece, next: seen as u32 }.write(storage);
            let first = seen & LOCKED | u64::from(piece.next);
            // ORDERING(spares.bin): Release; pairs with `take_stack` and `put_back`. Weaker: a thread could read the piece's first word before it is
            // written (loom `spare_pieces_*`).
            match bin.compare_exchange_weak(seen, first, ord("spares.bin", Ordering::Release), Ordering::Relaxed) {
                Ok(_) => break,
                // The loop ends: another thread's step succeeded.
                Err(now) => seen = now,
            }
        }
        // Relaxed, after the CAS: a search that began before this step cannot record its failure. A search that sees the count but not yet the piece
        // may record a failure; then the piece is found only when the next piece comes.
        let count = |refused: u64| Some(((refused >> 32) + 1) << 32 | NEVER);
        // Cannot fail: `count` always returns a value.
        _ = self.refused.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count);
    }

    /// Takes a piece of at least `words`, from the smallest bin in which a limited number of looks finds one. The rest of the piece must be [put
    /// back](Self::put_rest), even if it is empty.
    pub(super) fn take_fitting(&self, storage: &Storage, words: u32) -> Option<Chunk> {
        self.take(storage, words, LOOKS)
    }

    /// Like [`take_fitting`](Self::take_fitting), but looks at all pieces of the bin, O(n), unless the same search has failed before.
    pub(super) fn take_any(&self, storage: &Storage, words: u32) -> Option<Chunk> {
        let before = self.refused.load(Ordering::Relaxed);
        if u64::from(words) >= before & NEVER {
            return None;
        }
        let found = self.take(storage, words, usize::MAX);
        if found.is_none() && !self.are_held() {
            let in_vain = before & !NEVER | u64::from(words);
            // If this exchange fails, a piece came meanwhile, or another thread recorded the same: this costs only time.
            _ = self.refused.compare_exchange(before, in_vain, Ordering::Relaxed, Ordering::Relaxed);
        }
        found
    }

    fn take(&self, storage: &Storage, words: u32, looks: usize) -> Option<Chunk> {
        if self.are_none() {
            return None;
        }
        self.holders.fetch_add(1, Ordering::Relaxed);
        let from = |bin: usize| self.take_from(storage, &self.bins[bin], words, looks);
        let found = (Self::bin(words)..SPARE_BINS).find_map(from);
        if found.is_none() {
            self.holders.fetch_sub(1, Ordering::Relaxed);
        }
        found
    }

    fn take_from(&self, storage: &Storage, bin: &AtomicU64, words: u32, looks: usize) -> Option<Chunk> {
        let first = Self::take_stack(bin, LOCKED)?;
        let mut before = None;
        let mut at = first;
        for _ in 0..looks {
            let Some(found) = Linked::read(storage, at) else { break };
            if found.piece.room() >= words {
                let first = match before {
                    None => found.next,
                    Some(before) => {
                        Linked { next: found.next, ..before }.write(storage);
                        first
                    }
                };
                Self::put_back(storage, bin, first);
                return Some(found.piece);
            }
            (before, at) = (Some(found), found.next);
        }
        Self::put_back(storage, bin, first);
        None
    }

    /// Takes all pieces of a bin and leaves `left` there. Returns the first piece; `None` if the bin is empty or another thread has its pieces.
    fn take_stack(bin: &AtomicU64, left: u64) -> Option<u32> {
        let take = |seen: u64| (seen != 0 && seen & LOCKED == 0).then_some(left);
        // ORDERING(spares.bin.read): Acquire; pairs with `push` and `put_back`, see there.
        let acquire = ord("spares.bin.read", Ordering::Acquire);
        Some(bin.fetch_update(acquire, Ordering::Relaxed, take).ok()? as u32)
    }

    /// Puts the stack that begins with `first` back, below the pieces that were pushed meanwhile, and unlocks the bin.
    fn put_back(storage: &Storage, bin: &AtomicU64, first: u32) {
        // ORDERING(spares.bin.read): Acquire; pairs with `push`, see there.
        let acquire = ord("spares.bin.read", Ordering::Acquire);
        let mut seen = bin.load(acquire);
        let mut is_joined = first == 0;
        loop {
            let pushed = seen as u32;
            if pushed != 0 && !is_joined {
                let mut last = Linked::read(storage, pushed);
                // The loop ends: the pieces that were pushed while the bin was locked are a separate stack.
                while let Some(behind) = last.and_then(|last| Linked::read(storage, last.next)) {
                    last = Some(behind);
                }
                if let Some(last) = last {
                    Linked { next: first, ..last }.write(storage);
                }
                // Pieces that are pushed from now on lie on top of the joined stack.
                is_joined = true;
            }
            let whole = u64::from(if pushed == 0 { first } else { pushed });
            // ORDERING(spares.bin): Release; pairs with `take_stack`. Weaker: the next thread could miss this thread's writes to the links.
            let release = ord("spares.bin", Ordering::Release);
            match bin.compare_exchange(seen, whole, release, acquire) {
                Ok(_) => return,
                // The loop ends: another thread pushed a piece.
                Err(now) => seen = now,
            }
        }
    }

    /// Joins neighbouring pieces, except those in locked bins. Calls `is_used` with each piece, in the order of addresses, and keeps the pieces for
    /// which it returns false.
    pub(super) fn join(&self, storage: &Storage, mut is_used: impl FnMut(Chunk) -> bool) {
        self.holders.fetch_add(1, Ordering::Relaxed);
        let fresh = self.fresh.swap(0, Ordering::Relaxed);
        let is_any_locked = self.bins.iter().any(|bin| bin.load(Ordering::Relaxed) & LOCKED != 0);
        for piece in self.take_joined(storage) {
            if !is_used(piece) {
                self.push(storage, piece);
            }
        }
        if is_any_locked {
            // The next join comes soon, but the intervals grow, so that joins do not repeat for ever.
            self.fresh.fetch_add(fresh / 2, Ordering::Relaxed);
        }
        self.holders.fetch_sub(1, Ordering::Relaxed);
    }

    fn take_joined<'a>(&self, storage: &'a Storage) -> impl Iterator<Item = Chunk> + 'a {
        // Works like a binary counter: `sorted[i]` has twice as many pieces as `sorted[i - 1]`, or none.
        let mut sorted = [0; 32];
        for mut at in self.bins.iter().filter_map(|bin| Self::take_stack(bin, 0)) {
            while let Some(linked) = Linked::read(storage, at) {
                Linked { next: 0, ..linked }.write(storage);
                let mut run = at;
                let mut level = 0;
                while sorted[level] != 0 {
                    run = merge(storage, core::mem::take(&mut sorted[level]), run);
                    level += 1;
                }
                sorted[level] = run;
                at = linked.next;
            }
        }
        let mut at = sorted.into_iter().fold(0, |all, run| merge(storage, all, run));
        core::iter::from_fn(move || {
            let Linked { mut piece, mut next } = Linked::read(storage, at)?;
            while let Some(behind) = Linked::read(storage, next).filter(|behind| behind.piece.next == piece.end) {
                piece.end = behind.piece.end;
                next = behind.next;
            }
            at = next;
            Some(piece)
        })
    }
}

/// Merges two stacks that are sorted by address; returns the first piece.
fn merge(storage: &Storage, a: u32, b: u32) -> u32 {
    let mut stacks = [a, b];
    let (mut first, mut last) = (0, None);
    loop {
        let [a, b] = stacks;
        let from = usize::from(a == 0 || (b != 0 && b < a));
        let at = stacks[from];
        match last {
            None => first = at,
            Some(last) => Linked { next: at, ..last }.write(storage),
        }
        // The loop ends: each turn takes a piece from one of the two.
        let Some(taken) = Linked::read(storage, at).filter(|_| stacks[1 - from] != 0) else { return first };
        stacks[from] = taken.next;
        last = Some(taken);
    }
}

impl Linked {
    /// The piece at `at`, which must belong to the caller; `None` if `at` is 0.
    fn read(storage: &Storage, at: u32) -> Option<Self> {
        if at == 0 {
            return None;
        }
        // SAFETY: pieces begin at words of the range that are theirs, and the first word was written when the piece came; the caller took the stack.
        let word = unsafe { storage.read_spare(at) };
        Some(Self { piece: Chunk { next: at, end: (word >> 32) as u32 }, next: word as u32 })
    }

    fn write(self, storage: &Storage) {
        let word = u64::from(self.piece.end) << 32 | u64::from(self.next);
        // SAFETY: the first word of a piece that belongs to the caller alone, and in which nothing is stored.
        unsafe { storage.write_spare(self.piece.next, word) };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn storage() -> Storage {
        Storage::reserve(128 << 10, 4096, false, None).unwrap()
    }

    fn piece(next: u32, end: u32) -> Chunk {
        Chunk { next, end }
    }

    /// Takes all pieces out, after joining them.
    fn all(spares: &Spares, storage: &Storage) -> Vec<Chunk> {
        let mut all = Vec::new();
        spares.join(storage, |piece| {
            all.push(piece);
            true
        });
        all
    }

    /// Catches a piece that would fit but is never found, because it is behind slightly smaller pieces of its bin.
    #[test]
    fn a_piece_is_found_behind_many_that_are_too_small() {
        let (spares, storage) = (Spares::new(), storage());
        spares.put(&storage, piece(1, 101));
        (2..100).for_each(|at| spares.put(&storage, piece(at * 100, at * 100 + 70)));
        assert_eq!((spares.take_fitting(&storage, 80), spares.take_any(&storage, 101)), (None, None));
        assert_eq!(spares.take_any(&storage, 80), Some(piece(1, 101)));
        assert_eq!((spares.take_any(&storage, 80), spares.take_any(&storage, 71)), (None, None));
        spares.put(&storage, piece(1, 101));
        assert_eq!(spares.take_any(&storage, 80), Some(piece(1, 101)), "what came is looked for again");
    }

    /// Catches neighbouring pieces that are not joined, pieces out of order, and single words that are lost.
    #[test]
    fn pieces_that_touch_become_one() {
        let (spares, storage) = (Spares::new(), storage());
        for at in [20, 1, 40, 30, 10, 70] {
            spares.put(&storage, piece(at, at + if at == 1 { 9 } else { 10 }));
        }
        spares.put(&storage, piece(80, 81));
        assert_eq!(spares.take_fitting(&storage, 11), None);
        assert_eq!(spares.fresh(), 60);
        assert_eq!(all(&spares, &storage), [piece(1, 50), piece(70, 81)]);
        assert_eq!((spares.fresh(), spares.are_held(), spares.take_fitting(&storage, 1)), (0, false, None));
    }

    proptest! {
        /// Catches a word that is in two pieces or in none after any sequence of operations, and a returned piece that is too small.
        #[test]
        fn every_word_is_in_one_piece(steps in prop::collection::vec((0..50_u8, 1..=200_u32, any::<prop::sample::Index>()), 1..400)) {
            let (spares, storage) = (Spares::new(), storage());
            let mut held: Vec<Chunk> = vec![piece(1, storage.words() as u32)];
            for (step, words, index) in steps {
                match step {
                    0 => {
                        let mut end = 0;
                        spares.join(&storage, |piece| {
                            assert!(piece.next > end, "{piece:?} touches one that ends at {end}");
                            end = piece.end;
                            false
                        });
                    }
                    1..20 if !held.is_empty() => spares.put(&storage, held.swap_remove(index.index(held.len()))),
                    _ => {
                        if let Some(taken) = spares.take_fitting(&storage, words) {
                            prop_assert!(taken.room() >= words);
                            held.push(piece(taken.next, taken.next + words));
                            spares.put_rest(&storage, piece(taken.next + words, taken.end));
                        }
                    }
                }
            }
            held.into_iter().for_each(|piece| spares.put(&storage, piece));
            prop_assert_eq!(all(&spares, &storage), [piece(1, storage.words() as u32)]);
        }
    }

    /// Catches pieces that are lost while several threads push to a bin, take from it and join.
    #[test]
    fn threads_lose_no_piece() {
        let (spares, storage) = (Spares::new(), storage());
        for at in 0..1000 {
            spares.put(&storage, piece(1 + 16 * at, 1 + 16 * at + 16));
        }
        std::thread::scope(|threads| {
            for thread in 1..=4 {
                let (spares, storage) = (&spares, &storage);
                threads.spawn(move || {
                    let mut held = Vec::new();
                    for round in 0..3000 {
                        if let Some(taken) = spares.take_fitting(storage, 1 + round * thread % 16) {
                            spares.put_rest(storage, piece(taken.end, taken.end));
                            held.push(taken);
                        }
                        if held.len() > (round % 8) as usize {
                            held.drain(..).for_each(|piece| spares.put(storage, piece));
                        }
                        if round % 500 == 0 {
                            spares.join(storage, |_| false);
                        }
                    }
                    held.into_iter().for_each(|piece| spares.put(storage, piece));
                });
            }
        });
        assert_eq!((all(&spares, &storage), spares.are_held()), (vec![piece(1, 16_001)], false));
    }
}
