//! Pieces of the range that were handed out and given back, or taken back from a shard: free, and not counted as reserved.
//!
//! They are kept in the memory that they are, so there may be any number of them. A bin is a stack of pieces of about one size: bin `b` has
//! those of 2^b words up to twice as many. Its word names the first piece, and the first word of each piece its end and the next piece.
//!
//! Any thread pushes a piece, by CAS. To take one out, a thread takes the whole stack: it leaves an empty one with the lock bit set, onto
//! which others go on pushing, and puts back what it does not need. Nobody waits for the bit; who finds it set looks elsewhere. So
//! a piece that a thread reads is its own, and cannot have been taken and pushed again meanwhile.
//!
//! Pieces that touch are joined from time to time: all are taken out, sorted by address, and joined ([`take_joined`](Spares::take_joined)). When
//! that is worth its time, the arena decides by the words that came since the last time ([`fresh`](Spares::fresh)).
//!
//! Every step is Acquire or Release here, unlike elsewhere in the arena: a piece's first word is written. Whoever is handed a piece
//! writes to it after that.

use super::chunk::Chunk;
use super::storage::Storage;
use crate::sync::{AtomicU64, Ordering, ord};
use crate::tuning::SPARE_BINS;

/// Pieces of a bin that are looked at for one that fits, where not all of its pieces do.
const LOOKS: usize = 8;

/// A bin's word: another thread looks for a piece in it.
const LOCKED: u64 = 1 << 32;

/// The free pieces of one arena.
#[derive(Debug)]
pub(super) struct Spares {
    bins: [AtomicU64; SPARE_BINS],
    /// Words that came since pieces were last joined.
    fresh: AtomicU64,
}

/// A piece in a stack, and the one behind it; 0 is none.
#[derive(Debug, Clone, Copy)]
struct Linked {
    piece: Chunk,
    next: u32,
}

impl Spares {
    pub(super) fn new() -> Self {
        Self { bins: core::array::from_fn(|_| AtomicU64::new(0)), fresh: AtomicU64::new(0) }
    }

    /// The bin of pieces of so many words.
    fn bin(words: u32) -> usize {
        (words.max(1).ilog2() as usize).min(SPARE_BINS - 1)
    }

    /// Words that came since pieces were last joined.
    pub(super) fn fresh(&self) -> u64 {
        self.fresh.load(Ordering::Relaxed)
    }

    /// Keeps `piece`, which was given back and is the caller's alone.
    pub(super) fn put(&self, storage: &Storage, piece: Chunk) {
        self.fresh.fetch_add(piece.room().into(), Ordering::Relaxed);
        self.put_rest(storage, piece);
    }

    /// Keeps what is left of a piece that was taken out.
    pub(super) fn put_rest(&self, storage: &Storage, piece: Chunk) {
        if piece.room() == 0 {
            return;
        }
        let bin = &self.bins[Self::bin(piece.room())];
        let mut seen = bin.load(Ordering::Relaxed);
        loop {
            Linked { piece, next: seen as u32 }.write(storage);
            let first = seen & LOCKED | u64::from(piece.next);
            // ORDERING(spares.bin): Release; pairs with `take_stack` and `put_back`. Weaker: the piece's first word could be read before it is
            // written (loom `spare_pieces_*`).
            match bin.compare_exchange_weak(seen, first, ord("spares.bin", Ordering::Release), Ordering::Relaxed) {
                Ok(_) => return,
                // Ends: another thread's step succeeded.
                Err(now) => seen = now,
            }
        }
    }

    /// Takes a piece of `words` at least, from the smallest bin that has one.
    pub(super) fn take_fitting(&self, storage: &Storage, words: u32) -> Option<Chunk> {
        (Self::bin(words)..SPARE_BINS).find_map(|bin| self.take_from(storage, &self.bins[bin], words))
    }

    fn take_from(&self, storage: &Storage, bin: &AtomicU64, words: u32) -> Option<Chunk> {
        let first = Self::take_stack(bin, LOCKED)?;
        let mut before = None;
        let mut at = first;
        for _ in 0..LOOKS {
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

    /// Takes all pieces of a bin and leaves `left`: the first of them, or none if there are none or another thread has them.
    fn take_stack(bin: &AtomicU64, left: u64) -> Option<u32> {
        let take = |seen: u64| (seen != 0 && seen & LOCKED == 0).then_some(left);
        // ORDERING(spares.bin.read): Acquire; pairs with `put_rest` and `put_back`, see there.
        let acquire = ord("spares.bin.read", Ordering::Acquire);
        Some(bin.fetch_update(acquire, Ordering::Relaxed, take).ok()? as u32)
    }

    /// Puts the stack that begins with `first` back below what was pushed meanwhile, and unlocks the bin.
    fn put_back(storage: &Storage, bin: &AtomicU64, first: u32) {
        // ORDERING(spares.bin.read): Acquire; pairs with `put_rest`, see there.
        let acquire = ord("spares.bin.read", Ordering::Acquire);
        let mut seen = bin.load(acquire);
        loop {
            let pushed = seen as u32;
            let mut last = Linked::read(storage, pushed);
            // Ends: what was pushed while the bin was locked is a stack of its own, until it is joined to the other.
            while let Some(linked) = last.filter(|last| last.next != 0 && last.next != first) {
                last = Linked::read(storage, linked.next);
            }
            if let Some(last) = last {
                Linked { next: first, ..last }.write(storage);
            }
            let whole = u64::from(if last.is_some() { pushed } else { first });
            // ORDERING(spares.bin): Release; pairs with `take_stack`. Weaker: the next thread could miss what this one wrote to the links.
            let release = ord("spares.bin", Ordering::Release);
            match bin.compare_exchange(seen, whole, release, acquire) {
                Ok(_) => return,
                // Ends: another thread pushed a piece.
                Err(now) => seen = now,
            }
        }
    }

    /// Takes all pieces out, but for those of bins that another thread has just locked, and joins those that touch. They come in order.
    pub(super) fn take_joined<'a>(&self, storage: &'a Storage) -> impl Iterator<Item = Chunk> + 'a {
        self.fresh.store(0, Ordering::Relaxed);
        // As in a binary counter: `sorted[i]` has twice as many pieces as `sorted[i - 1]`, or none.
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
        // Ends: each turn takes a piece from one of the two.
        let Some(taken) = Linked::read(storage, at).filter(|_| stacks[1 - from] != 0) else { return first };
        stacks[from] = taken.next;
        last = Some(taken);
    }
}

impl Linked {
    /// The piece at `at`, which is the caller's; none at 0.
    fn read(storage: &Storage, at: u32) -> Option<Self> {
        if at == 0 {
            return None;
        }
        // SAFETY: pieces begin at words of the range that are theirs, and the first was written when the piece came; the caller took the stack.
        let word = unsafe { storage.read_spare(at) };
        Some(Self { piece: Chunk { next: at, end: (word >> 32) as u32 }, next: word as u32 })
    }

    fn write(self, storage: &Storage) {
        let word = u64::from(self.piece.end) << 32 | u64::from(self.next);
        // SAFETY: the first word of a piece that is the caller's alone, and in which nothing is stored.
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

    /// Catches pieces that touch and are not joined, pieces out of order, and single words that are forgotten.
    #[test]
    fn pieces_that_touch_become_one() {
        let (spares, storage) = (Spares::new(), storage());
        for at in [20, 1, 40, 30, 10, 70] {
            spares.put(&storage, piece(at, at + if at == 1 { 9 } else { 10 }));
        }
        spares.put_rest(&storage, piece(80, 81));
        assert_eq!(spares.take_fitting(&storage, 11), None);
        assert_eq!(spares.fresh(), 59);
        let joined: Vec<Chunk> = spares.take_joined(&storage).collect();
        assert_eq!(joined, [piece(1, 50), piece(70, 81)]);
        assert_eq!((spares.fresh(), spares.take_fitting(&storage, 1)), (0, None));
    }

    proptest! {
        /// Catches a word that is in two pieces or in none, whatever comes and goes; and a piece that is too small.
        #[test]
        fn every_word_is_in_one_piece(steps in prop::collection::vec((0..50_u8, 1..=200_u32, any::<prop::sample::Index>()), 1..400)) {
            let (spares, storage) = (Spares::new(), storage());
            let mut held: Vec<Chunk> = vec![piece(1, storage.words() as u32)];
            for (step, words, index) in steps {
                match step {
                    0 => {
                        let joined: Vec<Chunk> = spares.take_joined(&storage).collect();
                        prop_assert!(joined.windows(2).all(|two| two[0].end < two[1].next), "{joined:?}");
                        joined.into_iter().for_each(|piece| spares.put_rest(&storage, piece));
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
            prop_assert_eq!(Vec::from_iter(spares.take_joined(&storage)), [piece(1, storage.words() as u32)]);
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
                        held.extend(spares.take_fitting(storage, 1 + round * thread % 16));
                        if held.len() > (round % 8) as usize {
                            held.drain(..).for_each(|piece| spares.put(storage, piece));
                        }
                        if round % 500 == 0 {
                            spares.take_joined(storage).for_each(|piece| spares.put_rest(storage, piece));
                        }
                    }
                    held.into_iter().for_each(|piece| spares.put(storage, piece));
                });
            }
        });
        assert_eq!(Vec::from_iter(spares.take_joined(&storage)), [piece(1, 16_001)]);
    }
}
