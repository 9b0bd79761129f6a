//! I7: the frozen table has every acknowledged entry and no refused one, and nothing is added later.

use crate::check::Program;
use crate::models::table::{config, holding, table, through};
use crate::sync::{AtomicU32, Ordering};
use crate::{ConcurrentSkipList, InsertError, Memtable, Op};

fn keys(list: &ConcurrentSkipList) -> String {
    list.iter().flat_map(|entry| entry.key).copied().map(char::from).collect()
}

/// Each writer inserts its own keys until it is refused, all through one gate; one more thread freezes and reads.
pub(super) fn seal(writers: &'static [&'static [u8]]) -> Program<ConcurrentSkipList> {
    let program = Program::new(|| {
        let list: ConcurrentSkipList = table(config(1));
        through(0, || assert!(list.insert(b"a", b"")));
        list
    });
    let program = program.threads(writers.len(), |list, number| {
        let stored = writers[number].iter().take_while(|key| {
            let stored = list.try_insert(&[**key], b"");
            assert!(matches!(stored, Ok(()) | Err(InsertError::Frozen)), "{stored:?}");
            stored.is_ok()
        });
        stored.copied().map(char::from).collect::<String>()
    });
    program
        .thread(|list| {
            list.freeze();
            let frozen = keys(list);
            assert!(list.is_sealed());
            frozen
        })
        .at_rest(|list| {
            list.validate();
            assert_eq!(list.try_insert(b"z", b""), Err(InsertError::Frozen));
            keys(list)
        })
        // The stored keys, the keys that the freezing thread found, and the keys at the end.
        .expects(match writers.len() {
            1 => &["a | a", "k | ak | ak", "kl | akl | akl"],
            _ => &["a | a", "k | ak | ak", "k | l | akl | akl", "l | al | al"],
        })
}

/// The way in which a reservation ends while other threads freeze.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fate {
    Dropped,
    /// The batch is applied with a grouped search.
    Applied,
    /// The batch is appended behind the last entries of the shard.
    Follows,
}

/// Thread 0 reserves room for a batch; `freezers` other threads freeze.
pub(super) fn drain(fate: Fate, freezers: usize) -> Program<Memtable> {
    // A run, or a node behind all later nodes, so that a batch does not follow a run.
    Program::new(move || holding(2, if fate == Fate::Follows { &[b"a", b"b"] } else { &[b"b", b"z"] }))
        .thread(move |memtable| {
            match memtable.reserve(&[Op::Put { key: b"k", value: b"v" }, Op::Delete { key: b"l" }]) {
                Err(refusal) => {
                    assert_eq!(refusal, InsertError::Frozen);
                    "refused"
                }
                Ok(_) if fate == Fate::Dropped => "dropped",
                Ok(reservation) => {
                    assert_eq!(reservation.apply(2).stored, 2);
                    "applied"
                }
            }
        })
        .threads(freezers, |memtable, _| {
            let frozen = memtable.freeze();
            let count = frozen.all_versions().count();
            assert_eq!(frozen.all_versions().count(), count, "I7 broken: the frozen table changed");
            count.to_string()
        })
        .at_rest(|memtable| {
            memtable.validate();
            assert!(memtable.is_frozen());
        })
        .expects(match (fate, freezers) {
            (Fate::Dropped, _) => &["dropped | 2", "refused | 2"],
            (_, 1) => &["applied | 4", "refused | 2"],
            _ => &["applied | 4 | 4", "refused | 2 | 2"],
        })
}

/// Thread 0 writes; thread 1 closes the gates without waiting, and reads if nobody is inside.
pub(super) fn begun() -> Program<Memtable> {
    Program::new(|| holding(2, &[b"b", b"z"]))
        .thread(|memtable| if memtable.put(b"k", 2, b"").is_ok() { "stored" } else { "refused" })
        .thread(|memtable| {
            memtable.begin_freeze();
            if memtable.is_drained() { memtable.all_versions().count().to_string() } else { "open".to_owned() }
        })
        .at_rest(|memtable| {
            memtable.validate();
            assert!(memtable.is_drained());
        })
        .expects(&["refused | 2", "refused | open", "stored | 3", "stored | open"])
}

/// Thread 0 writes, thread 1 closes the gates, and thread 2 freezes and so waits.
pub(super) fn begun_and_waited_for() -> Program<Memtable> {
    Program::new(|| holding(1, &[b"b"]))
        .thread(|memtable| if memtable.put(b"k", 2, b"").is_ok() { "stored" } else { "refused" })
        .thread(Memtable::begin_freeze)
        .thread(|memtable| {
            let frozen = memtable.freeze();
            assert!(frozen.is_drained());
            frozen.all_versions().count().to_string()
        })
        .at_rest(Memtable::validate)
        .expects(&["refused | 1", "stored | 2"])
}

/// A table, and whether its successor is published.
pub(super) type Published = (Memtable, AtomicU32);

/// Thread 0 publishes a value, as an engine publishes its next table, and freezes. Once `learns` returns true for the frozen table, thread 1 must
/// see the published value.
pub(super) fn successor(learns: fn(&Memtable) -> bool) -> Program<Published> {
    Program::new(|| (table(config(2)), AtomicU32::new(0)))
        .thread(|(memtable, published): &Published| {
            published.store(1, Ordering::Relaxed);
            memtable.freeze();
        })
        .thread(move |(memtable, published)| {
            if !learns(memtable) {
                return "open";
            }
            assert!(memtable.is_frozen(), "I7 broken: refused as frozen, and said not to be");
            assert_eq!(published.load(Ordering::Relaxed), 1, "I7 broken: frozen, and what led to it is not there");
            "frozen"
        })
        .at_rest(|(memtable, _)| memtable.validate())
        .expects(&["frozen", "open"])
}

pub(super) fn by_refusal(memtable: &Memtable) -> bool {
    memtable.put(b"k", 1, b"").is_err()
}
