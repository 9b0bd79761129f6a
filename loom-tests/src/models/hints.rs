//! I2, I3: the index beside its writers. A hint leads to a node that was written and linked, whatever else happens to its
//! block; and whatever the index says, every key is found.

use crate::check::{Most, Program};
use crate::index::Ties;
use crate::models::table::{config, hinted, through};
use crate::node::{Predecessor, Target};
pub(super) use crate::tuning::STUCK_LOOKS;
use crate::{InsertError, Lookup, Memtable, Stats};

/// Keys that fill the first leaf, beside the head. All have hints.
const LEAF: &[u8] = b"dhl";

/// Threads that both change the tree, as a reader does that mends it, take more executions than anyone can wait for. Shuttle goes on (`loom-tests/shuttle`).
const MOST: Most = Most { preemptions: 2, executions: 20_000 };

/// A memtable whose leaves have room for no more.
fn full() -> Memtable {
    let memtable = with(2, LEAF);
    assert!(are_hinted(&memtable, LEAF), "the models below need a leaf that is full");
    memtable
}

fn with(shards: usize, keys: &[u8]) -> Memtable {
    let memtable: Memtable = hinted(config(shards));
    through(0, || keys.iter().for_each(|key| put(&memtable, *key)));
    memtable
}

fn put(memtable: &Memtable, key: u8) {
    memtable.put(&[key], 1, &[key; 9]).expect("the table has room");
}

/// Panics unless the key is there, as it was stored.
fn find(memtable: &Memtable, key: u8) {
    assert_eq!(memtable.get(&[key], 1), Lookup::Value(&[key; 9]), "I3 broken: {}", char::from(key));
}

fn target(key: &[u8]) -> Target<'_> {
    Target { key, version: u64::MAX }
}

/// What the leaves name, from the first one on by `next`: keys, and a question mark for an empty slot. A block that was never
/// put into the tree may lie on the way.
fn leaves(memtable: &Memtable) -> String {
    let list = memtable.list();
    let mut named = String::new();
    let mut place = list.index.hint_behind(target(b""));
    while let Some(at) = place {
        let hint;
        (hint, place) = list.index.hint_at(at);
        match hint.map(Predecessor::node) {
            Some(node) => named.extend(node.iter().flat_map(|id| list.node(*id).key()).copied().map(char::from)),
            None if place.is_some_and(|next| next.slot > at.slot) => named.push('?'),
            None => {}
        }
    }
    named
}

/// Whether a search for each of `keys` begins at the key itself.
fn are_hinted(memtable: &Memtable, keys: &[u8]) -> bool {
    keys.iter().all(|key| memtable.search_cost(&[*key], 1).nodes == 1)
}

/// All that must hold of a table at rest that got `keys`. Says whether all have hints: upkeep that meets a lock, or a block that
/// was replaced, leaves some without.
fn settle(memtable: &Memtable, keys: &[u8]) -> String {
    memtable.validate();
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    assert!(memtable.all_versions().flat_map(|version| version.key).eq(&sorted), "I1 broken");
    assert!(
        memtable.all_versions().rev().flat_map(|version| version.key).eq(sorted.iter().rev()),
        "I3 broken: backward"
    );
    sorted.iter().for_each(|key| find(memtable, *key));
    if are_hinted(memtable, keys) { "all hinted" } else { "some without" }.to_owned()
}

/// Thread 0 stores a key, with a hint for it and, with `SPLITS`, a new leaf under a new root. Thread 1 looks for it.
/// Catches a hint or a block that is seen before it is written.
pub(super) struct Written<const SPLITS: bool>(Memtable);

impl<const SPLITS: bool> Written<SPLITS> {
    const BEFORE: &[u8] = if SPLITS { LEAF } else { b"d" };
}

impl<const SPLITS: bool> Program for Written<SPLITS> {
    const THREADS: usize = 2;
    const MOST: Most = Most { preemptions: 1, ..MOST };

    fn new() -> Self {
        Self(if SPLITS { full() } else { with(2, Self::BEFORE) })
    }

    fn thread(&self, number: usize) -> String {
        if number == 0 {
            put(&self.0, b'j');
            return String::new();
        }
        let found = match self.0.get(b"j", 1) {
            Lookup::Absent => "absent",
            found => {
                assert_eq!(found, Lookup::Value(&[b'j'; 9]));
                "there"
            }
        };
        found.to_owned()
    }

    fn at_rest(&self) -> String {
        settle(&self.0, &[Self::BEFORE, b"j"].concat());
        String::new()
    }
}

pub(super) const WRITTEN: &[&str] = &["absent", "there"];

/// Thread 0 splits the last leaf, thread 1 goes along the leaves as readahead does. Catches a leaf that is followed before it is
/// written.
pub(super) struct Leaves(Memtable);

impl Program for Leaves {
    const THREADS: usize = 2;
    const MOST: Most = Most { preemptions: 1, ..MOST };

    fn new() -> Self {
        Self(full())
    }

    fn thread(&self, number: usize) -> String {
        if number == 0 {
            put(&self.0, b'j');
            return String::new();
        }
        let leaves = leaves(&self.0);
        assert!(leaves.chars().all(|named| "?dhjl".contains(named)), "I2 broken: {leaves}");
        String::new()
    }

    fn at_rest(&self) -> String {
        settle(&self.0, b"dhjl");
        String::new()
    }
}

pub(super) const LEAVES: &[&str] = &[""];

/// Two threads add a hint each to one leaf. Who finds it locked leaves its key without. Catches a hint that is overwritten,
/// and one that is put into a slot that another writer is moving.
pub(super) struct TwoHints(Memtable);

impl Program for TwoHints {
    const THREADS: usize = 2;
    const MOST: Most = Most { executions: 60_000, ..MOST };

    fn new() -> Self {
        Self(with(2, b"h"))
    }

    fn thread(&self, number: usize) -> String {
        put(&self.0, b"dl"[number]);
        String::new()
    }

    fn at_rest(&self) -> String {
        settle(&self.0, b"dhl")
    }
}

pub(super) const TWO_HINTS: &[&str] = &["all hinted", "some without"];

/// Two threads store into one full leaf, so that each wants to split it. Catches splits that do not exclude each other: a slot
/// that is lost, doubled or empty.
pub(super) struct TwoSplits(Memtable);

impl Program for TwoSplits {
    const THREADS: usize = 2;
    const MOST: Most = MOST;

    fn new() -> Self {
        Self(full())
    }

    fn thread(&self, number: usize) -> String {
        put(&self.0, b"bj"[number]);
        String::new()
    }

    fn at_rest(&self) -> String {
        settle(&self.0, b"bdhjl");
        String::new()
    }
}

/// Who finds a lock taken leaves its key without a hint.
pub(super) const TWO_SPLITS: &[&str] = &[""];

/// Thread 0 splits a leaf, thread 1 looks for a key that has a hint in it. Catches a step of a split that
/// shows a search a block that is no block, or a slot that leads past its key.
pub(super) struct BesideSplit<const KEY: u8>(Memtable);

impl<const KEY: u8> Program for BesideSplit<KEY> {
    const THREADS: usize = 2;
    const MOST: Most = Most { preemptions: 1, ..MOST };

    fn new() -> Self {
        Self(full())
    }

    fn thread(&self, number: usize) -> String {
        if number == 0 {
            put(&self.0, b'j');
            return String::new();
        }
        find(&self.0, KEY);
        String::new()
    }

    fn at_rest(&self) -> String {
        settle(&self.0, b"dhjl");
        String::new()
    }
}

pub(super) const BESIDE_SPLIT: &[&str] = &[""];

/// Keys that share more than a partial key tells, beside one that shares nothing: so the root is tied.
const TIED: [&[u8]; 7] = [b"z", b"common b", b"common d", b"common f", b"common h", b"common j", b"common l"];

/// Thread 0 stores a key that splits a leaf under a tied root, thread 1 looks for a key behind it. Catches a slot of the root that is
/// seen before the block, or the node, that it names, and ties that are settled by the slot of another key for good.
pub(super) struct BesideTies(Memtable);

impl BesideTies {
    const NEW: &[u8] = b"common i";

    fn find(&self, key: &[u8]) {
        assert_eq!(self.0.get(key, 1), Lookup::Value(key), "I3 broken: {}", key.escape_ascii());
    }
}

impl Program for BesideTies {
    const THREADS: usize = 2;
    const MOST: Most = Most { preemptions: 1, ..MOST };

    fn new() -> Self {
        let memtable: Memtable = hinted(config(2));
        through(0, || TIED.iter().for_each(|key| memtable.put(key, 1, key).expect("the table has room")));
        let list = memtable.list();
        let (mut descent, levels) = list.index.probe_start().expect("a table has a root");
        let is_tied = list.index.probe_down(&mut descent, target(Self::NEW), (Ties::Settle, None), &mut ());
        assert!(levels > 0 && is_tied, "the model needs a tied root");
        Self(memtable)
    }

    fn thread(&self, number: usize) -> String {
        match number {
            0 => self.0.put(Self::NEW, 1, Self::NEW).expect("the table has room"),
            _ => self.find(b"common j"),
        }
        String::new()
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        TIED.iter().chain([&Self::NEW]).for_each(|key| self.find(key));
        String::new()
    }
}

pub(super) const BESIDE_TIES: &[&str] = &[""];

/// Thread 0 adds a hint to a leaf, which with `SPLITS` it splits. Thread 1 mends the index `LOOKS` times: where it finds a lock taken
/// in one hold [`STUCK_LOOKS`] times, it replaces the block by a copy, beside the thread that changes it. Catches a copy with a slot
/// that is lost, false or empty, and a holder that goes on in a block that was replaced and harms the tree; and with too few
/// looks, a block that is replaced, and a look that is put over the unlocking, so that the lock stays taken.
pub(super) struct Replaced<const SPLITS: bool, const LOOKS: u64>(Memtable);

impl<const SPLITS: bool, const LOOKS: u64> Replaced<SPLITS, LOOKS> {
    const BEFORE: &[u8] = if SPLITS { LEAF } else { b"dh" };
}

impl<const SPLITS: bool, const LOOKS: u64> Program for Replaced<SPLITS, LOOKS> {
    const THREADS: usize = 2;
    const MOST: Most = MOST;

    fn new() -> Self {
        Self(if SPLITS { full() } else { with(2, Self::BEFORE) })
    }

    fn thread(&self, number: usize) -> String {
        if number == 0 {
            put(&self.0, b'j');
            return String::new();
        }
        for _ in 0..LOOKS {
            self.0.list().index.mend(number, Predecessor::HEAD, 2);
        }
        find(&self.0, b'h');
        String::new()
    }

    fn at_rest(&self) -> String {
        settle(&self.0, &[Self::BEFORE, b"j"].concat());
        // Beside a split, the ends of chunks are waste too.
        match self.0.stats().memory_wasted {
            _ if SPLITS => "",
            0 => "kept",
            _ => "replaced",
        }
        .to_owned()
    }
}

/// A hint is lost where it was put into a block that was replaced.
pub(super) const REPLACED: &[&str] = &["kept", "replaced"];
pub(super) const LOOKED_AT: &[&str] = &["kept"];
pub(super) const REPLACED_BESIDE_SPLIT: &[&str] = &[""];

/// Thread 0 stores into a full leaf, thread 1 freezes. Catches a writer that leaves its gate before its split has ended: the
/// frozen table's index still changes.
pub(super) struct Frozen(Memtable);

impl Program for Frozen {
    const THREADS: usize = 2;

    fn new() -> Self {
        Self(full())
    }

    fn thread(&self, number: usize) -> String {
        if number == 0 {
            let stored = self.0.put(b"j", 1, &[b'j'; 9]);
            assert!(matches!(stored, Ok(()) | Err(InsertError::Sealed)));
            return if stored.is_ok() { "stored" } else { "refused" }.to_owned();
        }
        let frozen = self.0.freeze();
        frozen.validate();
        // Attempts that are refused still count.
        let look = || (leaves(&self.0), Stats { total_inserts: 0, ..self.0.stats() });
        let then = look();
        assert_eq!(look(), then, "I7 broken: the frozen table's index changed");
        then.0
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        leaves(&self.0)
    }
}

pub(super) const FROZEN: &[&str] = &["refused | dhl | dhl", "stored | dhjl | dhjl"];
