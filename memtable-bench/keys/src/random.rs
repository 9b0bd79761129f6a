//! Randomness: always from a fixed seed, so that every run has the same input.

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

/// The seed of every input.
pub const SEED: u64 = 0x5eed_fa57_5c1f_0001;

/// Generator number `stream`. Different streams are independent of each other.
pub fn rng(stream: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(SEED ^ stream)
}
