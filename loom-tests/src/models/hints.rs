//! I2, I3: the index under concurrent writers. A hint leads to a written and linked node, despite other changes to its block. A search finds every
//! key, whatever the index contains.

use crate::check::{Most, Program};
use crate::index::Ties;
use crate::models::table::{config, hinted, through};
use crate::node::{Predecessor, Target};
use crate::tuning::SLOTS;
pub(super) use crate::tuning::STUCK_LOOKS;
use crate::{InsertError, Lookup, Memtable, Stats};

/// Keys that fill the first leaf, together with the head. All have hints.
const LEAF: &[u8] = b"dhl";

/// Models with two threads that both change the tree have too many executions; a reader that repairs the tree changes it too.
/// Shuttle runs such programs (`loom-tests/shuttle`).
const MOST: Most = Most { preemptions: 2, executions: 20_000 };

/// A memtable with full leaves.
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

/// The keys that [`full`] holds, and a key that splits its leaf.
const SPLIT: &[u8] = b"dhjl";

/// Panics unless a lookup finds the key with its stored value.
fn find(memtable: &Memtable, key: u8) {
    assert_eq!(memtable.get(&[key], 1), Lookup::Value(&[key; 9]), "I3 broken: {}", char::from(key));
}

fn target(key: &[u8]) -> Target<'_> {
    Target { key, version: u64::MAX }
}

/// The slots of the leaves, from the first leaf on along `next`: keys, and a question mark for an empty slot. The chain may contain a block that
/// was never put into the tree.
fn leaves(memtable: &Memtable) -> String {
    let list = memtable.list.made().expect("a model makes its table at once");
    let mut named = String::new();
    let mut place = list.index.hint_behind(target(b""));
    place.iter_mut().for_each(|first| first.slot = 0);
    while let Some(at) = place {
        let hints;
        (hints, place) = list.index.hints_at(at, SLOTS);
        for hint in list.index.pairs(hints).flatten() {
            match hint.map(Predecessor::node) {
                Some(node) => named.extend(node.iter().flat_map(|id| list.node(*id).key()).copied().map(char::from)),
                None => named.push('?'),
            }
        }
    }
    named
}

/// Whether a search for each of `keys` begins at the key itself.
fn are_hinted(memtable: &Memtable, keys: &[u8]) -> bool {
    keys.iter().all(|key| memtable.search_cost(&[*key], 1).nodes == 1)
}

/// Checks a table at rest that holds `keys`. Returns whether all have hints: a writer that finds a locked or replaced block adds no hints.
fn settle(memtable: &Memtable, keys: &[u8]) -> &'static str {
    memtable.validate();
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    assert!(memtable.all_versions().flat_map(|version| version.key).eq(&sorted), "I1 broken");
    assert!(
        memtable.all_versions().rev().flat_map(|version| version.key).eq(sorted.iter().rev()),
        "I3 broken: backward"
    );
    sorted.iter().for_each(|key| find(memtable, *key));
    if are_hinted(memtable, keys) { "all hinted" } else { "some without" }
}

/// Thread 0 stores a key, with a hint and, if it `splits`, a new leaf under a new root. Thread 1 searches for the
/// key. Catches a hint or a block that is seen before it is written.
pub(super) fn written(splits: bool) -> Program<Memtable> {
    Program::new(move || if splits { full() } else { with(2, b"d") })
        .thread(|memtable| put(memtable, b'j'))
        .thread(|memtable| {
            let found = memtable.get(b"j", 1);
            assert!([Lookup::Absent, Lookup::Value(&[b'j'; 9])].contains(&found), "{found:?}");
            if found == Lookup::Absent { "absent" } else { "there" }
        })
        .at_rest(move |memtable| _ = settle(memtable, if splits { SPLIT } else { b"dj" }))
        .most(Most { preemptions: 1, ..MOST })
        .expects(&["absent", "there"])
}

/// Thread 0 splits a full leaf, while another thread runs `other`.
fn beside_split(other: impl Fn(&Memtable) + Send + Sync + 'static) -> Program<Memtable> {
    Program::new(full)
        .thread(|memtable| put(memtable, b'j'))
        .thread(other)
        .at_rest(|memtable| _ = settle(memtable, SPLIT))
        .most(Most { preemptions: 1, ..MOST })
}

/// Thread 0 splits the last leaf; thread 1 follows the chain of leaves as readahead does. Catches a leaf that can be reached before it is written.
pub(super) fn readahead() -> Program<Memtable> {
    beside_split(|memtable| {
        let leaves = leaves(memtable);
        assert!(leaves.chars().all(|named| "?dhjl".contains(named)), "I2 broken: {leaves}");
    })
}

/// Thread 0 splits a leaf; thread 1 searches for a key with a hint in that leaf. Catches a step of a split that leads a search to an offset that is
/// no block, or to a slot behind the key.
pub(super) fn search_beside_split(key: u8) -> Program<Memtable> {
    beside_split(move |memtable| find(memtable, key))
}

/// Two threads add a hint each to one leaf. A thread that finds the leaf locked leaves its key without a hint. Catches a hint that is
/// overwritten, and one that is put into a slot that another writer is moving.
pub(super) fn two_hints() -> Program<Memtable> {
    Program::new(|| with(2, b"h"))
        .threads(2, |memtable, number| put(memtable, b"dl"[number]))
        .at_rest(|memtable| settle(memtable, b"dhl"))
        .most(Most { executions: 60_000, ..MOST })
        .expects(&["all hinted", "some without"])
}

/// Two threads store into one full leaf, so that each tries to split it. A thread that finds a block locked leaves its key without a hint.
/// Catches concurrent splits that lose, double or empty a slot.
pub(super) fn two_splits() -> Program<Memtable> {
    Program::new(full)
        .threads(2, |memtable, number| put(memtable, b"bj"[number]))
        .at_rest(|memtable| _ = settle(memtable, b"bdhjl"))
        .most(MOST)
}

/// Thread 0 stores a key that splits a leaf under a tied root; thread 1 searches for a key behind it. Catches a slot of the root that is visible
/// before its block or its node, and a tie that another key's slot decides permanently.
pub(super) fn beside_ties() -> Program<Memtable> {
    // These keys share more bytes than a partial key has, next to a key that shares none: so the root is tied.
    const TIED: [&[u8]; 7] = [b"z", b"common b", b"common d", b"common f", b"common h", b"common j", b"common l"];
    const NEW: &[u8] = b"common i";
    let find = |memtable: &Memtable, key: &[u8]| {
        assert_eq!(memtable.get(key, 1), Lookup::Value(key), "I3 broken: {}", key.escape_ascii());
    };
    Program::new(|| {
        let memtable: Memtable = hinted(config(2));
        through(0, || TIED.iter().for_each(|key| assert!(memtable.put(key, 1, key).is_ok())));
        let list = memtable.list.made().expect("a model makes its table at once");
        let (mut descent, levels) = list.index.probe_start().expect("a table has a root");
        let is_tied = list.index.probe_down(&mut descent, &target(NEW), Ties::Settle);
        assert!(levels > 0 && is_tied, "the model needs a tied root");
        memtable
    })
    .thread(|memtable| assert!(memtable.put(NEW, 1, NEW).is_ok()))
    .thread(move |memtable| find(memtable, b"common j"))
    .at_rest(move |memtable| {
        memtable.validate();
        TIED.iter().chain([&NEW]).for_each(|key| find(memtable, key));
    })
    .most(Most { preemptions: 1, ..MOST })
}

/// Thread 0 adds a hint to a leaf, and may split it. Thread 1 repairs the index `looks` times. If it finds a block [`STUCK_LOOKS`] times under the
/// same lock acquisition, it replaces the block by a copy, while the other thread changes the block. Catches a copy with a slot that is lost, false
/// or empty, and a lock holder that continues in a replaced block and damages the tree. With fewer `looks`, catches a replacement that comes
/// too early, and a look that overwrites the unlocking, so that the block stays locked.
pub(super) fn replaced(splits: bool, looks: u64) -> Program<Memtable> {
    Program::new(move || if splits { full() } else { with(2, b"dh") })
        .thread(|memtable| put(memtable, b'j'))
        .thread(move |memtable| {
            for _ in 0..looks {
                memtable.list.made().into_iter().for_each(|list| _ = list.index.mend(1, Predecessor::HEAD, 2));
            }
            find(memtable, b'h');
        })
        .at_rest(move |memtable| {
            settle(memtable, if splits { SPLIT } else { b"dhj" });
            // With a split, the ends of chunks are waste too.
            match memtable.stats().memory_wasted {
                _ if splits => "",
                0 => "kept",
                _ => "replaced",
            }
        })
        .most(MOST)
        // A hint is lost if it was put into a replaced block.
        .expects(match splits {
            true => &[""],
            false if looks < STUCK_LOOKS => &["kept"],
            false => &["kept", "replaced"],
        })
}

/// Thread 0 stores into a full leaf, thread 1 freezes. Catches a writer that leaves its gate before its split has ended, so
/// that the frozen table's index still changes.
pub(super) fn frozen() -> Program<Memtable> {
    Program::new(full)
        .thread(|memtable| {
            let stored = memtable.put(b"j", 1, &[b'j'; 9]);
            assert!(matches!(stored, Ok(_) | Err(InsertError::Frozen)));
            if stored.is_ok() { "stored" } else { "refused" }
        })
        .thread(|memtable| {
            memtable.freeze().validate();
            // `total_inserts` is left out, because refused attempts count too.
            let look = || (leaves(memtable), Stats { total_inserts: 0, ..memtable.stats() });
            let then = look();
            assert_eq!(look(), then, "I7 broken: the frozen table's index changed");
            then.0
        })
        .at_rest(|memtable| {
            memtable.validate();
            leaves(memtable)
        })
        // The list omits the last slot, which has no neighbour.
        .expects(&["refused | dhl | dhl", "stored | dhj | dhj"])
}
