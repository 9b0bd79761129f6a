//! Opening a database: turns the files that the last process left into a [`Core`](super::core::Core) and a [`RecoveryReport`].

mod aside;
mod follow;
mod open;
mod read_only;
mod replay;
mod report;
mod resume;
mod tables;

pub(crate) use self::follow::{Follower, open_following};
pub(crate) use self::open::open;
pub use self::report::{RecoveryReport, TornTail};
