//! Both tables with an index that is corrupted again and again: hints name arbitrary nodes, partial keys and prefixes are false, blocks are lost.
//! Answers come from the list alone, so they must not change.

use std::collections::BTreeMap;

use fastskip::{ConcurrentSkipList, InsertError, Lookup, Memtable, Op};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Operation {
    /// Keys, stored one by one or, with `true`, as a batch.
    Store(Vec<Vec<u8>>, bool),
    /// Ascending keys with a common prefix: leaves and the blocks above them are split.
    Run(Vec<u8>, u16, bool),
    Scramble(u64),
}

/// Short keys of few distinct bytes, so that they are prefixes of each other and end in zeros. They follow common prefixes
/// that are as long as partial keys can skip, or longer.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let begin = prop_oneof![6 => Just(0_usize), 2 => Just(5), 1 => Just(254), 1 => Just(300)];
    let end = prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(b'a'), Just(255), any::<u8>()], 0..6);
    (begin, end).prop_map(|(begin, end)| [vec![b'p'; begin], end].concat())
}

fn step() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => (prop::collection::vec(key(), 1..40), any::<bool>()).prop_map(|(keys, batch)| Operation::Store(keys, batch)),
        2 => (key(), 1..300_u16, any::<bool>()).prop_map(|(begin, count, down)| Operation::Run(begin, count, down)),
        3 => any::<u64>().prop_map(Operation::Scramble),
    ]
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Stores the keys of a step in both tables and the map.
fn store(memtable: &Memtable, list: &ConcurrentSkipList, model: &mut Model, keys: &[Vec<u8>], batch: bool) {
    let ops: Vec<_> = keys.iter().map(|key| Op::Put { key, value: key }).collect();
    if batch {
        let stored = memtable.reserve(&ops[..]).unwrap().apply((1 << 20) + memtable.len() as u64).stored;
        // Each write of a batch has its own sequence number, so none is a duplicate.
        assert_eq!(stored, keys.len());
        let entries: Vec<_> = keys.iter().map(|key| (key, key)).collect();
        let _ = list.insert_batch(&entries);
    } else {
        for key in keys {
            let is_new = model.insert(key.clone(), key.clone()).is_none();
            // A batch may have stored the key under another sequence number.
            let put = memtable.put(key, 1, key);
            assert!(put.is_ok() || !is_new && put == Err(InsertError::DuplicateKey), "{key:?}: {put:?}");
            assert_eq!(list.insert(key, key), is_new, "{key:?}");
        }
    }
    model.extend(keys.iter().map(|key| (key.clone(), key.clone())));
}

fn compare(memtable: &Memtable, list: &ConcurrentSkipList, model: &Model, probes: &[Vec<u8>]) {
    memtable.validate_scrambled();
    list.validate_scrambled();
    assert!(memtable.iter(u64::MAX).map(|version| version.key).eq(model.keys()));
    assert!(memtable.iter(u64::MAX).rev().map(|version| version.key).eq(model.keys().rev()));
    assert!(list.iter().map(|entry| entry.key).eq(model.keys()));
    assert!(list.iter().rev().map(|entry| entry.key).eq(model.keys().rev()));
    let keys: Vec<_> = model.keys().chain(probes).collect();
    let expected: Vec<_> = keys.iter().map(|key| model.get(*key)).collect();
    let lookups = memtable.get_many(&keys, u64::MAX);
    let live = list.get_many(&keys);
    for (((key, expected), many), live) in keys.iter().zip(&expected).zip(lookups).zip(live) {
        let lookup = expected.map_or(Lookup::Absent, |value| Lookup::Value(value));
        assert_eq!((memtable.get(key, u64::MAX), many), (lookup, lookup), "{key:?}");
        assert_eq!((list.get_live(key), live), (expected.map(Vec::as_slice), expected.map(Vec::as_slice)), "{key:?}");
    }
    for probe in probes {
        let after = model.range(probe.clone()..).map(|(key, _)| key);
        assert!(memtable.range(&probe[..].., u64::MAX).map(|version| version.key).eq(after), "{probe:?}");
        let mut cursor = list.cursor();
        cursor.seek_for_prev(probe);
        let before = model.range(..=probe.clone()).next_back().map(|(key, _)| key.as_slice());
        assert_eq!(cursor.entry().map(|entry| entry.key), before, "{probe:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Catches an answer that depends on a hint: a hint that is used without a comparison with its target's key, a trusted false hint, or a block
    /// whose upkeep relies on the contents of other blocks.
    #[test]
    fn answers_do_not_depend_on_hints(steps in prop::collection::vec(step(), 1..12), probes in prop::collection::vec(key(), 1..6)) {
        let memtable = Memtable::builder().shards(1).build();
        let list = ConcurrentSkipList::builder().shards(1).build();
        let mut model = Model::new();
        for step in steps {
            match step {
                Operation::Store(keys, batch) => store(&memtable, &list, &mut model, &keys, batch),
                Operation::Run(begin, count, down) => {
                    let number = |i: u16| if down { count - i } else { i };
                    let keys: Vec<_> = (0..count).map(|i| [&begin[..], &number(i).to_be_bytes()].concat()).collect();
                    store(&memtable, &list, &mut model, &keys, false);
                }
                Operation::Scramble(seed) => {
                    memtable.scramble_hints(seed);
                    list.scramble_hints(seed);
                }
            }
            compare(&memtable, &list, &model, &probes);
        }
    }
}
