//! The filter: its false positives, compared with theory.

use proptest::prelude::*;

use crate::codec::key_hash;
use crate::table::index::filter::{Filter, encoded_len};
use crate::table::index::{rates, theory};

const KEYS: u64 = 50_000;
const ABSENT: u64 = 200_000;

/// A filter, and the number of keys that are not in it and pass. The keys are always the same.
fn false_positives(bits_per_key: f64) -> (Vec<u8>, f64) {
    let hashes = |keys: std::ops::Range<u64>| keys.map(|i| key_hash(&i.to_be_bytes())).collect::<Vec<_>>();
    let encoded = Filter::build(&hashes(0..KEYS), bits_per_key);
    let (filter, absent) = (decoded(&encoded), hashes(1_000_000..1_000_000 + ABSENT));
    let positives = absent.iter().filter(|&&hash| filter.may_contain(hash)).count() as f64;
    (encoded, positives)
}

fn decoded(filter: &[u8]) -> Filter<'_> {
    Filter::decode(filter).expect("own encoding")
}

/// Five standard deviations of a count with the mean `expected`, plus one for small counts.
fn spread(expected: f64) -> f64 {
    5.0 * expected.sqrt() + 1.0
}

#[test]
fn false_positives_are_as_many_as_theory_expects_of_lines() {
    // Catches probes that repeat bits, use bits of the hash that already selected the line, or are too many or too few.
    for bits in [1.0, 2.5, 4.0, 7.3, 10.0, 12.0, 16.0] {
        let (encoded, positives) = false_positives(bits);
        let best = (1..=16).map(|probes| theory::blocked(bits, probes)).fold(1.0, f64::min) * ABSENT as f64;
        // The last line is not completely full, and the bits of a key are not completely independent: this allows 10 %.
        let bound = best * 0.1 + spread(best);
        assert!((positives - best).abs() < bound, "{bits} bits: {positives} of {ABSENT}, expected {best:.0}");
        assert!(encoded.len() as f64 <= KEYS as f64 * bits / 8.0 + 65.0);
        assert_eq!(encoded.len(), encoded_len(KEYS as usize, bits));
    }
}

#[test]
fn the_rates_that_levels_are_planned_by_are_those_of_this_filter() {
    // Catches a change of the filter after which the measured curve is wrong: memory would go to the wrong levels.
    for bits in [1.0, 3.0, 5.0, 8.0, 10.0, 13.0] {
        let positives = false_positives(bits).1;
        let expected = rates::false_positive_rate(bits) * ABSENT as f64;
        let bound = expected * 0.05 + spread(expected);
        assert!((positives - expected).abs() < bound, "{bits} bits: {positives}, the table says {expected:.0}");
    }
}

#[test]
fn no_bits_is_no_filter() {
    // Catches a filter of zero bits that excludes every key.
    assert!(Filter::build(&[1, 2], 0.0).is_empty() && encoded_len(2, 0.0) == 0);
}

proptest! {
    #[test]
    fn a_key_that_was_put_in_is_always_found_and_a_batch_of_probes_answers_as_single_ones_do(
        hashes in prop::collection::vec(any::<u64>(), 0..400), asked in prop::collection::vec(any::<u64>(), 0..100),
        bits in 0.01f64..=32.0,
    ) {
        // Catches a false negative, also through the encoding and in a batch: it would hide a stored key. Also catches a window of a batch with wrong
        // positions, or a last window that is not full.
        let encoded = Filter::build(&hashes, bits);
        let filter = decoded(&encoded);
        prop_assert!(hashes.iter().all(|&hash| filter.may_contain(hash)));
        for asked in [&hashes, &asked] {
            let mut passing = Vec::new();
            filter.may_contain_many(asked, &mut passing);
            let expected: Vec<usize> = (0..asked.len()).filter(|&at| filter.may_contain(asked[at])).collect();
            prop_assert_eq!(passing, expected);
        }
    }

    #[test]
    fn random_bytes_never_panic_the_filter(
        bytes in prop::collection::vec(any::<u8>(), 0..400), hash in any::<u64>(),
    ) {
        // Catches an empty set of lines, or probes past the end of a line.
        if let Ok(filter) = Filter::decode(&bytes) {
            let mut passing = Vec::new();
            filter.may_contain_many(&[hash], &mut passing);
            prop_assert_eq!(passing.is_empty(), !filter.may_contain(hash));
        }
    }
}
