//! I6: a budget that two arenas share is used up exactly, and a thread that waits for room is woken.

use std::time::Duration;

use super::arena::ONE_SHARD;
use crate::check::Program;
use crate::mem::arena::{Arena, Layout};
use crate::mem::budget::MemoryBudget;

/// The words of a piece for which an arena takes no chunk.
const PIECE: u32 = 16;

/// A budget, two arenas that share it, and the piece of [`PIECE`] words that each of them allocated at the start.
pub(super) struct Shared(MemoryBudget, [(Arena<()>, u32); 2]);

impl Shared {
    fn of(words: u32) -> Self {
        let budget = MemoryBudget::new(words as usize * 8);
        let layout = || Layout { budget: Some(budget.clone()), ..ONE_SHARD };
        let arenas = [(); 2].map(|()| {
            let arena = Arena::new(layout(), None).expect("the model's storage refuses nothing");
            let piece = arena.alloc(0, PIECE, 0).expect("the budget has room for both pieces");
            (arena, piece)
        });
        Self(budget, arenas)
    }

    fn give_back(&self, number: usize) {
        let (arena, piece) = &self.1[number];
        arena.give_back(0, *piece, piece + PIECE);
    }

    fn words(&self) -> String {
        let Self(budget, arenas) = self;
        let reserved: u64 = arenas.iter().map(|(arena, _)| arena.usage().reserved).sum();
        assert_eq!(budget.memory_reserved() as u64, reserved * 8, "I6 broken: the budget, and the words of its arenas");
        reserved.to_string()
    }
}

/// Both threads take a chunk, of which one is cut to what the budget has left; one of them also gives a piece back.
pub(super) fn two_tables(gives_back: bool) -> Program<Shared> {
    let chunk = 32;
    Program::new(move || Shared::of(2 * PIECE + chunk + 3))
        .threads(2, move |shared, number| {
            if gives_back && number == 0 {
                shared.give_back(0);
            }
            assert!(shared.1[number].0.alloc(0, 3, 0).is_some(), "I6 broken: refused, and room is left");
        })
        .at_rest(Shared::words)
        .expects(&["67"])
}

/// A thread waits until two others have given back their pieces.
pub(super) fn waits() -> Program<Shared> {
    Program::new(|| Shared::of(2 * PIECE))
        .threads(3, |shared, number| match number {
            2 => assert!(shared.0.wait_for_room(2 * PIECE as usize * 8, Duration::MAX)),
            _ => shared.give_back(number),
        })
        .at_rest(Shared::words)
        .expects(&["0"])
}
