//! The figures of the server and of its database: one table for INFO, under the names of Redis, which dashboards read, and for Prometheus.

use std::cell::OnceCell;

use mini_engine::Metrics;

use super::counters::Counters;
use super::process::{cpu_seconds, memory_of_machine, resident_bytes};
use super::refused::Cause;
use super::shared::Shared;

/// The version of Redis whose commands this server has: clients decide by it which commands they may send.
pub(crate) const REDIS_VERSION: &str = "7.0.0";

/// The types of metrics for Prometheus. A counter decreases only when the process or CONFIG RESETSTAT begins it anew.
pub(super) const COUNTER: &str = "counter";
pub(super) const GAUGE: &str = "gauge";

/// What the figures are computed from. Figures of one reply agree with each other.
pub(crate) struct Facts<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) metrics: Metrics,
    resident_bytes: OnceCell<u64>,
    cpu_seconds: OnceCell<[f64; 2]>,
}

impl<'a> Facts<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        let (resident_bytes, cpu_seconds) = (OnceCell::new(), OnceCell::new());
        Self { shared, metrics: shared.keys.db.metrics(), resident_bytes, cpu_seconds }
    }

    fn resident_bytes(&self) -> u64 {
        *self.resident_bytes.get_or_init(resident_bytes)
    }

    /// See [`cpu_seconds`].
    pub(super) fn cpu_seconds(&self) -> [f64; 2] {
        *self.cpu_seconds.get_or_init(cpu_seconds)
    }

    fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    fn uptime(&self) -> u64 {
        self.shared.started.elapsed().as_secs()
    }

    /// The number of refusals or disconnections for this reason, as text.
    fn refused(&self, cause: Cause) -> String {
        self.counters().refused.count(cause).to_string()
    }

    fn used_memory(&self) -> u64 {
        let Metrics { memtable_bytes, cache_bytes, table_memory_bytes, .. } = self.metrics;
        memtable_bytes + cache_bytes + table_memory_bytes + self.counters().buffer_bytes as u64
    }
}

type Value = fn(&Facts<'_>) -> String;

pub(crate) struct Figure {
    /// The section of INFO and the name there, if the figure is in INFO.
    pub(crate) info: Option<(&'static str, &'static str)>,
    /// The type, the name and the description for Prometheus, if it reads the figure.
    pub(crate) metric: Option<[&'static str; 3]>,
    pub(super) value: Value,
}

/// The names and values of the figures in a section of INFO.
pub(crate) fn of_section<'a>(section: &str, facts: &'a Facts<'_>) -> impl Iterator<Item = (&'static str, String)> + 'a {
    let names = FIGURES.iter().filter_map(|figure| Some((figure.info?, figure.value)));
    let section = section.to_owned();
    names.filter(move |((of, _), _)| *of == section).map(|((_, name), value)| (name, value(facts)))
}

const fn info(section: &'static str, name: &'static str, value: Value) -> Figure {
    Figure { info: Some((section, name)), metric: None, value }
}

const fn both(section: &'static str, name: &'static str, metric: [&'static str; 3], value: Value) -> Figure {
    Figure { info: Some((section, name)), metric: Some(metric), value }
}

const fn metric(metric: [&'static str; 3], value: Value) -> Figure {
    Figure { info: None, metric: Some(metric), value }
}

/// All figures that have no labels.
#[rustfmt::skip]
pub(crate) static FIGURES: &[Figure] = &[
    info("Server", "redis_version", |_| REDIS_VERSION.into()),
    info("Server", "redis_mode", |facts| facts.shared.mode().into()),
    info("Server", "mini_engine_version", |_| env!("CARGO_PKG_VERSION").into()),
    info("Server", "os", |_| std::env::consts::OS.into()),
    info("Server", "arch_bits", |_| usize::BITS.to_string()),
    info("Server", "process_id", |_| std::process::id().to_string()),
    info("Server", "listen", |facts| facts.shared.address.clone()),
    info("Server", "tcp_port", |facts| facts.shared.port.to_string()),
    both("Server", "uptime_in_seconds", [GAUGE, "uptime_seconds", "Time since the server was started."], |facts| facts.uptime().to_string()),
    info("Server", "uptime_in_days", |facts| (facts.uptime() / 86_400).to_string()),

    both("Clients", "connected_clients", [GAUGE, "clients", "Clients that are connected."], |facts| facts.counters().clients.to_string()),
    info("Clients", "maxclients", |facts| facts.shared.settings.limits.clients.to_string()),
    both("Clients", "client_buffer_bytes", [GAUGE, "client_buffer_bytes", "Requests and replies in memory."], |facts| facts.counters().buffer_bytes.to_string()),
    info("Clients", "client_recent_max_output_buffer", |facts| facts.counters().most_buffer_bytes.to_string()),
    info("Clients", "blocked_clients", |_| "0".into()),

    info("Memory", "used_memory", |facts| facts.used_memory().to_string()),
    info("Memory", "used_memory_human", |facts| human(facts.used_memory())),
    both("Memory", "used_memory_rss", [GAUGE, "resident_bytes", "Memory of the process, mapped files included."], |facts| facts.resident_bytes().to_string()),
    info("Memory", "used_memory_rss_human", |facts| human(facts.resident_bytes())),
    info("Memory", "total_system_memory", |_| memory_of_machine().to_string()),
    info("Memory", "maxmemory", |_| "0".into()),
    info("Memory", "maxmemory_policy", |_| "noeviction".into()),
    info("Memory", "mem_fragmentation_ratio", |facts| format!("{:.2}", facts.resident_bytes() as f64 / facts.used_memory().max(1) as f64)),
    both("Memory", "memtable_bytes", [GAUGE, "memtable_bytes", "Memory of memtables."], |facts| facts.metrics.memtable_bytes.to_string()),
    both("Memory", "cache_bytes", [GAUGE, "cache_bytes", "Memory of cached blocks."], |facts| facts.metrics.cache_bytes.to_string()),
    metric([GAUGE, "cache_evicted_bytes", "The part of it that waits for readers."], |facts| facts.metrics.cache_evicted_bytes.to_string()),
    both("Memory", "table_memory_bytes", [GAUGE, "table_memory_bytes", "Memory of tables besides the cache."], |facts| facts.metrics.table_memory_bytes.to_string()),

    info("Persistence", "loading", |_| "0".into()),
    info("Persistence", "aof_enabled", |_| "1".into()),
    info("Persistence", "appendfsync", |facts| facts.shared.settings.durability.appendfsync().into()),
    info("Persistence", "aof_rewrite_in_progress", |_| "0".into()),
    info("Persistence", "rdb_bgsave_in_progress", |facts| u8::from(facts.shared.saves.is_under_way).to_string()),
    both("Persistence", "rdb_last_save_time", [GAUGE, "last_save_timestamp_seconds", "When the last checkpoint was made."], |facts| facts.shared.saves.last.to_string()),
    info("Persistence", "rdb_last_bgsave_status", |facts| status(!facts.shared.saves.has_failed)),

    both("Stats", "total_connections_received", [COUNTER, "connections_total", "Clients that have connected."], |facts| facts.counters().connections.to_string()),
    info("Stats", "total_commands_processed", |facts| facts.counters().commands.to_string()),
    info("Stats", "instantaneous_ops_per_sec", |facts| facts.counters().commands_per_second.to_string()),
    both("Stats", "total_net_input_bytes", [COUNTER, "received_bytes_total", "Bytes of requests."], |facts| facts.counters().received_bytes.to_string()),
    both("Stats", "total_net_output_bytes", [COUNTER, "sent_bytes_total", "Bytes of replies."], |facts| facts.counters().sent_bytes.to_string()),
    info("Stats", "rejected_connections", |facts| facts.refused(Cause::Clients)),
    info("Stats", "acl_access_denied_auth", |facts| facts.refused(Cause::Password)),
    info("Stats", "tls_handshakes_failed", |facts| facts.refused(Cause::Handshake)),
    info("Stats", "clients_disconnected_slow", |facts| facts.refused(Cause::Slow)),
    info("Stats", "clients_disconnected_buffers", |facts| facts.refused(Cause::Buffers)),
    info("Stats", "clients_disconnected_monitor", |facts| facts.refused(Cause::Monitor)),
    info("Stats", "clients_disconnected_idle", |facts| facts.refused(Cause::Idle)),
    // Redis has one limit for each client, this server one for all together; in both, clients that have sent MONITOR have a separate limit.
    info("Stats", "client_output_buffer_limit_disconnections", |facts| {
        let count = |cause| facts.counters().refused.count(cause);
        (count(Cause::Buffers) + count(Cause::Monitor)).to_string()
    }),
    both("Stats", "keyspace_hits", [COUNTER, "key_hits_total", "Keys that commands looked for and found."], |facts| facts.counters().hits.to_string()),
    both("Stats", "keyspace_misses", [COUNTER, "key_misses_total", "Keys that commands looked for in vain."], |facts| facts.counters().misses.to_string()),
    info("Stats", "evicted_keys", |_| "0".into()),
    info("Stats", "slowlog_len", |facts| facts.counters().slow_log.len().to_string()),

    info("CPU", "used_cpu_sys", |facts| format!("{:.2}", facts.cpu_seconds()[1])),
    info("CPU", "used_cpu_user", |facts| format!("{:.2}", facts.cpu_seconds()[0])),

    info("Cluster", "cluster_enabled", |facts| u8::from(facts.shared.cluster.is_some()).to_string()),

    // Whether the last write was refused (under its Redis name), the number of refused writes, and the reason of the last refusal.
    info("Writes", "aof_last_write_status", |facts| status(!facts.counters().writes.are_refused)),
    both("Writes", "writes_refused", [COUNTER, "writes_refused_total", "Writes of requests that the engine refused."], |facts| facts.counters().writes.refused.to_string()),
    info("Writes", "last_write_refusal", |facts| facts.counters().writes.last_refusal.clone().unwrap_or_default()),

    both("Damage", "damage_met", [COUNTER, "damage_met_total", "Times that damage was met."], |facts| facts.counters().damage.met.to_string()),
    info("Damage", "damage_places", |facts| facts.counters().damage.places().to_string()),
    info("Damage", "last_damage_time", |facts| facts.counters().damage.last.as_ref().map_or(0, |(at, _)| *at).to_string()),
    info("Damage", "last_damage", |facts| facts.counters().damage.last.as_ref().map_or("", |(_, what)| what).replace(['\r', '\n'], " ")),
    both("Damage", "damaged_files", [GAUGE, "damaged_files", "Files that compactions avoid."], |facts| facts.metrics.damaged_files.len().to_string()),

    both("Engine", "writes", [COUNTER, "writes_total", "Operations that were written."], |facts| facts.metrics.writes.to_string()),
    metric([COUNTER, "user_bytes_total", "Bytes of keys and values in them."], |facts| facts.metrics.user_bytes.to_string()),
    both("Engine", "gets", [COUNTER, "gets_total", "Point reads."], |facts| facts.metrics.gets.to_string()),
    metric([COUNTER, "get_blocks_total", "Data blocks that point reads looked at."], |facts| facts.metrics.get_blocks.to_string()),
    metric([COUNTER, "wal_bytes_total", "Bytes of the log."], |facts| facts.metrics.wal_bytes.to_string()),
    both("Engine", "wal_syncs", [COUNTER, "wal_syncs_total", "Syncs of the log."], |facts| facts.metrics.wal_syncs.to_string()),
    both("Engine", "flushes", [COUNTER, "flushes_total", "Memtables that were flushed."], |facts| facts.metrics.flushes.to_string()),
    metric([COUNTER, "flush_bytes_total", "Bytes of their tables."], |facts| facts.metrics.flush_bytes.to_string()),
    both("Engine", "compactions", [COUNTER, "compactions_total", "Compactions."], |facts| facts.metrics.compactions.to_string()),
    metric([COUNTER, "compaction_read_bytes_total", "Bytes that compactions read."], |facts| facts.metrics.compaction_bytes_read.to_string()),
    metric([COUNTER, "compaction_written_bytes_total", "Bytes that compactions wrote."], |facts| facts.metrics.compaction_bytes_written.to_string()),
    both("Engine", "stalls", [COUNTER, "stalls_total", "Writes that waited for a flush or a compaction."], |facts| facts.metrics.stalls.to_string()),
    metric([COUNTER, "slowdowns_total", "Writes that were slowed down."], |facts| facts.metrics.slowdowns.to_string()),
    info("Engine", "tables", |facts| facts.metrics.levels.iter().map(|level| level.tables).sum::<u64>().to_string()),
    info("Engine", "table_bytes", |facts| facts.metrics.levels.iter().map(|level| level.bytes).sum::<u64>().to_string()),
    metric([COUNTER, "block_reads_total", "Data blocks that were read from files."], |facts| facts.metrics.block_reads.to_string()),
    both("Engine", "cache_hits", [COUNTER, "cache_hits_total", "Data blocks that were found in the cache."], |facts| facts.metrics.cache_hits.to_string()),
    both("Engine", "cache_misses", [COUNTER, "cache_misses_total", "Data blocks that were not."], |facts| facts.metrics.cache_misses.to_string()),
    metric([COUNTER, "filter_negatives_total", "Reads of tables that a filter spared."], |facts| facts.metrics.filter_negatives.to_string()),
    metric([COUNTER, "filter_false_positives_total", "Reads of tables that found nothing."], |facts| facts.metrics.filter_false_positives.to_string()),
    metric([GAUGE, "keys", "Keys, estimated."], |facts| facts.metrics.estimated_keys.to_string()),
    metric([GAUGE, "retired_views", "Sets of tables that wait for readers."], |facts| facts.metrics.retired_views.to_string()),
    metric([GAUGE, "immutable_memtables", "Memtables that wait for their flush."], |facts| facts.metrics.immutable_memtables.to_string()),
    metric([GAUGE, "flushes_running", "Flushes under way."], |facts| facts.metrics.flushes_running.to_string()),
    metric([GAUGE, "compactions_running", "Compactions under way."], |facts| facts.metrics.compactions_running.to_string()),
    metric([GAUGE, "open_tables", "Tables whose files are open."], |facts| facts.metrics.open_files.to_string()),
    info("Engine", "clock_ahead_ms", |facts| facts.metrics.clock_ahead.as_millis().to_string()),
    metric([GAUGE, "clock_ahead_seconds", "By how much the database's clock is ahead of the system's."], |facts| facts.metrics.clock_ahead.as_secs_f64().to_string()),
];

fn status(is_good: bool) -> String {
    if is_good { "ok" } else { "err" }.into()
}

/// A number of bytes in the short form of Redis: `1.50M`.
fn human(bytes: u64) -> String {
    let mut amount = bytes as f64;
    for unit in ["B", "K", "M", "G"] {
        if amount < 1024.0 {
            return format!("{amount:.2}{unit}");
        }
        amount /= 1024.0;
    }
    format!("{amount:.2}T")
}
