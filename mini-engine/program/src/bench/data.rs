//! The keys and values of a benchmark. The number of a key determines both, so that every value that is read can be checked.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt, SeedableRng};

/// Bytes of a key: a number in 16 digits, so that keys sort like the numbers.
pub(crate) const KEY_LEN: usize = 16;

/// An endless sequence of random numbers below `limit`, which is not 0. The sequence depends on `seed` and `stream`. Another generator draws the
/// whole state of each stream's generator, so that streams are independent of each other.
pub(crate) fn draws(seed: u64, stream: usize, limit: u64) -> impl Iterator<Item = u64> {
    let mut states = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut random = Xoshiro256PlusPlus::from_rng(&mut states);
    for _ in 0..stream {
        random = Xoshiro256PlusPlus::from_rng(&mut states);
    }
    std::iter::repeat_with(move || random.random_range(0..limit))
}

/// The data that is written and read.
#[derive(Debug)]
pub(crate) struct Data {
    /// The number of keys.
    pub(crate) keys: u64,
    value_len: usize,
}

impl Data {
    pub(crate) fn new(keys: u64, value_len: usize) -> Self {
        Self { keys, value_len }
    }

    pub(crate) fn key(number: u64) -> [u8; KEY_LEN] {
        let mut key = [b'0'; KEY_LEN];
        let mut rest = number;
        for digit in key.iter_mut().rev() {
            *digit += (rest % 10) as u8;
            rest /= 10;
        }
        key
    }

    /// The number of `key`, if it is a key of the benchmark.
    pub(crate) fn number(key: &[u8]) -> Option<u64> {
        let digits = std::str::from_utf8(key).ok().filter(|digits| digits.len() == KEY_LEN)?;
        digits.parse().ok()
    }

    /// Puts the value of key `number` into `value`: half of it random, so that it compresses to about half.
    pub(crate) fn fill(&self, number: u64, value: &mut Vec<u8>) {
        value.clear();
        value.resize(self.value_len.div_ceil(2), 0);
        Xoshiro256PlusPlus::seed_from_u64(number).fill_bytes(value);
        value.extend_from_within(..self.value_len / 2);
    }

    /// Bytes of an entry.
    pub(crate) fn entry_len(&self) -> u64 {
        (KEY_LEN + self.value_len) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_their_numbers_and_values_have_the_length_asked_for() {
        // Catches a key that differs from the checked one, and a value that is a byte too short.
        for number in [0, 9, 10, 123_456, 9_999_999_999_999_999] {
            assert_eq!(Data::number(&Data::key(number)), Some(number));
            assert_eq!(Data::key(number), format!("{number:016}").as_bytes());
        }
        assert_eq!((Data::number(b"1"), Data::number(b"000000000000000x")), (None, None));
        let mut value = Vec::new();
        for len in [0, 1, 7, 8, 9, 100, 101] {
            Data::new(1, len).fill(3, &mut value);
            assert_eq!(value.len(), len);
        }
    }
}
