//! The machine's clock: proposals get their time from it.
//!
//! Entries do not expire by this clock: if they did, a key could exist on one node and not on another when the nodes apply the same INCR. So each
//! proposal carries its time, and the clock of a group's database advances only when a proposal is applied.

use std::sync::Arc;
use std::time::SystemTime;

/// A clock that returns milliseconds since 1970. Tests use wrong clocks.
pub(crate) type WallClock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The system's clock.
pub(crate) fn system_clock() -> WallClock {
    Arc::new(|| {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since_1970.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    })
}
