//! The keys and values of a benchmark: the number of a key determines both, so that every value read can be checked.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes of a key: a number in 16 digits, which have the order of the numbers.
pub(crate) const KEY_LEN: usize = 16;

/// A sequence of numbers that look random and that a seed determines: hashes of 1, 2, 3 and so on.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    seed: u64,
    drawn: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, drawn: 0 }
    }

    fn next(&mut self) -> u64 {
        self.drawn += 1;
        xxh3_64_with_seed(&self.drawn.to_le_bytes(), self.seed)
    }

    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
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
        let mut random = Random::new(number ^ 0x5eed);
        value.clear();
        while value.len() < self.value_len.div_ceil(2) {
            value.extend_from_slice(&random.next().to_le_bytes());
        }
        value.truncate(self.value_len.div_ceil(2));
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
