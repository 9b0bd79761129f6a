//! How many of the cases of a test are run that are alike, and damage to files.

pub(crate) mod damage;

/// Every how manieth case is to be run: each one with `CASES=all`, as in `.ci/run`.
pub(crate) fn step(otherwise: usize) -> usize {
    if std::env::var_os("CASES").is_some_and(|cases| cases == "all") { 1 } else { otherwise }
}
