//! Counts an operation: read from what callgrind wrote, and held against those that are recorded. `benches/counts` has the cases.

mod profile;
mod record;

pub use profile::{Executed, atomics, executed};
pub use record::{Comparison, Counts, Record};
