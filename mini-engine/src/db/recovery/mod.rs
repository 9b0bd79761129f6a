//! Opening a database: what the last process left becomes a [`Core`](super::core::Core), and a [`RecoveryReport`] says how.

mod aside;
mod open;
mod read_only;
mod replay;
mod report;
mod tables;

pub(crate) use self::open::open;
pub use self::report::{RecoveryReport, TornTail};
