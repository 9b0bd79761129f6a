//! The metrics of a database: its counters, and the state and the cost of its levels.

use std::time::Duration;

use crate::db::background::progress;
use crate::db::core::Core;
use crate::manifest::Run;
use crate::memtables::LoggedMemtable;
use crate::metrics::{LevelMetrics, Metrics};

/// The current metrics. All levels are read from one view.
pub(crate) fn metrics(core: &Core) -> Metrics {
    let view = core.view.get();
    // Includes the levels down to the deepest one that holds data or has caused work.
    let costs = view.stats.levels.iter().rposition(|level| *level != Default::default()).map_or(0, |last| last + 1);
    let deepest = view.version.levels().len().max(costs);
    let level = |level: usize| {
        let (runs, stats) = (view.version.runs(level), view.stats.levels.get(level).copied().unwrap_or_default());
        LevelMetrics {
            tables: view.version.level(level).count() as u64,
            runs: runs.len() as u64,
            narrowed: view.version.level(level).filter(|table| table.narrowed).count() as u64,
            range_tombstones: view.version.level(level).map(|table| table.range_tombstones).sum(),
            bytes: runs.iter().map(Run::bytes).sum(),
            arrived: stats.arrived,
            read: stats.read,
            written: stats.written,
        }
    };
    let (flushes_running, logs_being_made, damaged_files) = {
        let state = core.lock();
        (
            state.flushing.is_running.into(),
            // After a failure no thread creates the log that was wanted.
            (state.logs.next.attempts.is_wanted() && core.check_usable().is_ok()).into(),
            state.compacting.in_progress.damage.files(),
        )
    };
    let (compactions_running, compaction_due) = progress(core);
    let memtables = || std::iter::once(&view.active).chain(view.frozen.iter().map(|frozen| &frozen.memtable));
    let now = core.clock.now();
    let (entries, tombstones) = view.version.tables().fold((0, 0), |(all, removed), table| {
        (all + table.entries - table.expiring.by(now).min(table.entries), removed + table.tombstones)
    });
    Metrics {
        memtable_bytes: memtables().map(|memtable| memtable.table.memory_usage() as u64).sum(),
        estimated_keys: (memtables().map(LoggedMemtable::entries).sum::<u64>() + entries)
            .saturating_sub(2 * tombstones),
        cache_bytes: core.store.cache.bytes(),
        cache_evicted_bytes: core.store.cache.retired_bytes(),
        retired_views: core.view.retired() as u64,
        table_memory_bytes: view.tables().map(|table| table.table().memory_len()).sum(),
        open_files: core.store.tables.open_tables() as u64,
        compaction: core.store.options.compaction.unwrap_or_default(),
        flushed_user_bytes: view.stats.user_bytes,
        clock_ahead: Duration::from_millis(core.clock.ahead()),
        oldest_view_age: core.snapshots.oldest_age(),
        oldest_run_bytes: view.version.all_runs().next_back().map_or(0, |(_, run)| run.bytes()),
        immutable_memtables: view.frozen.len() as u64,
        logs_being_made,
        flushes_running,
        compactions_running,
        compaction_due,
        damaged_files,
        levels: (0..deepest).map(level).collect(),
        ..core.store.counters.snapshot()
    }
}
