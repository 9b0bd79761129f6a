//! The search over heads against a plain binary search.

use proptest::prelude::*;

use crate::table::eytzinger::Heads;

/// Where `key` belongs, found as an index does it.
fn lower_bound(heads: &Heads, keys: &[Vec<u8>], key: &[u8]) -> usize {
    let candidates = heads.candidates(key);
    let before = |other: &Vec<u8>| **other < *key;
    assert!(keys[..candidates.start].iter().all(before), "{key:?} in {keys:?}: {candidates:?}");
    assert!(keys[candidates.end..].iter().all(|other| **other > *key), "{key:?} in {keys:?}: {candidates:?}");
    candidates.start + keys[candidates].partition_point(before)
}

/// Keys that share prefixes of many lengths, end in zeros, or are a part of another.
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
    // Catches a rank that is off where the last level is not full.
    for len in 0..300usize {
        let keys: Vec<Vec<u8>> = (0..len as u64).map(|i| (2 * i + 1).to_be_bytes().to_vec()).collect();
        let heads = Heads::new(len, |at| &keys[at]);
        for target in 0..=2 * len as u64 + 1 {
            let expected = (target / 2) as usize;
            assert_eq!(lower_bound(&heads, &keys, &target.to_be_bytes()), expected, "{target} of {len}");
            assert!(
                heads.candidates(&target.to_be_bytes()).len() <= 1,
                "different heads are told apart without their keys"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_search_by_heads_finds_what_a_binary_search_finds(keys in keys(), others in keys(), repeats in 1usize..4) {
        // Catches equal heads of different keys, a target before, behind or inside the shared prefix, keys that occur
        // several times (the versions of a key over several blocks).
        let mut keys: Vec<Vec<u8>> = keys.iter().flat_map(|key| vec![key.clone(); repeats]).collect();
        keys.sort();
        let heads = Heads::new(keys.len(), |at| &keys[at]);
        for key in keys.iter().chain(&others) {
            prop_assert_eq!(lower_bound(&heads, &keys, key), keys.partition_point(|other| other < key));
        }
    }
}
