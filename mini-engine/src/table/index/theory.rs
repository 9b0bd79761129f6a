//! The theoretical rate of false positives of a Bloom filter, for comparison with the measured rates.

/// The rate of a filter in lines of 512 bits: the keys of a line are Poisson distributed, and each line is a small filter (Putze,
/// Sanders and Singler, 2007).
pub(crate) fn blocked(bits_per_key: f64, probes: u32) -> f64 {
    let mean = 512.0 / bits_per_key;
    let most = (3.0 * mean) as u32 + 60;
    let mut likelihood = (-mean).exp();
    let mut rate = 0.0;
    for keys in 0..most {
        if keys > 0 {
            likelihood *= mean / f64::from(keys);
        }
        let bit_set = 1.0 - (1.0f64 - 1.0 / 512.0).powi((keys * probes) as i32);
        rate += likelihood * bit_set.powi(probes as i32);
    }
    rate
}
