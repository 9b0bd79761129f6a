//! Power cuts and kills at every operation of the file system, over a model of a disk; errors at every operation; flipped bits. Start
//! reading with `oracle`, which defines the right states.
//!
//! `CRASH_SEED=n` repeats a run. `CRASH_POINTS=n` makes the exploration longer than at each commit; `CRASH_ROUNDS=n` does the same for rounds with
//! threads.

mod checkpoint;
mod counts;
mod errors;
mod explore;
mod flips;
mod full;
mod history;
mod killed;
mod lie;
mod oracle;
mod points;
mod readers;
mod resumed;
mod run;
mod script;

/// The names that the modules import.
mod prelude {
    pub(crate) use std::collections::{BTreeMap, BTreeSet};
    pub(crate) use std::path::Path;
    pub(crate) use std::sync::Arc;
    pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
    pub(crate) use std::time::{Duration, SystemTime};

    pub(crate) use mini_engine::fs::FileSystem;
    pub(crate) use mini_engine::{
        Builder, Compaction, Db, Durability, Error, Keyspace, KeyspaceOptions, RecoveryMode, TableReads, WriteBatch,
        incomplete_directory,
    };
    pub(crate) use proof::disk::{Answer, Disk, Fault, FaultFs, Losses, MemFs, Op, Operation, Repeat, Step};
    pub(crate) use proof::environment::{number, step};
    pub(crate) use proof::{Clock, Map, POLICIES, Random, entries, second, wait_while};

    pub(crate) use crate::counts::Counts;
    pub(crate) use crate::explore::{Effort, Explorer, explore};
    pub(crate) use crate::lie::Lie;
    pub(crate) use crate::oracle::{
        Batch, COUNT, Change, Entries, Event, Kept, Name, Progress, TODAY, entries_after, judge, keyspace, last_batch,
    };
    pub(crate) use crate::points::seed;
    pub(crate) use crate::run::{DIR, Note, Run};
    pub(crate) use crate::script::{Act, SHAPES, Script, Shape, batch, keyspace_event, lifetime};
}
