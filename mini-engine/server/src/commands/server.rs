//! Commands of the server and the whole database.

use std::fmt::Write;

use super::connection::{REDIS_VERSION, unknown_subcommand};
use super::glob::{LONGEST_PATTERN, matches};
use super::words::{integer, is};
use crate::protocol::reply::{Refusal, Reply};
use crate::protocol::request::Args;
use crate::state::clock::since_1970;
use crate::state::context::{After, Context};
use crate::state::job::Job;
use crate::state::keyspace::{Direction, Keyspace};
use crate::state::shared::Shared;

type Answer = Result<Reply, Refusal>;

/// Counting reads every key. Alone it is a job beside the other clients; in a transaction it blocks them, because it belongs to one moment.
pub(super) fn dbsize(context: &mut Context<'_>, keys: &mut Keyspace<'_>, _: Args<'_>) -> Answer {
    if !keys.is_of_several() {
        context.after = After::Later(Job::Count);
        return Ok(Reply::Nothing);
    }
    let all = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
    let mut count = 0;
    for entry in keys.range(all, Direction::Forward) {
        entry?;
        count += 1;
    }
    Ok(Reply::Integer(count))
}

/// Removes all keys, or none, also across crashes.
pub(super) fn flushall(context: &mut Context<'_>, keys: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    if args.from(1).any(|word| !is(word, "SYNC") && !is(word, "ASYNC")) {
        return Err(Refusal::syntax());
    }
    if !context.shared.settings.may_flush_all {
        return Err(Refusal::new("ERR FLUSHALL removes everything: start the server with --allow-flushall"));
    }
    keys.clear()?;
    Ok(Reply::OK)
}

pub(super) fn save(context: &mut Context<'_>, _: &mut Keyspace<'_>, _: Args<'_>) -> Answer {
    context.after = After::Later(begin_save(context.shared)?);
    Ok(Reply::Nothing)
}

/// The job of BGSAVE belongs to the server: no client waits for it.
pub(super) fn bgsave(context: &mut Context<'_>, _: &mut Keyspace<'_>, _: Args<'_>) -> Answer {
    let job = begin_save(context.shared)?;
    context.shared.background.push(job);
    Ok(Reply::Simple("Background saving started"))
}

fn begin_save(shared: &mut Shared) -> Result<Job, Refusal> {
    if shared.is_saving {
        return Err(Refusal::new("ERR Background save already in progress"));
    }
    shared.is_saving = true;
    Ok(Job::Save(shared.settings.checkpoints.clone()))
}

pub(super) fn lastsave(context: &mut Context<'_>, _: &mut Keyspace<'_>, _: Args<'_>) -> Answer {
    Ok(Reply::Integer(context.shared.last_save as i64))
}

/// Everything is written anyway, so SAVE and NOSAVE make no difference.
pub(super) fn shutdown(context: &mut Context<'_>, _: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    if args.from(1).any(|word| !["SAVE", "NOSAVE", "NOW", "FORCE"].iter().any(|name| is(word, name))) {
        return Err(Refusal::syntax());
    }
    context.shared.wants_shutdown = true;
    context.after = After::Close;
    Ok(Reply::Nothing)
}

/// There are no replicas, so there is nothing to wait for.
pub(super) fn wait(_: &mut Context<'_>, _: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    for number in args.from(1) {
        if integer(number)? < 0 {
            return Err(Refusal::new("ERR timeout is negative"));
        }
    }
    Ok(Reply::Integer(0))
}

/// Everything written before is synced before the reply is sent.
pub(super) fn waitaof(context: &mut Context<'_>, _: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    for number in args.from(1) {
        integer(number)?;
    }
    context.shared.wants_sync = true;
    Ok(Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)]))
}

pub(super) fn time(_: &mut Context<'_>, _: &mut Keyspace<'_>, _: Args<'_>) -> Answer {
    let now = since_1970();
    Ok(Reply::Array(vec![Reply::text(now.as_secs().to_string()), Reply::text(now.subsec_micros().to_string())]))
}

/// The settings under their Redis names.
fn settings(shared: &Shared) -> [(&'static str, String); 10] {
    let settings = &shared.settings;
    let limits = settings.limits;
    [
        ("appendfsync", settings.durability.appendfsync().to_owned()),
        ("appendonly", "yes".to_owned()),
        ("databases", "1".to_owned()),
        ("maxclients", limits.clients.to_string()),
        ("maxmemory", "0".to_owned()),
        ("maxmemory-clients", limits.buffer_bytes.to_string()),
        ("port", shared.port.to_string()),
        ("proto-max-bulk-len", limits.request_bytes.to_string()),
        ("save", String::new()),
        ("timeout", limits.idle_seconds.to_string()),
    ]
}

pub(super) fn config(context: &mut Context<'_>, _: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    let word = args.at(1);
    if !is(word, "GET") || args.len() < 3 {
        return Err(match is(word, "SET") {
            true => Refusal::new("ERR settings are given when the server is started, see `mini-engine serve --help`"),
            false => unknown_subcommand(word, "CONFIG"),
        });
    }
    let patterns: Vec<Vec<u8>> = args.from(2).map(<[u8]>::to_ascii_lowercase).collect();
    if patterns.iter().any(|pattern| pattern.len() > LONGEST_PATTERN) {
        return Err(Refusal::syntax());
    }
    let all = settings(context.shared).into_iter();
    let wanted = all.filter(|(name, _)| patterns.iter().any(|pattern| matches(pattern, name.as_bytes())));
    Ok(Reply::Map(wanted.map(|(name, value)| (Reply::text(name), Reply::text(value))).collect()))
}

pub(super) fn info(context: &mut Context<'_>, _: &mut Keyspace<'_>, args: Args<'_>) -> Answer {
    let is_wanted = |section: &str| {
        let mut words = args.from(1);
        words.len() == 0
            || words.any(|word| is(word, section) || is(word, "all") || is(word, "everything") || is(word, "default"))
    };
    let mut text = String::new();
    for (section, fields) in sections(context.shared) {
        if is_wanted(section) {
            let gap = if text.is_empty() { "" } else { "\r\n" };
            // Writing to a string does not fail.
            write!(text, "{gap}# {section}\r\n").ok();
            for (name, value) in fields {
                write!(text, "{name}:{value}\r\n").ok();
            }
        }
    }
    Ok(Reply::Text(text))
}

type Section = (&'static str, Vec<(&'static str, String)>);

/// Whether the last write was refused, under its Redis name; the number of refused operations, and the reason of the last refusal.
fn writes(shared: &Shared) -> Section {
    let writes = &shared.writes;
    let status = if writes.are_refused { "err" } else { "ok" };
    let fields = vec![
        ("aof_last_write_status", status.to_owned()),
        ("writes_refused", writes.refused.to_string()),
        ("last_write_refusal", writes.last_refusal.clone().unwrap_or_default()),
    ];
    ("Writes", fields)
}

fn sections(shared: &Shared) -> [Section; 9] {
    let (metrics, counters) = (shared.db.metrics(), shared.counters);
    let uptime = shared.started.elapsed().as_secs();
    let tables: u64 = metrics.levels.iter().map(|level| level.tables).sum();
    let bytes: u64 = metrics.levels.iter().map(|level| level.bytes).sum();
    let memory =
        metrics.memtable_bytes + metrics.cache_bytes + metrics.table_memory_bytes + counters.buffer_bytes as u64;
    let (damaged_at, damage) = shared.damage.last.as_ref().map_or((0, ""), |(at, what)| (*at, what));
    [
        (
            "Server",
            vec![
                ("redis_version", REDIS_VERSION.to_owned()),
                ("redis_mode", "standalone".to_owned()),
                ("mini_engine_version", env!("CARGO_PKG_VERSION").to_owned()),
                ("process_id", std::process::id().to_string()),
                ("tcp_port", shared.port.to_string()),
                ("uptime_in_seconds", uptime.to_string()),
                ("uptime_in_days", (uptime / 86_400).to_string()),
            ],
        ),
        (
            "Clients",
            vec![
                ("connected_clients", counters.clients.to_string()),
                ("maxclients", shared.settings.limits.clients.to_string()),
                ("client_buffer_bytes", counters.buffer_bytes.to_string()),
                ("blocked_clients", "0".to_owned()),
            ],
        ),
        (
            "Memory",
            vec![
                ("used_memory", memory.to_string()),
                ("used_memory_rss", resident_bytes().map_or(String::new(), |bytes| bytes.to_string())),
                ("maxmemory", "0".to_owned()),
                ("memtable_bytes", metrics.memtable_bytes.to_string()),
                ("cache_bytes", metrics.cache_bytes.to_string()),
                ("table_memory_bytes", metrics.table_memory_bytes.to_string()),
            ],
        ),
        (
            "Persistence",
            vec![
                ("loading", "0".to_owned()),
                ("aof_enabled", "1".to_owned()),
                ("appendfsync", shared.settings.durability.appendfsync().to_owned()),
                ("rdb_bgsave_in_progress", u8::from(shared.is_saving).to_string()),
                ("rdb_last_save_time", shared.last_save.to_string()),
                ("aof_rewrite_in_progress", "0".to_owned()),
            ],
        ),
        writes(shared),
        (
            "Stats",
            vec![
                ("total_connections_received", counters.connections.to_string()),
                ("total_commands_processed", counters.commands.to_string()),
                ("rejected_connections", counters.rejected.to_string()),
            ],
        ),
        (
            "Damage",
            vec![
                ("damage_met", shared.damage.met.to_string()),
                ("damage_places", shared.damage.places().to_string()),
                ("last_damage_time", damaged_at.to_string()),
                ("last_damage", damage.replace(['\r', '\n'], " ")),
                ("damaged_files", metrics.damaged_files.len().to_string()),
            ],
        ),
        (
            "Engine",
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
            ],
        ),
        ("Keyspace", vec![("db0", format!("keys={},expires=0,avg_ttl=0", metrics.estimated_keys))]),
    ]
}

/// Bytes of the process that are in memory, mapped files included, if the system provides it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
