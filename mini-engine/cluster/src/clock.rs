//! The machine's clock, from which proposals get their time.
//!
//! Entries do not expire by it: a key could then be there for one node and not for another when they apply the same INCR. So the time comes with each
//! proposal, and that of a group's database moves only when one is applied.

use std::sync::Arc;
use std::time::SystemTime;

/// The machine's clock, in milliseconds since 1970. Tests set it wrong.
pub(crate) type WallClock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The system's clock.
pub(crate) fn system_clock() -> WallClock {
    Arc::new(|| {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since_1970.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    })
}
