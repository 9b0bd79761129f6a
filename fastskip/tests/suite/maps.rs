//! Both tables against ordinary maps, with operations that are drawn at random.

use std::env;

use fastskip::ConcurrentSkipList;
use proptest::prelude::*;

use crate::models::list::skiplist_ops;
use crate::models::memtable::memtable_ops;

/// Slow machines set proptest's own `PROPTEST_CASES`.
fn config() -> ProptestConfig {
    if env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default() } else { ProptestConfig::with_cases(1024) }
}

proptest! {
    #![proptest_config(config())]

    /// Catches any read or write method that differs from a map, with limits, freezes, and snapshots held over later writes.
    #[test]
    fn list_behaves_as_a_map(input in prop::collection::vec(any::<u8>(), 5..400)) {
        skiplist_ops(&input);
    }

    /// Catches any read or write method that differs from a map of versions, live and frozen.
    #[test]
    fn memtable_behaves_as_a_map_of_versions(input in prop::collection::vec(any::<u8>(), 5..400)) {
        memtable_ops(&input);
    }
}

/// Catches a search that follows the link at the end of a level as if it led to a node, when the key sought begins with the greatest possible
/// bytes.
#[test]
fn keys_that_look_like_the_end_of_a_level_are_found() {
    let list = ConcurrentSkipList::with_shards(1);
    let keys: Vec<_> = (0..300).map(|len| vec![0xff; len]).collect();
    for key in keys.iter().rev().chain(&keys) {
        assert_eq!(list.get(key).is_some(), list.contains_key(key));
        list.insert(key, &[key.len() as u8]);
        assert_eq!(list.get(key), Some((&[key.len() as u8][..], false)));
    }
    assert!(list.iter().map(|entry| entry.key).eq(keys.iter().map(Vec::as_slice)));
    list.validate();
}
