//! The measured rate of false positives of the [`Filter`](crate::table::index::filter::Filter), for the distribution of filter memory.
//!
//! For each whole number of bits, one filter of 4 Mi keys was probed for 64 Mi absent keys (docs/src/tables.md); rates in between are interpolated
//! linearly. The theoretical rates are nearly the same (see `tests/filter.rs`).
//!
//! From 25 bits on fewer than 3000 keys passed. One of these rates, at 28 bits (1.63e-5), deviated from the curve by its statistical error of 3 %,
//! and was replaced by the geometric mean of its neighbours: each bit must gain less than the one before it.

/// The maximum number of bits per key of a filter.
pub(crate) const MOST_BITS: usize = 32;

/// The rate at 0 to 32 bits per key; with 0 bits every key passes. Each bit gains less than the one before it.
const RATES: [f64; MOST_BITS + 1] = [
    1.0, 6.3226e-01, 3.9344e-01, 2.3710e-01, 1.4821e-01, 9.3121e-02, 5.7715e-02, 3.6588e-02, 2.3292e-02, 1.4861e-02,
    9.7093e-03, 6.2523e-03, 4.1306e-03, 2.7344e-03, 1.8254e-03, 1.2249e-03, 8.4344e-04, 5.7651e-04, 4.0221e-04,
    2.8437e-04, 1.9793e-04, 1.4265e-04, 1.0286e-04, 7.2509e-05, 5.2646e-05, 3.8236e-05, 2.8640e-05, 2.0757e-05,
    1.5612e-05, 1.1742e-05, 8.9854e-06, 6.7353e-06, 5.2303e-06,
];

/// The share of absent keys that the filter lets pass, at 0 to 32 bits per key.
pub(crate) fn false_positive_rate(bits_per_key: f64) -> f64 {
    let bits = bits_per_key.clamp(0.0, MOST_BITS as f64);
    let below = (bits as usize).min(MOST_BITS - 1);
    let (from, to) = (RATES[below], RATES[below + 1]);
    from + (to - from) * (bits - below as f64)
}
