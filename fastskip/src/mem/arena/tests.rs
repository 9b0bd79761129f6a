//! Chunks and limits, exact to the word: in a table, an error of one word would go unnoticed.

use super::*;

/// Smaller than a shard's first chunk, and smaller than any refill.
const SMALL: u32 = MIN_CHUNK as u32 / 8;

const SOURCE: BlockSource = BlockSource { shard: 0, is_due: false };

const LAYOUT: Layout = Layout {
    shards: 1,
    chunk_bytes: 0,
    max_memory_bytes: 0,
    size_hint: 0,
    huge_pages: false,
    head_words: 1,
    budget: None,
};

fn arena_of(layout: Layout) -> Arena<()> {
    Arena::new(layout, None).unwrap()
}

fn arena(shards: usize, limit_words: u64) -> Arena<()> {
    arena_of(Layout { shards, max_memory_bytes: limit_words as usize * WORD, ..LAYOUT })
}

/// Catches a chunk whose last words are never allocated, or are allocated twice.
#[test]
fn a_chunk_is_used_to_its_last_word() {
    let arena = arena(1, 0);
    for index in 0..8 {
        assert_eq!(arena.alloc(0, SMALL, 0), Some(1 + index * SMALL));
        assert_eq!(arena.usage().reserved, MIN_CHUNK);
    }
    assert_eq!(arena.usage().idle, 0);
    assert_eq!(arena.alloc(0, SMALL, 0), Some(1 + 8 * SMALL), "the next chunk goes on where the first ended");
    assert_eq!((arena.usage().reserved, arena.usage().wasted), (2 * MIN_CHUNK, 0));
}

/// Catches the rest of a chunk that is neither used nor counted, and large allocations that make a shard lose its chunk.
#[test]
fn large_pieces_lie_apart_and_rests_are_waste() {
    let arena = arena(2, 0);
    assert_eq!(arena.alloc(0, SMALL, 0), Some(1));
    assert_eq!(arena.alloc(0, 100, 0), Some(1 + MIN_CHUNK as u32));
    assert_eq!(arena.alloc(0, SMALL, 0), Some(1 + SMALL), "the chunk is still the shard's");
    assert_eq!(arena.usage().idle, MIN_CHUNK - 2 * u64::from(SMALL));
    for _ in 0..6 {
        assert!(arena.alloc(0, SMALL - 1, 0).is_some());
    }
    assert_eq!(arena.usage().wasted, 0);
    assert!(arena.alloc(0, SMALL + 3, 0).is_some());
    let Usage { reserved, idle, wasted, .. } = arena.usage();
    assert_eq!(wasted, 6, "the words behind six pieces that were one short each");
    assert_eq!(reserved, MIN_CHUNK + 100 + MIN_CHUNK);
    assert_eq!(idle, MIN_CHUNK - u64::from(SMALL) - 3);
}

/// Catches a limit that is off by one word, in allocations and in statistics.
#[test]
fn the_limit_is_met_to_the_word() {
    let arena = arena(1, 100);
    assert_eq!(arena.alloc(0, 99, 0), Some(1));
    assert!(arena.uses_part(0.99) && !arena.uses_part(1.0));
    assert_eq!(arena.alloc(0, 2, 0), None);
    assert_eq!(arena.alloc(0, 1, 0), Some(100));
    assert!(arena.uses_part(1.0) && !arena.is_passed());
    assert_eq!(arena.alloc(0, 1, 1), None, "it would lie past the limit whole");
}

/// Catches an entry that begins beyond the limit, and a table that accepts more after an entry has exceeded it.
#[test]
fn one_tail_may_pass_the_limit_and_is_the_last() {
    let arena = arena(1, 100);
    assert_eq!(arena.alloc(0, 90, 0), Some(1));
    assert_eq!(arena.alloc(0, 20, 9), None, "all but the tail must lie within the limit");
    assert_eq!(arena.alloc(0, 20, 11), Some(91));
    assert!(arena.is_passed() && arena.uses_part(1.0));
    assert_eq!(arena.usage().reserved, 110);
    arena.give_back(0, 91, 111);
    assert!(!arena.is_passed() && !arena.uses_part(1.0));
    assert_eq!(arena.usage().reserved, 90);
    assert_eq!(arena.alloc(0, 20, 11), Some(91), "another may");
}

/// Catches words that return to a shard's chunk while the limit is exceeded, and are then allocated again.
#[test]
fn what_comes_back_while_the_limit_is_passed_stays_back() {
    let arena = arena(1, 100);
    assert_eq!([8, 24].map(|words| arena.alloc(0, words, 0)), [Some(1), Some(9)]);
    assert_eq!(arena.alloc(0, 100, 90), Some(33));
    arena.give_back(0, 9, 33);
    assert_eq!((arena.usage().reserved, arena.alloc(0, 1, 1)), (108, None));
    arena.give_back(0, 33, 133);
    assert_eq!(arena.usage().reserved, 8);
    assert_eq!(arena.alloc(0, 24, 0), Some(9));
}

/// Catches impossible requests that count as possible, and the reverse.
#[test]
fn could_hold_is_what_an_empty_table_holds() {
    let empty = arena(1, 1000);
    for (words, tail) in [(999, 0), (1000, 1), (1001, 1), (1001, 2), (1100, 1100), (1_000_000, 1_000_000)] {
        let holds = arena(1, 1000).alloc(0, words, tail).is_some();
        assert_eq!(empty.could_hold(words.into(), tail.into()), holds, "{words} with a tail of {tail}");
    }
}

/// Catches a range that ends before the limit, or that extends past the largest offset.
#[test]
fn the_range_holds_what_the_limit_allows() {
    let range =
        |max_memory_bytes, chunk_bytes| Layout { chunk_bytes, max_memory_bytes, ..LAYOUT }.range_bytes(UNLIMITED_BYTES);
    let most = MOST_BYTES;
    assert_eq!((range(0, 0), range(0, UNLIMITED_BYTES + 8)), (UNLIMITED_BYTES, UNLIMITED_BYTES + 8));
    assert_eq!((range(usize::MAX, 0), range(0, usize::MAX), range(most, 0)), (most, most, most));
    let more = if cfg!(windows) { 0 } else { (1 << 29) + (1 << 20) };
    assert_eq!(range(1 << 30, 0), (1 << 30) + more);
}

/// Catches words that are lost when they are given back, or that are given back from the middle.
#[test]
fn the_last_piece_can_be_given_back() {
    let arena = arena(1, 0);
    let first = arena.alloc(0, 2, 0).unwrap();
    let second = arena.alloc(0, 2, 0).unwrap();
    arena.give_back(0, second + 1, second + 2);
    assert_eq!(arena.usage().used(), 3);
    assert_eq!(arena.alloc(0, 1, 0), Some(second + 1));
    arena.give_back(0, first, first + 2);
    assert_eq!(arena.usage().used(), 2);
    arena.give_back(0, second, second + 2);
    assert_eq!((arena.usage().used(), arena.alloc(0, 2, 0)), (0, Some(second)));
    assert_eq!(arena.alloc(0, 100, 0), Some(1 + MIN_CHUNK as u32));
    assert_eq!(arena.alloc(0, MIN_CHUNK as u32, 0), Some(101 + MIN_CHUNK as u32), "not what is too small");
}

/// Catches pieces that are not joined with the untouched words behind the frontier when the range has no other room.
#[test]
fn the_frontier_moves_back_over_all_that_is_free() {
    let arena = arena(1, 1_000_000);
    let pieces = [400_000, 400_000, 150_000].map(|words| (arena.alloc(0, words, 0).unwrap(), words));
    for (start, words) in [pieces[1], pieces[0], pieces[2]] {
        arena.give_back(0, start, start + words);
    }
    assert_eq!(arena.usage().reserved, 0);
    assert_eq!(arena.alloc(0, 900_000, 0), Some(1));
}

/// Catches a piece that is not used although it just fits, and a piece that is used word by word instead of as a chunk.
#[test]
fn what_came_back_is_used_before_the_range_grows() {
    let arena = arena(1, 0);
    let [first, _] = [100, 100].map(|words| arena.alloc(0, words, 0).unwrap());
    for words in [100, 4] {
        arena.give_back(0, first, first + 100);
        assert_eq!(arena.alloc(0, words, 0), Some(first));
    }
    assert_eq!((arena.usage().reserved, arena.usage().idle), (100 + MIN_CHUNK, MIN_CHUNK - 4));
}

/// Catches chunks of blocks that leave a rest, are counted wrongly, or stay closed after one allocation found no room.
#[test]
fn blocks_come_in_chunks_of_whole_blocks() {
    let arena = |wish: usize, limit_words: usize| {
        arena_of(Layout { chunk_bytes: 64 * wish * WORD, max_memory_bytes: limit_words * WORD, ..LAYOUT })
    };
    let figures = |arena: &Arena<()>| {
        let Usage { reserved, idle, wasted, index } = arena.usage();
        (reserved, idle, wasted, index)
    };
    let (open, exact, narrow, closed) = (arena(40, 0), arena(40, 39), arena(96, 81), arena(96, 200));
    assert_eq!([(); 2].map(|()| open.alloc_block(SOURCE, 32)), [Some(8), Some(40)]);
    assert_eq!(figures(&open), (7 + 64, 0, 7, 64));
    assert_eq!([(); 2].map(|()| exact.alloc_block(SOURCE, 32)), [Some(8), None]);
    assert_eq!(narrow.alloc_block(SOURCE, 32), Some(8));
    assert_eq!(figures(&narrow), (7 + 64, 32, 7, 32), "less towards the limit");
    assert_eq!(closed.alloc(0, 150, 0), Some(1));
    assert_eq!([(); 2].map(|()| closed.alloc_block(SOURCE, 32)), [Some(152), None]);
    closed.free(Chunk { next: 1, end: 151 });
    assert_eq!(closed.alloc_block(SOURCE, 32), Some(184));
    assert_eq!(figures(&closed), (1 + 32 + 96, 64, 1, 64), "a whole chunk again");
}

/// Catches a block that is refused although nodes could still get the same number of words.
#[test]
fn the_last_blocks_come_from_the_chunks_of_nodes() {
    let arena = arena_of(Layout { chunk_bytes: 64 * WORD, max_memory_bytes: 200 * WORD, ..LAYOUT });
    assert_eq!([1, 130].map(|words| arena.alloc(0, words, 0)), [Some(1), Some(65)]);
    assert_eq!(arena.alloc_block(SOURCE, 32), Some(8), "behind up to 7 words that are waste");
    assert_eq!((arena.usage().index, arena.usage().wasted), (32, 7));
    assert_eq!(arena.alloc_block(SOURCE, 32), None);
}

/// Catches a piece that was free before a reset and is handed out a second time after the reset.
#[test]
fn a_reset_forgets_the_pieces_that_came_back() {
    let mut arena = arena(1, 0);
    let [first, _] = [100, 100].map(|words| arena.alloc(0, words, 0).unwrap());
    arena.give_back(0, first, first + 100);
    arena.reset();
    assert_eq!([(); 2].map(|()| arena.alloc(0, 100, 0)), [Some(1), Some(101)]);
}

/// Catches idle chunks that make a fitting value exceed the limit, or that are used after a value has exceeded it.
#[test]
fn what_idles_in_chunks_is_taken_back_before_the_limit_is_passed() {
    let arena = arena(4, 4 * MIN_CHUNK);
    (0..4).for_each(|shard| assert!(arena.alloc(shard, 1, 0).is_some()));
    assert_eq!((arena.usage().reserved, arena.usage().idle), (4 * MIN_CHUNK, 4 * MIN_CHUNK - 4));
    assert!(arena.alloc(0, 2 * MIN_CHUNK as u32, 0).is_some());
    assert!(!arena.is_passed());
    assert_eq!(arena.usage().used(), 2 * MIN_CHUNK + 4);
    assert!(arena.alloc(0, 4 * MIN_CHUNK as u32, 4 * MIN_CHUNK as u32).is_some());
    assert!(arena.is_passed());
    (0..4).for_each(|shard| assert_eq!(arena.alloc(shard, 1, 1), None));
}

/// Catches chunk sizes that stay small in a large table, which would make refills frequent, or that grow past the bound on idle memory.
#[test]
fn shares_grow_with_the_table_up_to_a_bound() {
    let arena = arena(2, 0);
    assert_eq!(arena.chunk_words(), MIN_CHUNK);
    arena.alloc(0, 16_000, 0).unwrap();
    assert_eq!(arena.chunk_words(), 1000);
    arena.alloc(0, 16 * MAX_CHUNK as u32 + 1000, 0).unwrap();
    assert_eq!(arena.chunk_words(), MAX_CHUNK);
    assert_eq!(arena_of(Layout { chunk_bytes: 800, ..LAYOUT }).chunk_words(), 100);
    // Words that the caller lays out at the front do not count for the chunk size.
    let behind = arena_of(Layout { head_words: 100_000, ..LAYOUT });
    assert_eq!(behind.chunk_words(), MIN_CHUNK);
    behind.alloc(0, 16_000, 0).unwrap();
    assert_eq!(behind.chunk_words(), 2000);
}
