//! Care of a database: checks and shows its files, copies it, reads the remains of damaged files, and drops tables that cannot be read.
//!
//! Reads and writes use nothing from this folder. The files are read by the same walkers as in an open: `wal/walk.rs`, `table/walk.rs` and
//! `manifest/walk.rs`.

mod checkpoint;
pub mod dump;
mod new_directory;
mod quarantine;
mod salvage;
mod verify;

pub(crate) use self::checkpoint::{checkpoint, checkpoint_moment};
pub use self::new_directory::incomplete_directory;
pub use self::quarantine::AsideFile;
pub(crate) use self::quarantine::{drop_quarantined, quarantined, set_aside};
pub use self::salvage::{LeftOut, LostKeys, LostWrites, Salvage, SalvageReport, SalvagedEntries};
pub use self::verify::VerifyReport;
pub(crate) use self::verify::verify;
