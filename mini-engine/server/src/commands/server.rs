//! Commands that concern the server or a whole database.

use std::ops::Bound;

use super::words::{integer, is};
use crate::protocol::reply::{Outcome, Refusal, Reply};
use crate::protocol::request::Args;
use crate::state::clock::since_1970;
use crate::state::context::{After, Context, KeyContext, Work};
use crate::state::databases::Database;
use crate::state::glob::{LONGEST_PATTERN, Pattern};
use crate::state::job::Job;
use crate::state::keyspace::{Direction, Keyspace};
use crate::state::shared::Shared;
use crate::state::slow_log::MOST as MOST_SLOW;

/// DBSIZE has to read every key. Outside a transaction it is a job that runs concurrently with other clients; in a transaction it blocks them,
/// because the whole transaction belongs to one moment.
pub(super) fn dbsize(context: &mut KeyContext<'_>, keys: &mut Keyspace, _: Args<'_>) -> Outcome {
    if !keys.is_of_several() {
        *context.after = After::Later(Work::Job(Job::Count(keys.number())));
        return Ok(Reply::Nothing);
    }
    let all = (Bound::Unbounded, Bound::Unbounded);
    let mut count = 0;
    for entry in keys.range(all, Direction::Forward) {
        entry?;
        count += 1;
    }
    Ok(Reply::Integer(count))
}

/// FLUSHALL removes all keys of all databases, or none, even if there is a crash.
pub(super) fn flushall(context: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    check_flush(context, args, "FLUSHALL")?;
    for database in Database::all(&context.state.db, context.state.databases)? {
        keys.in_database(Some(database), |keys| keys.remove_range((Bound::Unbounded, Bound::Unbounded)))?;
    }
    Ok(Reply::OK)
}

/// FLUSHDB removes all keys of the selected database.
pub(super) fn flushdb(context: &mut KeyContext<'_>, keys: &mut Keyspace, args: Args<'_>) -> Outcome {
    check_flush(context, args, "FLUSHDB")?;
    keys.remove_range((Bound::Unbounded, Bound::Unbounded))?;
    Ok(Reply::OK)
}

fn check_flush(context: &KeyContext<'_>, args: Args<'_>, name: &str) -> Result<(), Refusal> {
    if args.len() > 2 || args.from(1).any(|word| !is(word, "SYNC") && !is(word, "ASYNC")) {
        return Err(Refusal::syntax());
    }
    match context.state.may_flush_all {
        true => Ok(()),
        false => Err(Refusal::new(format!("ERR {name} removes everything: start the server with --allow-flushall"))),
    }
}

pub(super) fn save(context: &mut Context<'_>, _: &mut Keyspace, _: Args<'_>) -> Outcome {
    context.after = After::Later(Work::Job(begin_save(context.shared)?));
    Ok(Reply::Nothing)
}

/// The job of BGSAVE has no client: no client waits for it.
pub(super) fn bgsave(context: &mut Context<'_>, _: &mut Keyspace, _: Args<'_>) -> Outcome {
    let job = begin_save(context.shared)?;
    context.shared.background.push(job);
    Ok(Reply::Simple("Background saving started"))
}

fn begin_save(shared: &mut Shared) -> Result<Job, Refusal> {
    shared.saves.begin(shared.settings.checkpoints.clone())
}

pub(super) fn lastsave(context: &mut Context<'_>, _: &mut Keyspace, _: Args<'_>) -> Outcome {
    Ok(Reply::Integer(context.shared.saves.last as i64))
}

/// The server writes everything in any case, so SAVE and NOSAVE make no difference.
pub(super) fn shutdown(context: &mut Context<'_>, _: &mut Keyspace, args: Args<'_>) -> Outcome {
    if args.from(1).any(|word| !["SAVE", "NOSAVE", "NOW", "FORCE"].iter().any(|name| is(word, name))) {
        return Err(Refusal::syntax());
    }
    context.shared.wants_shutdown = true;
    context.after = After::Close;
    Ok(Reply::Nothing)
}

/// The commands of a cluster, on a server without one.
pub(super) fn cluster(_: &mut Context<'_>, _: &mut Keyspace, _: Args<'_>) -> Outcome {
    Err(Refusal::new("ERR This instance has cluster support disabled"))
}

/// This server has no replicas, so there is nothing to wait for.
pub(super) fn wait(_: &mut Context<'_>, _: &mut Keyspace, args: Args<'_>) -> Outcome {
    for number in args.from(1) {
        if integer(number)? < 0 {
            return Err(Refusal::new("ERR timeout is negative"));
        }
    }
    Ok(Reply::Integer(0))
}

/// Everything that was written before is synced before the reply is sent.
pub(super) fn waitaof(context: &mut Context<'_>, _: &mut Keyspace, args: Args<'_>) -> Outcome {
    for number in args.from(1) {
        integer(number)?;
    }
    context.shared.syncs.is_requested = true;
    Ok(Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)]))
}

pub(super) fn time(_: &mut Context<'_>, keys: &mut Keyspace, _: Args<'_>) -> Outcome {
    let now = since_1970(keys.now());
    Ok(Reply::Array(vec![Reply::text(now.as_secs().to_string()), Reply::text(now.subsec_micros().to_string())]))
}

/// The settings under their Redis names.
fn settings(shared: &Shared) -> [(&'static str, String); 15] {
    let settings = &shared.settings;
    let limits = settings.limits;
    [
        ("appendfsync", settings.durability.appendfsync().to_owned()),
        ("appendonly", "yes".to_owned()),
        ("cluster-enabled", if shared.cluster.is_some() { "yes" } else { "no" }.to_owned()),
        ("databases", settings.databases.to_string()),
        ("maxclients", limits.clients.to_string()),
        ("maxmemory", "0".to_owned()),
        ("maxmemory-clients", limits.buffer_bytes.to_string()),
        ("maxmemory-policy", "noeviction".to_owned()),
        ("port", shared.port.to_string()),
        ("proto-max-bulk-len", limits.request_bytes.to_string()),
        ("save", String::new()),
        ("slowlog-log-slower-than", settings.slow_micros.to_string()),
        ("slowlog-max-len", MOST_SLOW.to_string()),
        ("timeout", limits.idle_seconds.to_string()),
        ("unixsocket", shared.address.strip_prefix("unix:").unwrap_or_default().to_owned()),
    ]
}

pub(super) fn config(context: &mut Context<'_>, _: &mut Keyspace, args: Args<'_>) -> Outcome {
    if is(args.at(1), "RESETSTAT") {
        context.shared.counters.reset();
        return Ok(Reply::OK);
    }
    if is(args.at(1), "SET") {
        return Err(Refusal::new("ERR settings are given when the server is started, see `mini-engine serve --help`"));
    }
    let patterns: Vec<Vec<u8>> = args.from(2).map(<[u8]>::to_ascii_lowercase).collect();
    if patterns.iter().map(|pattern| pattern.len() + 1).sum::<usize>() > LONGEST_PATTERN + 1 {
        return Err(Refusal::new(format!("ERR the patterns have at most {LONGEST_PATTERN} bytes together")));
    }
    let patterns: Vec<Pattern> = patterns.iter().map(|pattern| Pattern::new(pattern)).collect();
    let all = settings(context.shared).into_iter();
    let wanted = all.filter(|(name, _)| patterns.iter().any(|pattern| pattern.matches(name.as_bytes())));
    Ok(Reply::Map(wanted.map(|(name, value)| (Reply::text(name), Reply::text(value))).collect()))
}

/// SLOWLOG GET [count], LEN, RESET
pub(super) fn slowlog(context: &mut Context<'_>, _: &mut Keyspace, args: Args<'_>) -> Outcome {
    /// The number of requests that GET returns by default, as in Redis.
    const SHOWN: i64 = 10;
    let (log, word) = (&mut context.shared.counters.slow_log, args.at(1));
    match args.len() {
        2 if is(word, "LEN") => Ok(Reply::count(log.len())),
        2 if is(word, "RESET") => {
            log.clear();
            Ok(Reply::OK)
        }
        2 | 3 if is(word, "GET") => match args.from(2).next().map_or(Ok(SHOWN), integer)? {
            -1 => Ok(log.replies(usize::MAX)),
            count => {
                let refused = |_| Refusal::new("ERR count should be greater than or equal to -1");
                Ok(log.replies(usize::try_from(count).map_err(refused)?))
            }
        },
        _ => Err(Refusal::syntax()),
    }
}
