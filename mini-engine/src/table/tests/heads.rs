//! The search over heads, compared with a plain binary search.

use std::cell::Cell;

use proptest::prelude::*;

use crate::table::index::heads::Heads;

/// The index of `key`, found in the same way as in an index, and the number of compared keys.
fn lower_bound(heads: &Heads, keys: &[Vec<u8>], key: &[u8]) -> (usize, u32) {
    let compared = Cell::new(0);
    let found = heads.first_not_before(key, |at| {
        compared.set(compared.get() + 1);
        *keys[at] < *key
    });
    (found, compared.get())
}

/// Keys that share prefixes of many lengths, end in zeros, or are prefixes of each other.
fn keys() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let byte = prop::sample::select(&[0u8, 1, b'a', 0xff][..]);
    let key = (
        prop::sample::select(&["", "user/", "user/12345678/", "\0\0\0\0\0\0\0\0\0"][..]),
        prop::collection::vec(byte, 0..12),
    )
        .prop_map(|(start, rest)| [start.as_bytes(), &rest].concat());
    prop::collection::vec(key, 0..80)
}

#[test]
fn every_key_of_every_small_list_is_found_at_its_rank() {
    // Catches an index that is off by one at either end.
    for len in 0..300usize {
        let keys: Vec<Vec<u8>> = (0..len as u64).map(|i| (2 * i + 1).to_be_bytes().to_vec()).collect();
        let heads = Heads::new(&[], len, |at| &keys[at]);
        for target in 0..=2 * len as u64 + 1 {
            let expected = (target / 2) as usize;
            let (found, compared) = lower_bound(&heads, &keys, &target.to_be_bytes());
            assert_eq!(found, expected, "{target} of {len}");
            assert!(compared <= 1, "different heads are told apart without their keys");
        }
    }
}

#[test]
fn heads_that_tell_too_little_are_not_kept() {
    // Catches memory and searches that are wasted if a long middle part is the same in nearly all keys.
    let paths: Vec<Vec<u8>> = (0..2000).map(|i| format!("{}/the/same/for/all/{i:06}", i / 1000).into_bytes()).collect();
    let heads = Heads::new(&[], paths.len(), |at| &paths[at]);
    assert!(heads.memory_len() < 64);
    for (at, path) in paths.iter().enumerate() {
        let (found, compared) = lower_bound(&heads, &paths, path);
        assert!(found == at && compared <= 11, "{found} for {at} after {compared}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_search_by_heads_finds_what_a_binary_search_finds(keys in keys(), others in keys(), repeats in 1usize..4) {
        // Catches equal heads of different keys; a target before, after or inside the shared prefix; and keys that occur several times (the versions
        // of a key in several blocks).
        let mut keys: Vec<Vec<u8>> = keys.iter().flat_map(|key| vec![key.clone(); repeats]).collect();
        keys.sort();
        let heads = Heads::new(&[], keys.len(), |at| &keys[at]);
        for key in keys.iter().chain(&others) {
            prop_assert_eq!(lower_bound(&heads, &keys, key).0, keys.partition_point(|other| other < key));
        }
    }
}
