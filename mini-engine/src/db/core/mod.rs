//! The [`Core`], shared by handles, snapshots, iterators and workers, and its parts.
//!
//! No function here waits for a worker, or reads or writes keys.

mod attempts;
mod clock;
mod cover;
mod dead_ranges;
mod directory;
mod exclusive;
mod failure;
mod install;
mod keyspaces;
mod left_in_log;
mod log_sync;
mod logs;
mod lost_pointer;
mod next_log;
mod owner;
mod pick;
mod publication;
mod recent_writes;
mod recycle;
mod reserve;
mod scan_count;
mod snapshots;
mod state;
mod view;
mod write_controller;

pub(crate) use self::clock::Clock;
pub(crate) use self::dead_ranges::{DeadRanges, Moment};
pub(crate) use self::directory::{DirectoryLock, absolute, create_locked, lock_directory, lock_for_reading, sync_name};
pub(crate) use self::lost_pointer::{check_is_no_leftover, check_nothing_is_lost};
pub(crate) use self::pick::pick_unlocked;
pub(crate) use self::recent_writes::{NewerWrites, RecentWrites};
pub(crate) use self::recycle::{create_log, remove_spare, retire_log};
pub(crate) use self::reserve::{MAX_REMOVAL, REMOVALS, give_up, needed_besides_memtables, open as open_reserve};
pub(crate) use self::scan_count::ScanCount;
pub(crate) use self::snapshots::{SnapshotId, ViewId};
pub(crate) use self::state::{Core, OPENED_READ_ONLY, Opened, Phase, State, fail_on_unwind};
pub(crate) use self::view::{FlushableMemtable, Source, View, open_runs};
