//! The counts of an operation: read from callgrind's profile, and compared with the recorded ones. `benches/counts` has the cases.

mod profile;
mod record;

pub use profile::{Executed, atomics, executed};
pub use record::{Comparison, Counts, Record};
