//! Reads: of one key, of many, and in order. No read takes a lock that a writer or a flush holds for long.

mod cursor;
mod get;
mod get_many;
mod iter;
mod newer;
mod point_read;
mod quarantine;
mod scan;
mod snapshot;

pub use self::cursor::Cursor;
pub(crate) use self::get::read_now;
pub use self::iter::Iter;
pub(crate) use self::newer::{newer_version, newer_within};
pub(crate) use self::point_read::PointRead;
pub use self::quarantine::QuarantinedTable;
pub(crate) use self::quarantine::quarantined_error;
pub(crate) use self::scan::Scan;
pub use self::snapshot::Snapshot;
