//! INFO: figures of the server and the database, under the names of Redis, which dashboards read.

use std::fmt::Write;

use mini_engine::Metrics;

use super::connection::REDIS_VERSION;
use super::words::is;
use crate::protocol::reply::{Refusal, Reply};
use crate::protocol::request::Args;
use crate::state::context::Context;
use crate::state::databases::Database;
use crate::state::keyspace::Keyspace;
use crate::state::process::{cpu_seconds, memory_of_machine, resident_bytes};
use crate::state::refused::Cause;
use crate::state::shared::Shared;

type Fields = Vec<(&'static str, String)>;
type Section = (&'static str, fn(&Shared, &Metrics) -> Fields);

/// All sections, in order; the sections that Redis has come first.
#[rustfmt::skip]
const SECTIONS: [Section; 13] = [
    ("Server", server), ("Clients", clients), ("Memory", memory), ("Persistence", persistence), ("Stats", stats),
    ("Replication", replication), ("CPU", cpu), ("Cluster", cluster), ("Keyspace", |_, _| Vec::new()), ("Writes", writes), ("Damage", damage), ("Engine", engine),
    ("Commandstats", |_, _| Vec::new()),
];

/// INFO [section ...]. Without arguments, shows all sections except the one about commands, as in Redis.
pub(super) fn info(context: &mut Context<'_>, _: &mut Keyspace, args: Args<'_>) -> Result<Reply, Refusal> {
    let is_wanted = |section: &str| {
        let mut words = args.from(1);
        let is_default = section != "Commandstats";
        (words.len() == 0 && is_default)
            || words.any(|word| {
                is(word, section) || is(word, "all") || is(word, "everything") || is_default && is(word, "default")
            })
    };
    let (mut text, metrics) = (String::new(), context.shared.keys.db.metrics());
    for (section, fields) in SECTIONS.into_iter().filter(|(section, _)| is_wanted(section)) {
        let gap = if text.is_empty() { "" } else { "\r\n" };
        // Writing to a string does not fail.
        write!(text, "{gap}# {section}\r\n").ok();
        for (name, value) in fields(context.shared, &metrics) {
            write!(text, "{name}:{value}\r\n").ok();
        }
        match section {
            "Commandstats" => command_stats(context.shared, &mut text),
            "Keyspace" => databases(context.shared, &metrics, &mut text),
            _ => {}
        }
    }
    Ok(Reply::Text(text))
}

fn server(shared: &Shared, _: &Metrics) -> Fields {
    let uptime = shared.started.elapsed().as_secs();
    vec![
        ("redis_version", REDIS_VERSION.to_owned()),
        ("redis_mode", shared.mode().to_owned()),
        ("mini_engine_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("os", std::env::consts::OS.to_owned()),
        ("arch_bits", usize::BITS.to_string()),
        ("process_id", std::process::id().to_string()),
        ("listen", shared.address.clone()),
        ("tcp_port", shared.port.to_string()),
        ("uptime_in_seconds", uptime.to_string()),
        ("uptime_in_days", (uptime / 86_400).to_string()),
    ]
}

fn clients(shared: &Shared, _: &Metrics) -> Fields {
    vec![
        ("connected_clients", shared.counters.clients.to_string()),
        ("maxclients", shared.settings.limits.clients.to_string()),
        ("client_buffer_bytes", shared.counters.buffer_bytes.to_string()),
        ("client_recent_max_output_buffer", shared.counters.most_buffer_bytes.to_string()),
        ("blocked_clients", "0".to_owned()),
    ]
}

fn memory(shared: &Shared, metrics: &Metrics) -> Fields {
    let buffers = shared.counters.buffer_bytes as u64;
    let used = metrics.memtable_bytes + metrics.cache_bytes + metrics.table_memory_bytes + buffers;
    let resident = resident_bytes();
    vec![
        ("used_memory", used.to_string()),
        ("used_memory_human", human(used)),
        ("used_memory_rss", resident.to_string()),
        ("used_memory_rss_human", human(resident)),
        ("total_system_memory", memory_of_machine().to_string()),
        ("maxmemory", "0".to_owned()),
        ("maxmemory_policy", "noeviction".to_owned()),
        ("mem_fragmentation_ratio", format!("{:.2}", resident as f64 / used.max(1) as f64)),
        ("memtable_bytes", metrics.memtable_bytes.to_string()),
        ("cache_bytes", metrics.cache_bytes.to_string()),
        ("table_memory_bytes", metrics.table_memory_bytes.to_string()),
    ]
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

fn persistence(shared: &Shared, _: &Metrics) -> Fields {
    let status = |is_good| if is_good { "ok" } else { "err" }.to_owned();
    vec![
        ("loading", "0".to_owned()),
        ("aof_enabled", "1".to_owned()),
        ("appendfsync", shared.settings.durability.appendfsync().to_owned()),
        ("aof_rewrite_in_progress", "0".to_owned()),
        ("rdb_bgsave_in_progress", u8::from(shared.saves.is_under_way).to_string()),
        ("rdb_last_save_time", shared.saves.last.to_string()),
        ("rdb_last_bgsave_status", status(!shared.saves.has_failed)),
    ]
}

/// Whether the last write was refused (under its Redis name), the number of refused operations, and the reason of the last refusal.
fn writes(shared: &Shared, _: &Metrics) -> Fields {
    let writes = &shared.counters.writes;
    let status = if writes.are_refused { "err" } else { "ok" };
    vec![
        ("aof_last_write_status", status.to_owned()),
        ("writes_refused", writes.refused.to_string()),
        ("last_write_refusal", writes.last_refusal.clone().unwrap_or_default()),
    ]
}

fn stats(shared: &Shared, _: &Metrics) -> Fields {
    let (counters, refused) = (&shared.counters, &shared.counters.refused);
    vec![
        ("total_connections_received", counters.connections.to_string()),
        ("total_commands_processed", counters.commands.to_string()),
        ("instantaneous_ops_per_sec", counters.commands_per_second.to_string()),
        ("total_net_input_bytes", counters.received_bytes.to_string()),
        ("total_net_output_bytes", counters.sent_bytes.to_string()),
        ("rejected_connections", refused.count(Cause::Clients).to_string()),
        ("acl_access_denied_auth", refused.count(Cause::Password).to_string()),
        ("tls_handshakes_failed", refused.count(Cause::Handshake).to_string()),
        ("clients_disconnected_slow", refused.count(Cause::Slow).to_string()),
        ("clients_disconnected_buffers", refused.count(Cause::Buffers).to_string()),
        ("clients_disconnected_monitor", refused.count(Cause::Monitor).to_string()),
        ("clients_disconnected_idle", refused.count(Cause::Idle).to_string()),
        // Redis has one limit for each client, this server one for all together; in both, clients that have sent MONITOR have a separate limit.
        (
            "client_output_buffer_limit_disconnections",
            (refused.count(Cause::Buffers) + refused.count(Cause::Monitor)).to_string(),
        ),
        ("keyspace_hits", counters.hits.to_string()),
        ("keyspace_misses", counters.misses.to_string()),
        ("evicted_keys", "0".to_owned()),
        ("slowlog_len", shared.counters.slow_log.len().to_string()),
    ]
}

fn replication(_: &Shared, _: &Metrics) -> Fields {
    vec![("role", "master".to_owned()), ("connected_slaves", "0".to_owned())]
}

fn cpu(_: &Shared, _: &Metrics) -> Fields {
    let [user, system] = cpu_seconds();
    vec![("used_cpu_sys", format!("{system:.2}")), ("used_cpu_user", format!("{user:.2}"))]
}

fn cluster(shared: &Shared, _: &Metrics) -> Fields {
    vec![("cluster_enabled", u8::from(shared.cluster.is_some()).to_string())]
}

fn damage(shared: &Shared, metrics: &Metrics) -> Fields {
    let (at, damage) = shared.counters.damage.last.as_ref().map_or((0, ""), |(at, what)| (*at, what));
    vec![
        ("damage_met", shared.counters.damage.met.to_string()),
        ("damage_places", shared.counters.damage.places().to_string()),
        ("last_damage_time", at.to_string()),
        ("last_damage", damage.replace(['\r', '\n'], " ")),
        ("damaged_files", metrics.damaged_files.len().to_string()),
    ]
}

fn engine(_: &Shared, metrics: &Metrics) -> Fields {
    let tables: u64 = metrics.levels.iter().map(|level| level.tables).sum();
    let bytes: u64 = metrics.levels.iter().map(|level| level.bytes).sum();
    vec![
        ("writes", metrics.writes.to_string()),
        ("gets", metrics.gets.to_string()),
        ("wal_syncs", metrics.wal_syncs.to_string()),
        ("flushes", metrics.flushes.to_string()),
        ("compactions", metrics.compactions.to_string()),
        ("stalls", metrics.stalls.to_string()),
        ("tables", tables.to_string()),
        ("table_bytes", bytes.to_string()),
        ("cache_hits", metrics.cache_hits.to_string()),
        ("cache_misses", metrics.cache_misses.to_string()),
        ("clock_ahead_ms", metrics.clock_ahead.as_millis().to_string()),
    ]
}

/// The databases that exist, with the number of their keys. The numbers are estimates: the keys of database 0 include the unflushed keys of all
/// databases; those of the other databases are counted in tables only.
fn databases(shared: &Shared, metrics: &Metrics, text: &mut String) {
    let all = Database::all(&shared.keys.db, shared.settings.databases).unwrap_or_default();
    // A tombstone and the entries that it hides are not keys.
    let keys = |database: &Database| {
        database.stored.approximate_size().map_or(0, |size| size.entries.saturating_sub(2 * size.tombstones))
    };
    let others: Vec<_> = all.iter().skip(1).map(|database| (database.number, keys(database))).collect();
    let rest = metrics.estimated_keys.saturating_sub(others.iter().map(|(_, keys)| keys).sum());
    for (number, keys) in std::iter::once((0, rest)).chain(others) {
        write!(text, "db{number}:keys={keys},expires=0,avg_ttl=0\r\n").ok();
    }
}

fn command_stats(shared: &Shared, text: &mut String) {
    for stat in shared.counters.stats.called() {
        let (name, calls, failed, micros) = (stat.name.to_lowercase(), stat.calls, stat.failed, stat.nanos / 1000);
        let each = stat.nanos as f64 / 1000.0 / calls as f64;
        // Writing to a string does not fail.
        write!(
            text,
            "cmdstat_{name}:calls={calls},usec={micros},usec_per_call={each:.2},rejected_calls=0,failed_calls={failed}\r\n"
        )
        .ok();
    }
}
