//! Numbers from the environment.

/// The number in the variable `name`, if that is set.
///
/// # Panics
/// If the variable is not a number.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: expected a number")))
}

/// The seed in the variable `name`, or a new one; printed, so that a failed run can be repeated.
pub fn seed(name: &str) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    let seed = number(name).unwrap_or_else(|| RandomState::new().hash_one("seed"));
    println!("{name}={seed}");
    seed
}

/// The step for tests that run only some of many similar cases: 1 with `CASES=all`, as in `.ci/run`, else `otherwise`.
pub fn step(otherwise: usize) -> usize {
    if std::env::var_os("CASES").is_some_and(|cases| cases == "all") { 1 } else { otherwise }
}
