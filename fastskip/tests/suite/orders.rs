//! Orders other than that of bytes: the models of the default in each of them, and an order that breaks every promise.

use std::cell::Cell;
use std::cmp::Ordering;
use std::env;

use fastskip::{ConcurrentSkipList, Duplicates, Memtable, Op, Order};
use proptest::prelude::*;

#[cfg(feature = "std")]
use crate::models::order_ops;

/// Slow machines set proptest's variable `PROPTEST_CASES`.
fn config(cases: u32) -> ProptestConfig {
    if env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default() } else { ProptestConfig::with_cases(cases) }
}

thread_local! {
    /// The state of the next lie, and how many answers are true for each that is not. If that number is odd, the same question gets the same answer.
    static LIES: Cell<(u64, u64)> = const { Cell::new((1, 0)) };
}

/// A random number if it is time to lie.
fn lie(a: &[u8], b: &[u8]) -> Option<usize> {
    let (state, truths) = LIES.get();
    let next = |state: u64| state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
    let mut random = next(state);
    if truths % 2 == 1 {
        random = a.iter().chain(b"/").chain(b).fold(random, |random, byte| next(random ^ u64::from(*byte)));
    } else {
        LIES.set((random, truths));
    }
    ((random >> 40) % (truths + 1) == 0).then_some((random >> 33) as usize & 0x7f)
}

/// An order that keeps no promise: sort keys are not those of the keys, nor the same in two calls, and ties are broken in circles.
struct Liar;

struct LyingKey<'k>(&'k [u8]);

impl AsRef<[u8]> for LyingKey<'_> {
    fn as_ref(&self) -> &[u8] {
        match lie(self.0, &[]) {
            None => self.0,
            Some(lie) if lie % 4 == 0 => &[255; 300],
            Some(lie) if lie % 4 == 1 => &[0; 300],
            Some(lie) => &self.0[lie % (self.0.len() + 1)..],
        }
    }
}

impl Order for Liar {
    type SortKey<'k> = LyingKey<'k>;

    fn sort_key(key: &[u8]) -> LyingKey<'_> {
        // Versions of a few keys: long runs that walks skip.
        LyingKey(if key.len() % 2 == 0 { key } else { &key[..1] })
    }

    fn break_tie(a: &[u8], b: &[u8]) -> Ordering {
        match lie(a, b) {
            None => a.len().cmp(&b.len()),
            Some(lie) => [Ordering::Less, Ordering::Equal, Ordering::Greater][lie % 3],
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Store(Vec<Vec<u8>>),
    Run(Vec<u8>, u8),
    Versions(Vec<u8>, u8),
    Delete(Vec<u8>),
    Scramble(u64),
    Lie(u64, u64),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    let begin = prop_oneof![8 => Just(0_usize), 1 => Just(254)];
    let end = prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(b'a'), Just(255)], 1..5);
    (begin, end).prop_map(|(begin, end)| [vec![b'p'; begin], end].concat())
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => prop::collection::vec(key(), 1..40).prop_map(Step::Store),
        2 => (key(), any::<u8>()).prop_map(|(begin, count)| Step::Run(begin, count)),
        2 => (key(), any::<u8>()).prop_map(|(key, count)| Step::Versions(key, count)),
        1 => key().prop_map(Step::Delete),
        1 => any::<u64>().prop_map(Step::Scramble),
        3 => (any::<u64>(), prop_oneof![Just(0_u64), Just(1), Just(5), Just(100), Just(1001)]).prop_map(|(seed, truths)| Step::Lie(seed, truths)),
    ]
}

/// Checks the invariants that hold for every order, also for one that lies: the nodes are one chain, and iterators follow it in both directions.
fn validate_chain(list: &ConcurrentSkipList<Liar>) -> Vec<&[u8]> {
    let keys: Vec<_> = list.iter().map(|entry| entry.key).collect();
    assert_eq!(keys.len(), list.stats().entries);
    assert!(list.iter().rev().map(|entry| entry.key).eq(keys.iter().rev().copied()));
    keys
}

/// Both tables of a lying order. The value of each entry is its key.
struct Tables {
    list: ConcurrentSkipList<Liar>,
    memtables: [Memtable<Liar>; 2],
}

impl Tables {
    fn new() -> Self {
        let memtable =
            |duplicates| Memtable::builder().order::<Liar>().shards(1).max_entries(200).duplicates(duplicates).build();
        let list = ConcurrentSkipList::builder().order::<Liar>().shards(1).build();
        Self { list, memtables: [Duplicates::Reject, Duplicates::Replace].map(memtable) }
    }

    fn run(&self, step: &Step) {
        match step {
            Step::Store(keys) => self.store(keys),
            Step::Run(begin, count) => {
                let keys: Vec<_> = (0..*count / 2).map(|i| [&begin[..], &[i, i % 3]].concat()).collect();
                keys.chunks(7).for_each(|keys| self.store(keys));
            }
            Step::Versions(key, count) => {
                for (memtable, seqno) in
                    self.memtables.iter().flat_map(|memtable| (0..*count).map(move |i| (memtable, i)))
                {
                    let _ = memtable.put(key, seqno.into(), key);
                }
            }
            Step::Delete(key) => {
                self.list.delete(key);
                let _ = self.list.insert_tombstone(key);
                self.memtables.iter().for_each(|memtable| _ = memtable.delete(key, 5));
            }
            Step::Scramble(seed) => {
                self.list.scramble_hints(*seed);
                self.memtables.iter().for_each(|memtable| memtable.scramble_hints(*seed));
            }
            Step::Lie(seed, truths) => LIES.set((*seed, *truths)),
        }
    }

    fn store(&self, keys: &[Vec<u8>]) {
        let entries: Vec<_> = keys.iter().map(|key| (key, key)).collect();
        let _ = self.list.insert_batch(&entries);
        let ops: Vec<_> = keys.iter().map(|key| Op::Put { key, value: key }).collect();
        for memtable in &self.memtables {
            let _ = memtable.apply_at(&ops, 3);
            let _ = memtable.apply(&ops, 4);
        }
        for key in keys {
            self.list.insert(key, key);
            let _ = self.list.get_or_insert(key, key);
            self.memtables.iter().for_each(|memtable| _ = memtable.put(key, 7, key));
        }
    }

    fn check(&self, probes: &[Vec<u8>]) {
        let keys = validate_chain(&self.list);
        assert!(self.list.iter().all(|entry| entry.value == entry.key || entry.is_tombstone));
        let _ = self.list.get_many(probes);
        let snapshot = self.list.snapshot();
        for probe in probes {
            let _ = (self.list.get(probe), snapshot.get(probe), snapshot.range(..probe).rev().count());
            assert!(snapshot.range(probe..).count() <= keys.len());
            let mut cursor = self.list.cursor();
            cursor.seek_for_prev(probe);
            assert!(std::iter::from_fn(|| cursor.prev_entry()).count() <= keys.len());
        }
        for memtable in &self.memtables {
            let versions: Vec<_> = memtable.all_versions().collect();
            assert_eq!(versions.len(), memtable.len());
            assert!(
                versions
                    .iter()
                    .all(|version| version.key == version.value || !version.value.is_empty() || version.seqno == 5)
            );
            assert!(memtable.all_versions().rev().eq(versions.iter().rev().copied()));
            let _ = memtable.get_many(probes, 6);
            for seqno in [6, u64::MAX] {
                // Each of these walks ends.
                let mut both = memtable.range(.., seqno);
                while both.next().is_some() && both.next_back().is_some() {}
                let _ = (memtable.iter(seqno).count(), memtable.iter(seqno).rev().count());
                for probe in probes {
                    let _ = (memtable.get(probe, seqno), memtable.versions_between((probe, seqno)..).rev().count());
                    for mut cursor in [memtable.cursor(), memtable.cursor().visible_at(seqno)] {
                        cursor.seek(probe, seqno);
                        while cursor.next_key().is_some() {}
                        while cursor.prev_key().is_some() {}
                        cursor.seek_for_prev(probe, seqno);
                        while cursor.prev().is_some() {}
                        assert!(cursor.next().is_some() || !cursor.valid());
                    }
                }
            }
        }
    }
}

// Orders do not depend on `std`, and the models in all of them are most of what the suite compiles.
#[cfg(feature = "std")]
proptest! {
    #![proptest_config(config(256))]

    /// Catches a comparison of bytes where an order decides: in a search, a bound, a batch, a step by key, a snapshot or a replacement.
    #[test]
    fn tables_in_every_order_behave_as_maps(input in prop::collection::vec(any::<u8>(), 6..400)) {
        order_ops(&input);
    }

}

proptest! {
    #![proptest_config(config(32))]

    /// Catches a panic, an entry that is lost from the chain, and a walk that does not end, if an order breaks its promises.
    #[test]
    fn a_lying_order_harms_nothing_but_the_order(steps in prop::collection::vec(step(), 1..14), probes in prop::collection::vec(key(), 1..3)) {
        LIES.set((1, 0));
        let tables = Tables::new();
        steps.iter().for_each(|step| tables.run(step));
        tables.check(&probes);
    }
}

/// Catches a link that two writers change at once because a lying order places both nodes everywhere.
#[test]
fn a_lying_order_loses_no_entry_of_concurrent_writers() {
    let list = ConcurrentSkipList::builder().order::<Liar>().shards(2).build();
    let stored: usize = std::thread::scope(|scope| {
        let write = |thread: u64| {
            LIES.set((thread, 50 * thread));
            (0..1000_u32).filter(|i| list.insert(&(i * 8 + thread as u32).to_le_bytes(), b"")).count()
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || write(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let (frozen, _) = list.seal().unwrap();
    assert!(stored > 0 && validate_chain(&frozen).len() == stored);
}
