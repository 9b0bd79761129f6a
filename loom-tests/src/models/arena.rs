//! I6: the arena hands out no word twice and loses none, limits hold, and figures do not contradict each other while
//! chunks are fetched. That pieces do not overlap is watched by the storage.

use crate::builder::Config;
use crate::check::{Most, Program};
use crate::mem::arena::{Arena, Layout, Usage};
use crate::models::table::{config, through, unhinted};
use crate::{ConcurrentSkipList, InsertError, Memtable};

/// The words that one-byte keys without values take in a memtable: a link, the number, the bytes.
const NODE: usize = 3;
/// The words of the smallest chunk, which is also every model's limit on memory.
const CHUNK: usize = 32;

/// Fills shard 0 with `count` nodes: the versions of one key, behind all that comes, so that no search walks over them.
fn filled(config: Config, count: usize) -> Memtable {
    let memtable: Memtable = unhinted(config);
    for seqno in 0..count as u64 {
        through(0, || memtable.put(b"z", seqno, b"")).expect("the table has room");
    }
    memtable
}

/// What a write came to, in a word.
fn said(result: Result<(), InsertError>) -> String {
    match result {
        Ok(()) => "stored".to_owned(),
        Err(refusal) => {
            assert_eq!(refusal, InsertError::Full);
            "full".to_owned()
        }
    }
}

/// The layout of an arena without a list on it.
const ONE_SHARD: Layout =
    Layout { shards: 1, chunk_bytes: 0, max_memory_bytes: 0, size_hint: 0, huge_pages: false, head_words: 1 };

/// An arena whose every piece is written to, so that the storage sees an overlap.
struct Pieces(Arena<()>);

impl Pieces {
    fn of(layout: Layout) -> Self {
        Self(Arena::new(layout, None).expect("the model's storage refuses nothing"))
    }

    /// Takes a piece, if there is one within the limit.
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

    /// The figures as they are at some moment.
    fn look(&self) -> String {
        let Usage { reserved, idle, .. } = self.0.usage();
        assert!(idle <= reserved, "I6 broken: {idle} words idle of {reserved} reserved");
        format!("{idle} idle of {reserved}")
    }

    /// What is reserved and wasted; the rest must be `count` nodes, and idle.
    fn balance(&self, count: usize) -> String {
        let Usage { reserved, idle, wasted, .. } = self.0.usage();
        assert_eq!(reserved - idle - wasted, (count * NODE) as u64, "I6 broken: words used, and words handed out");
        format!("{reserved} reserved, {wasted} wasted")
    }
}

/// Threads need the next chunk of one shard; it had none before, or with `HAD_ONE` a full one.
pub(super) struct Refill<const THREADS: usize, const HAD_ONE: bool>(Pieces);

impl<const THREADS: usize, const HAD_ONE: bool> Refill<THREADS, HAD_ONE> {
    const BEFORE: usize = if HAD_ONE { CHUNK / NODE } else { 0 };
}

impl<const THREADS: usize, const HAD_ONE: bool> Program for Refill<THREADS, HAD_ONE> {
    const THREADS: usize = THREADS;

    fn new() -> Self {
        let pieces = Pieces::of(ONE_SHARD);
        (0..Self::BEFORE).for_each(|_| assert!(pieces.take(NODE)));
        Self(pieces)
    }

    fn thread(&self, _: usize) -> String {
        assert!(self.0.take(NODE));
        String::new()
    }

    fn at_rest(&self) -> String {
        self.0.balance(Self::BEFORE + THREADS)
    }
}

/// One thread fetches the chunk and the other takes from it, or goes past the shard meanwhile.
pub(super) const REFILL: &[&str] = &["32 reserved, 0 wasted", "35 reserved, 0 wasted"];
/// The rest of the old chunk is lost where the piece that went past the shard lies between.
pub(super) const REFILL_HAD_ONE: &[&str] = &["64 reserved, 0 wasted", "67 reserved, 0 wasted", "67 reserved, 2 wasted"];
/// As with two threads, and the third takes either way.
pub(super) const REFILL_OF_THREE: &[&str] = &[
    "64 reserved, 0 wasted",
    "67 reserved, 0 wasted",
    "67 reserved, 2 wasted",
    "70 reserved, 0 wasted",
    "70 reserved, 2 wasted",
];

/// Words of a piece that is taken from no chunk, and of one so large that pieces are joined before the range grows.
const SMALL: u32 = 20;
const LARGE: u32 = 300;

/// One thread gives pieces back, which are written to as spare pieces, and the other stores in them. They come to it as they are; or with
/// `JOINED` as a part of a shard's chunk; or with `AT_THE_END` from behind the frontier.
pub(super) struct Spare<const JOINED: bool, const AT_THE_END: bool> {
    pieces: Pieces,
    small: u32,
    large: u32,
    last: u32,
}

impl<const JOINED: bool, const AT_THE_END: bool> Program for Spare<JOINED, AT_THE_END> {
    const THREADS: usize = 2;

    fn new() -> Self {
        let pieces = Pieces::of(ONE_SHARD);
        // A full chunk, then three pieces that touch.
        let _ = pieces.alloc(CHUNK as u32);
        let [small, large, last] = [SMALL, LARGE, SMALL].map(|words| pieces.alloc(words));
        Self { pieces, small, large, last }
    }

    fn thread(&self, number: usize) -> String {
        let Self { pieces, small, large, last } = self;
        if number == 1 {
            // Where pieces were joined, more than the first of them has.
            let words = if AT_THE_END {
                LARGE + 5
            } else if JOINED {
                SMALL
            } else {
                5
            };
            let off = pieces.alloc(words);
            pieces.write(off, words as usize);
            return if off < *last { "a spare piece" } else { "the range" }.to_owned();
        }
        pieces.give_back(*small, SMALL);
        pieces.give_back(*large, LARGE);
        if AT_THE_END {
            pieces.give_back(*last, SMALL);
        }
        if JOINED || AT_THE_END {
            // None fits: they are joined.
            let joined = pieces.alloc(LARGE + 1);
            pieces.give_back(joined, LARGE + 1);
        }
        if JOINED {
            // Becomes the first of a chunk.
            pieces.write(pieces.alloc(5), 5);
        }
        String::new()
    }

    fn at_rest(&self) -> String {
        self.pieces.look();
        String::new()
    }
}

/// What the other thread came to store in.
pub(super) const SPARE: &[&str] = &["a spare piece", "the range"];

/// Two threads of different shards write where there is room for one more node within the limit, most of it in the chunk of one
/// of them, or with `OVER` for none but the one that may pass it.
pub(super) struct LastPlace<const OVER: bool>(Memtable);

impl<const OVER: bool> Program for LastPlace<OVER> {
    const THREADS: usize = 2;
    /// Taking back what all chunks have left has many steps.
    const MOST: Most = Most { preemptions: 2, executions: 40_000 };

    fn new() -> Self {
        let config = config(2);
        let config = Config { max_memory_bytes: if OVER { CHUNK * 8 } else { CHUNK * 8 + 8 }, ..config };
        Self(filled(config, CHUNK / NODE))
    }

    fn thread(&self, number: usize) -> String {
        said(self.0.put([b"k", b"l"][number], 1, b""))
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        assert_eq!(said(self.0.put(b"m", 1, b"")), "full");
        let used = self.0.memory_usage() / 8;
        assert!(used <= CHUNK + 1 + NODE, "the limit is passed by more than one node");
        String::new()
    }
}

pub(super) const LAST_PLACE: &[&str] = &["full | stored", "stored | full"];

/// Two threads of different shards write to an empty table whose limit is one chunk.
pub(super) struct OneChunk(Memtable);

impl Program for OneChunk {
    const THREADS: usize = 2;

    fn new() -> Self {
        Self(unhinted(Config { max_memory_bytes: CHUNK * 8, ..config(2) }))
    }

    fn thread(&self, number: usize) -> String {
        said(self.0.put([b"k", b"l"][number], 1, b""))
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        String::new()
    }
}

/// Who asks while the other one fetches the last chunk may be refused.
pub(super) const ONE_CHUNK: &[&str] = &["full | stored", "stored | full", "stored | stored"];

/// Two threads store where `ROOM` entries are left of the limit.
pub(super) struct Entries<const ROOM: usize>(Memtable);

impl<const ROOM: usize> Program for Entries<ROOM> {
    const THREADS: usize = 2;

    fn new() -> Self {
        Self(filled(Config { max_entries: 1 + ROOM, ..config(2) }, 1))
    }

    fn thread(&self, number: usize) -> String {
        said(self.0.put([b"k", b"l"][number], 1, b""))
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        assert_eq!(self.0.len(), 1 + ROOM);
        String::new()
    }
}

pub(super) const ONE_ENTRY: &[&str] = LAST_PLACE;
pub(super) const TWO_ENTRIES: &[&str] = &["stored | stored"];

/// Thread 0 fetches a chunk; thread 1 reads the figures.
pub(super) struct Figures(Pieces);

impl Program for Figures {
    const THREADS: usize = 2;

    fn new() -> Self {
        Self(Pieces::of(ONE_SHARD))
    }

    fn thread(&self, number: usize) -> String {
        if number == 0 {
            assert!(self.0.take(NODE));
            return String::new();
        }
        self.0.look()
    }

    fn at_rest(&self) -> String {
        self.0.balance(1)
    }
}

/// A chunk that is being fetched is not idle yet.
pub(super) const FIGURES: &[&str] = &[
    "0 idle of 0 | 32 reserved, 0 wasted",
    "0 idle of 32 | 32 reserved, 0 wasted",
    "29 idle of 32 | 32 reserved, 0 wasted",
];

/// Thread 0 needs what is idle in the chunk and more, and passes the limit with it; thread 1 reads the figures.
pub(super) struct TakenBack(Pieces);

impl TakenBack {
    const WORDS: u32 = CHUNK as u32 - 2;
}

impl Program for TakenBack {
    const THREADS: usize = 2;

    fn new() -> Self {
        let pieces = Pieces::of(Layout { max_memory_bytes: CHUNK * 8, ..ONE_SHARD });
        assert!(pieces.take(NODE));
        Self(pieces)
    }

    fn thread(&self, number: usize) -> String {
        if number == 0 {
            assert!(self.0.0.alloc(0, Self::WORDS, Self::WORDS).is_some());
            return String::new();
        }
        self.0.look();
        String::new()
    }

    fn at_rest(&self) -> String {
        let Usage { reserved, idle, .. } = self.0.0.usage();
        assert_eq!((reserved, idle), (NODE as u64 + u64::from(Self::WORDS), 0));
        String::new()
    }
}

/// Thread 0 stores an entry; thread 1 reads all figures.
pub(super) struct Counted(Memtable);

impl Program for Counted {
    const THREADS: usize = 2;

    fn new() -> Self {
        Self(unhinted(config(2)))
    }

    fn thread(&self, number: usize) -> String {
        if number == 0 {
            return said(self.0.put(b"k", 1, b""));
        }
        let stats = self.0.stats();
        assert!(stats.entries <= stats.total_inserts, "I6 broken: an entry is counted, and its attempt is not");
        assert!(
            stats.memory_usage >= stats.entries * NODE * 8,
            "I6 broken: an entry is counted, and its memory is not"
        );
        format!("{} counted", stats.entries)
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        String::new()
    }
}

pub(super) const COUNTED: &[&str] = &["stored | 0 counted", "stored | 1 counted"];

/// Threads 0 and 1 want pieces of one shard, of which the limit allows either, and then not the other. Whom the
/// smaller chunk of the other does not serve claims it, is refused, and puts it back. Thread 2 reads the figures.
pub(super) struct PutBack(Pieces);

impl Program for PutBack {
    const THREADS: usize = 3;

    fn new() -> Self {
        // Chunks so large that a piece of nearly the limit is not fetched past the shard.
        Self(Pieces::of(Layout { chunk_bytes: 4 * CHUNK * 8, max_memory_bytes: CHUNK * 8, ..ONE_SHARD }))
    }

    fn thread(&self, number: usize) -> String {
        match number {
            0 => if self.0.take(NODE) { "small" } else { "" }.to_owned(),
            1 => if self.0.take(CHUNK - NODE + 1) { "large" } else { "" }.to_owned(),
            _ => self.0.look(),
        }
    }

    fn at_rest(&self) -> String {
        self.0.look()
    }
}

/// Who is stored, what is seen meanwhile, what is left: no chunk, where one was taken past the shard while the other
/// was refused the chunk that it had claimed.
pub(super) const PUT_BACK: &[&str] = &[
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
];

/// Thread 0 fetches the only chunk within the limit; thread 1 asks whether the limit is near, or reached.
pub(super) struct Pressure(ConcurrentSkipList);

impl Program for Pressure {
    const THREADS: usize = 2;

    fn new() -> Self {
        Self(unhinted(Config { max_memory_bytes: CHUNK * 8, ..config(2) }))
    }

    fn thread(&self, number: usize) -> String {
        if number == 0 {
            return said(self.0.try_insert(b"k", b""));
        }
        assert!(!self.0.is_under_backpressure(), "a chunk that is idle counts as used");
        assert_eq!(self.0.try_delete(b"x"), Ok(false), "a chunk that is idle counts as used");
        String::new()
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        assert!(!self.0.is_under_backpressure());
        String::new()
    }
}

pub(super) const PRESSURE: &[&str] = &["stored"];
