//! I6: the arena allocates no word twice and loses none, limits hold, and statistics are consistent while chunks are fetched. The storage
//! checks that pieces do not overlap.

use core::fmt;

use crate::builder::Config;
use crate::check::{Most, Program};
use crate::mem::arena::{Arena, Layout, Usage};
use crate::models::table::{config, limited, through, unhinted};
use crate::{ConcurrentSkipList, InsertError, Memtable};

/// The words of a memtable entry with a one-byte key and no value: a link, the sequence number, the bytes.
const NODE: usize = 3;
/// The words of the smallest chunk, which is also the memory limit of every model.
const CHUNK: usize = 32;

/// Fills shard 0 with `count` nodes: versions of one key that is greater than all other keys, so that no search steps over them.
fn filled(config: Config, count: usize) -> Memtable {
    let memtable: Memtable = unhinted(config);
    for seqno in 0..count as u64 {
        through(0, || memtable.put(b"z", seqno, b"")).expect("the table has room");
    }
    memtable
}

/// The result of a write as a word.
fn said<T: fmt::Debug>(result: Result<T, InsertError>) -> &'static str {
    assert!(matches!(result, Ok(_) | Err(InsertError::Full)), "{result:?}");
    if result.is_ok() { "stored" } else { "full" }
}

/// Stores one of two keys; another thread stores the other key in another shard.
fn store(memtable: &Memtable, number: usize) -> &'static str {
    said(memtable.put([b"k", b"l"][number], 1, b""))
}

/// The layout of an arena without a list on it.
pub(super) const ONE_SHARD: Layout = Layout {
    shards: 1,
    chunk_bytes: 0,
    max_memory_bytes: 0,
    size_hint: 0,
    huge_pages: false,
    head_words: 1,
    budget: None,
};

/// An arena whose every piece is written to, so that the storage sees an overlap.
pub(super) struct Pieces(Arena<()>);

impl Pieces {
    fn of(layout: Layout) -> Self {
        Self(Arena::new(layout, None).expect("the model's storage refuses nothing"))
    }

    /// Allocates a piece, if the limit allows one.
    fn take(&self, words: usize) -> bool {
        let Some(off) = self.0.alloc(0, words as u32, 0) else { return false };
        self.write(off, words);
        true
    }

    fn write(&self, off: u32, words: usize) {
        // SAFETY: the words were just allocated.
        unsafe { self.0.storage.write(off, 0, &vec![1; words * 8]) };
    }

    fn alloc(&self, words: u32) -> u32 {
        self.0.alloc(0, words, 0).expect("there is no limit")
    }

    fn give_back(&self, off: u32, words: u32) {
        self.0.give_back(0, off, off + words);
    }

    /// The statistics at some moment.
    fn look(&self) -> String {
        let Usage { reserved, idle, .. } = self.0.usage();
        assert!(idle <= reserved, "I6 broken: {idle} words idle of {reserved} reserved");
        format!("{idle} idle of {reserved}")
    }

    /// Returns the reserved and wasted words, and checks that all other words are `count` nodes and idle words.
    fn balance(&self, count: usize) -> String {
        let Usage { reserved, idle, wasted, .. } = self.0.usage();
        assert_eq!(reserved - idle - wasted, (count * NODE) as u64, "I6 broken: words used, and words handed out");
        format!("{reserved} reserved, {wasted} wasted")
    }
}

/// All threads need the next chunk of one shard, which has no chunk yet, or (`had_one`) a full one.
pub(super) fn refill(threads: usize, had_one: bool) -> Program<Pieces> {
    let before = if had_one { CHUNK / NODE } else { 0 };
    Program::new(move || {
        let pieces = Pieces::of(ONE_SHARD);
        (0..before).for_each(|_| assert!(pieces.take(NODE)));
        pieces
    })
    .threads(threads, |pieces, _| assert!(pieces.take(NODE)))
    .at_rest(move |pieces| pieces.balance(before + threads))
    .expects(match (threads, had_one) {
        // One thread fetches the chunk. The other allocates from it, or meanwhile allocates outside of the shard.
        (_, false) => &["32 reserved, 0 wasted", "35 reserved, 0 wasted"],
        // The rest of the old chunk is lost if a piece outside of the shard was allocated right behind that chunk.
        (2, true) => &["64 reserved, 0 wasted", "67 reserved, 0 wasted", "67 reserved, 2 wasted"],
        // The outcomes are those of two threads; the third allocates in either way.
        (_, true) => &[
            "64 reserved, 0 wasted",
            "67 reserved, 0 wasted",
            "67 reserved, 2 wasted",
            "70 reserved, 0 wasted",
            "70 reserved, 2 wasted",
        ],
    })
}

/// The words of a piece that is too large for a chunk, and of one so large that pieces are joined before the range grows.
const SMALL: u32 = 20;
const LARGE: u32 = 300;

/// The way in which a returned piece is allocated again.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Spare {
    /// The piece is allocated unchanged.
    Alone,
    /// Pieces are joined as parts of a shard's chunk.
    InAChunk,
    /// Pieces are joined by an allocation at the arena's frontier.
    BehindTheFrontier,
}

/// Thread 0 returns a piece, allocates it again and returns it, now to the chunk behind it. Thread 1 allocates from the chunk and writes.
pub(super) fn spare_before_a_chunk() -> Program<(Pieces, [u32; 2])> {
    // More words than a chunk has.
    const BEFORE: u32 = CHUNK as u32 + 8;
    Program::new(|| {
        let pieces = Pieces::of(ONE_SHARD);
        let two = [BEFORE, 1].map(|words| pieces.alloc(words));
        (pieces, two)
    })
    .thread(|(pieces, [before, first])| {
        pieces.give_back(*before, BEFORE);
        pieces.give_back(*first, 1);
        let again = pieces.alloc(BEFORE);
        pieces.give_back(again, BEFORE);
    })
    .thread(|(pieces, [before, _])| {
        let off = pieces.alloc(5);
        pieces.write(off, 5);
        if off == *before { "the piece" } else { "the chunk" }.to_owned()
    })
    .at_rest(|(pieces, _)| drop(pieces.look()))
    .expects(&["the chunk", "the piece"])
}

/// Thread 0 returns pieces, and the arena writes its bookkeeping into them as spare pieces. Thread 1 allocates a piece and writes to it.
pub(super) fn spare(how: Spare) -> Program<(Pieces, [u32; 3])> {
    Program::new(|| {
        let pieces = Pieces::of(ONE_SHARD);
        // A full chunk, then three adjacent pieces.
        let _ = pieces.alloc(CHUNK as u32);
        let three = [SMALL, LARGE, SMALL].map(|words| pieces.alloc(words));
        (pieces, three)
    })
    .thread(move |(pieces, [small, large, last])| {
        pieces.give_back(*small, SMALL);
        pieces.give_back(*large, LARGE);
        if how == Spare::BehindTheFrontier {
            pieces.give_back(*last, SMALL);
        }
        if how != Spare::Alone {
            // No piece is large enough, so they are joined.
            let joined = pieces.alloc(LARGE + 1);
            pieces.give_back(joined, LARGE + 1);
        }
        if how == Spare::InAChunk {
            // Becomes the beginning of a chunk.
            pieces.write(pieces.alloc(5), 5);
        }
    })
    .thread(move |(pieces, [.., last])| {
        // Joined pieces have more words than the first of them had.
        let words = match how {
            Spare::Alone => 5,
            Spare::InAChunk => SMALL,
            Spare::BehindTheFrontier => LARGE + 5,
        };
        let off = pieces.alloc(words);
        pieces.write(off, words as usize);
        if off < *last { "a spare piece" } else { "the range" }.to_owned()
    })
    .at_rest(|(pieces, _)| drop(pieces.look()))
    .expects(&["a spare piece", "the range"])
}

/// Two threads of different shards write. The limit leaves room for one more node, mostly in the chunk of one of them; or, if the last node
/// `passes`, only for a node that may exceed the limit.
pub(super) fn last_place(passes: bool) -> Program<Memtable> {
    let max_memory_bytes = if passes { CHUNK * 8 } else { CHUNK * 8 + 8 };
    Program::new(move || filled(limited(2, max_memory_bytes), CHUNK / NODE))
        .threads(2, store)
        .at_rest(|memtable| {
            memtable.validate();
            assert_eq!(said(memtable.put(b"m", 1, b"")), "full");
            let used = memtable.memory_usage() / 8;
            assert!(used <= CHUNK + 1 + NODE, "the limit is passed by more than one node");
        })
        // Limited, because it takes many steps to take back the rests of all chunks.
        .most(Most { preemptions: 2, executions: 40_000 })
        .expects(&["full | stored", "stored | full"])
}

/// Two threads of different shards write to an empty table whose limit is one chunk.
pub(super) fn one_chunk() -> Program<Memtable> {
    Program::new(|| unhinted(limited(2, CHUNK * 8)))
        .threads(2, store)
        .at_rest(Memtable::validate)
        // A thread that allocates while the other one fetches the last chunk may be refused.
        .expects(&["full | stored", "stored | full", "stored | stored"])
}

/// Two threads store while the limit leaves room for `room` entries.
pub(super) fn entries(room: usize) -> Program<Memtable> {
    Program::new(move || filled(Config { max_entries: 1 + room, ..config(2) }, 1))
        .threads(2, store)
        .at_rest(move |memtable| {
            memtable.validate();
            assert_eq!(memtable.len(), 1 + room);
        })
        .expects(if room == 1 { &["full | stored", "stored | full"] } else { &["stored | stored"] })
}

/// Thread 0 fetches a chunk; thread 1 reads the statistics.
pub(super) fn figures() -> Program<Pieces> {
    Program::new(|| Pieces::of(ONE_SHARD))
        .thread(|pieces| assert!(pieces.take(NODE)))
        .thread(Pieces::look)
        .at_rest(|pieces| pieces.balance(1))
        // A chunk that is being fetched is not idle yet.
        .expects(&[
            "0 idle of 0 | 32 reserved, 0 wasted",
            "0 idle of 32 | 32 reserved, 0 wasted",
            "29 idle of 32 | 32 reserved, 0 wasted",
        ])
}

/// Thread 0 needs more than the idle words of the chunk, and so exceeds the limit; thread 1 reads the statistics.
pub(super) fn taken_back() -> Program<Pieces> {
    const WORDS: u32 = CHUNK as u32 - 2;
    Program::new(|| {
        let pieces = Pieces::of(Layout { max_memory_bytes: CHUNK * 8, ..ONE_SHARD });
        assert!(pieces.take(NODE));
        pieces
    })
    .thread(|pieces| assert!(pieces.0.alloc(0, WORDS, WORDS).is_some()))
    .thread(|pieces| drop(pieces.look()))
    .at_rest(|pieces| {
        let Usage { reserved, idle, .. } = pieces.0.usage();
        assert_eq!((reserved, idle), (NODE as u64 + u64::from(WORDS), 0));
    })
    .expects(&[""])
}

/// Thread 0 stores an entry; thread 1 reads all statistics.
pub(super) fn counted() -> Program<Memtable> {
    Program::new(|| unhinted(config(2)))
        .thread(|memtable| store(memtable, 0))
        .thread(|memtable| {
            let stats = memtable.stats();
            assert!(stats.entries <= stats.total_inserts, "I6 broken: an entry is counted, and its attempt is not");
            let is_noted = stats.entries == 0 || stats.highest_seqno.is_some();
            assert!(is_noted, "I6 broken: an entry is counted, and its sequence number is not");
            let least = stats.entries * NODE * 8;
            assert!(stats.memory_usage >= least, "I6 broken: an entry is counted, and its memory is not");
            format!("{} counted", stats.entries)
        })
        .at_rest(Memtable::validate)
        .expects(&["stored | 0 counted", "stored | 1 counted"])
}

/// Threads 0 and 1 allocate pieces from one shard. The limit allows either piece, but not both. A thread for which the other's smaller chunk is
/// too small claims this chunk, is refused, and puts the chunk back. Thread 2 reads the statistics.
pub(super) fn put_back() -> Program<Pieces> {
    // Chunks so large that even a piece that is nearly as large as the limit is allocated from a chunk of the shard.
    let layout = Layout { chunk_bytes: 4 * CHUNK * 8, max_memory_bytes: CHUNK * 8, ..ONE_SHARD };
    Program::new(move || Pieces::of(layout.clone()))
        .thread(|pieces| if pieces.take(NODE) { "small" } else { "" })
        .thread(|pieces| if pieces.take(CHUNK - NODE + 1) { "large" } else { "" })
        .thread(Pieces::look)
        .at_rest(Pieces::look)
        // The stored entries, the statistics seen meanwhile, and the remaining chunks. No chunk remains if one thread allocated outside of the
        // shard while the other was refused after it claimed the chunk.
        .expects(&[
            "large | 0 idle of 0 | 2 idle of 32",
            "large | 0 idle of 32 | 2 idle of 32",
            "large | 2 idle of 32 | 2 idle of 32",
            "large | 0 idle of 0 | 0 idle of 30",
            "large | 0 idle of 30 | 0 idle of 30",
            "small | 0 idle of 0 | 29 idle of 32",
            "small | 0 idle of 32 | 29 idle of 32",
            "small | 29 idle of 32 | 29 idle of 32",
            "small | 0 idle of 0 | 0 idle of 3",
            "small | 0 idle of 3 | 0 idle of 3",
        ])
}

/// Thread 0 fetches the only chunk that the limit allows; thread 1 checks whether the limit is near, or reached.
pub(super) fn pressure() -> Program<ConcurrentSkipList> {
    Program::new(|| unhinted(limited(2, CHUNK * 8)))
        .thread(|list: &ConcurrentSkipList| said(list.try_insert(b"k", b"")))
        .thread(|list| {
            assert!(!list.is_under_backpressure(), "a chunk that is idle counts as used");
            assert_eq!(list.try_delete(b"x"), Ok(false), "a chunk that is idle counts as used");
        })
        .at_rest(|list| {
            list.validate();
            assert!(!list.is_under_backpressure());
        })
        .expects(&["stored"])
}
