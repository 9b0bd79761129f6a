//! Small tables.

use crate::builder::Config;
use crate::builder::sealed::{FromConfig, Settings};
use crate::sync::set_thread_index;
use crate::tuning::{Hinting, hint};

/// Settings for so many shards. A thread writes through the shard of its own number.
pub(super) fn config(shards: usize) -> Config {
    Config { shards, chunk_bytes: 0, huge_pages: false, ..Config::default() }
}

/// The table with these settings. What the model's threads store gets few hints.
pub(super) fn table<T: FromConfig>(config: Config) -> T {
    hint(Hinting::Before);
    make(config)
}

/// The table with these settings, whose nodes all have hints, if no lock is taken.
pub(super) fn hinted<T: FromConfig>(config: Config) -> T {
    hint(Hinting::All);
    make(config)
}

/// The table with these settings, which makes no block that it can do without.
pub(super) fn unhinted<T: FromConfig>(config: Config) -> T {
    hint(Hinting::None);
    make(config)
}

fn make<T: FromConfig>(config: Config) -> T {
    T::from_config(Settings(config)).expect("the model's storage refuses nothing")
}

/// Runs `write` as a thread of number `shard` would.
pub(super) fn through<R>(shard: usize, write: impl FnOnce() -> R) -> R {
    set_thread_index(shard);
    write()
}
