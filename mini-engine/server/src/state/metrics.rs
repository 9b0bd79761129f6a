//! The metrics in the text format of Prometheus. They contain only numbers and names of commands: no key and no value of a client.

use std::fmt::{Display, Write};

use mini_engine::LevelMetrics;

use super::command_stats::CommandStat;
use super::process::{cpu_seconds, resident_bytes};
use super::refused::Cause;
use super::shared::Shared;

/// The types of metrics for Prometheus. A counter never decreases while the process lives.
const COUNTER: &str = "counter";
const GAUGE: &str = "gauge";

struct Text(String);

impl Text {
    /// A metric without labels.
    fn number(&mut self, kind: &str, name: &str, help: &str, value: impl Display) {
        self.family(kind, name, help, [(String::new(), value)]);
    }

    /// A metric with a sample for each set of labels.
    fn family(
        &mut self,
        kind: &str,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (String, impl Display)>,
    ) {
        // Writing to a string does not fail.
        write!(self.0, "# HELP mini_engine_{name} {help}\n# TYPE mini_engine_{name} {kind}\n").ok();
        for (labels, value) in samples {
            writeln!(self.0, "mini_engine_{name}{labels} {value}").ok();
        }
    }
}

/// All metrics.
pub(crate) fn text(shared: &Shared) -> String {
    let mut text = Text(String::new());
    server(shared, &mut text);
    engine(shared, &mut text);
    text.0
}

fn server(shared: &Shared, text: &mut Text) {
    let (counters, refused) = (&shared.counters, &shared.counters.refused);
    text.number(GAUGE, "uptime_seconds", "Time since the server was started.", shared.started.elapsed().as_secs());
    let cpu = ["user", "system"].map(|mode| format!("{{mode=\"{mode}\"}}"));
    text.family(
        COUNTER,
        "cpu_seconds_total",
        "Time that the process has computed.",
        cpu.into_iter().zip(cpu_seconds()),
    );
    text.number(GAUGE, "resident_bytes", "Memory of the process, mapped files included.", resident_bytes());
    text.number(GAUGE, "clients", "Clients that are connected.", counters.clients);
    text.number(GAUGE, "client_buffer_bytes", "Requests and replies in memory.", counters.buffer_bytes);
    text.number(COUNTER, "connections_total", "Clients that have connected.", counters.connections);
    let counted = |(reason, cause)| (format!("{{reason=\"{reason}\"}}"), refused.count(cause));
    let refusals = Cause::REFUSALS.map(counted);
    text.family(COUNTER, "refused_total", "Connections and passwords that were refused.", refusals);
    text.family(COUNTER, "disconnected_total", "Clients that were disconnected.", Cause::DISCONNECTIONS.map(counted));
    text.number(COUNTER, "received_bytes_total", "Bytes of requests.", counters.received_bytes);
    text.number(COUNTER, "sent_bytes_total", "Bytes of replies.", counters.sent_bytes);
    text.number(COUNTER, "key_hits_total", "Keys that commands looked for and found.", counters.hits);
    text.number(COUNTER, "key_misses_total", "Keys that commands looked for in vain.", counters.misses);
    text.number(COUNTER, "writes_refused_total", "Operations that the engine refused.", shared.counters.writes.refused);
    text.number(COUNTER, "damage_met_total", "Times that damage was met.", shared.counters.damage.met);
    text.number(GAUGE, "last_save_timestamp_seconds", "When the last checkpoint was made.", shared.saves.last);
    let of_commands = |value: fn(&CommandStat) -> String| {
        let stats = shared.counters.stats.called();
        stats.map(move |stat| (format!("{{command=\"{}\"}}", stat.name.to_lowercase()), value(stat)))
    };
    text.family(
        COUNTER,
        "commands_total",
        "Commands that were carried out.",
        of_commands(|stat| stat.calls.to_string()),
    );
    let failed = of_commands(|stat| stat.failed.to_string());
    text.family(COUNTER, "command_errors_total", "Commands that were answered with an error.", failed);
    let seconds = of_commands(|stat| (stat.nanos as f64 / 1e9).to_string());
    text.family(COUNTER, "command_seconds_total", "Time that commands took, without waits for a sync.", seconds);
}

fn engine(shared: &Shared, text: &mut Text) {
    let metrics = shared.keys.db.metrics();
    let counters = [
        ("writes_total", "Operations that were written.", metrics.writes),
        ("user_bytes_total", "Bytes of keys and values in them.", metrics.user_bytes),
        ("gets_total", "Point reads.", metrics.gets),
        ("get_blocks_total", "Data blocks that point reads looked at.", metrics.get_blocks),
        ("wal_bytes_total", "Bytes of the log.", metrics.wal_bytes),
        ("wal_syncs_total", "Syncs of the log.", metrics.wal_syncs),
        ("flushes_total", "Memtables that were flushed.", metrics.flushes),
        ("flush_bytes_total", "Bytes of their tables.", metrics.flush_bytes),
        ("compactions_total", "Compactions.", metrics.compactions),
        ("compaction_read_bytes_total", "Bytes that compactions read.", metrics.compaction_bytes_read),
        ("compaction_written_bytes_total", "Bytes that compactions wrote.", metrics.compaction_bytes_written),
        ("stalls_total", "Writes that waited for a flush or a compaction.", metrics.stalls),
        ("slowdowns_total", "Writes that were slowed down.", metrics.slowdowns),
        ("block_reads_total", "Data blocks that were read from files.", metrics.block_reads),
        ("cache_hits_total", "Data blocks that were found in the cache.", metrics.cache_hits),
        ("cache_misses_total", "Data blocks that were not.", metrics.cache_misses),
        ("filter_negatives_total", "Reads of tables that a filter spared.", metrics.filter_negatives),
        ("filter_false_positives_total", "Reads of tables that found nothing.", metrics.filter_false_positives),
    ];
    let gauges = [
        ("keys", "Keys, estimated.", metrics.estimated_keys),
        ("memtable_bytes", "Memory of memtables.", metrics.memtable_bytes),
        ("cache_bytes", "Memory of cached blocks.", metrics.cache_bytes),
        ("cache_evicted_bytes", "The part of it that waits for readers.", metrics.cache_evicted_bytes),
        ("retired_views", "Sets of tables that wait for readers.", metrics.retired_views),
        ("table_memory_bytes", "Memory of tables besides the cache.", metrics.table_memory_bytes),
        ("immutable_memtables", "Memtables that wait for their flush.", metrics.immutable_memtables),
        ("flushes_running", "Flushes under way.", metrics.flushes_running),
        ("compactions_running", "Compactions under way.", metrics.compactions_running),
        ("open_tables", "Tables whose files are open.", metrics.open_files),
        ("damaged_files", "Files that compactions avoid.", metrics.damaged_files.len() as u64),
    ];
    counters.into_iter().for_each(|(name, help, value)| text.number(COUNTER, name, help, value));
    gauges.into_iter().for_each(|(name, help, value)| text.number(GAUGE, name, help, value));
    let ahead = metrics.clock_ahead.as_secs_f64();
    text.number(GAUGE, "clock_ahead_seconds", "By how much the database's clock is ahead of the system's.", ahead);
    let of_levels = |value: fn(&LevelMetrics) -> u64| {
        let levels = metrics.levels.iter().enumerate();
        levels.map(move |(level, metrics)| (format!("{{level=\"{level}\"}}"), value(metrics)))
    };
    text.family(GAUGE, "level_tables", "Tables of a level.", of_levels(|level| level.tables));
    text.family(GAUGE, "level_bytes", "Bytes of the tables of a level.", of_levels(|level| level.bytes));
}
