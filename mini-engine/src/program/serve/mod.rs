//! `serve`: answers clients over the network.
//!
//! One thread carries out what clients ask for: an event loop (`event_loop.rs`) reads what has arrived from all of them, carries
//! it out, has all writes of that turn synced at once, and only then sends the replies. That is how Redis works, and it fits here:
//! * The sync is what a durable write costs, and one sync serves all clients of a turn. The longer it takes, the more requests
//!   wait for the next turn, and the more share its sync.
//! * Commands that read, decide and write (INCR, SET NX, transactions) are atomic without a lock, since none comes in between.
//! * With few cores a thread for each client would spend more on waking threads than on the commands, and so would an
//!   asynchronous runtime; neither makes a sync shorter.
//!
//! The loop never makes a call that *blocks*: that waits for another thread, for as long as that takes. Such calls are the wait of a write
//! for a flush, a merge or the next log, the sync, and whole jobs: counting, checkpoints, loading. Threads have them (`worker.rs`). What
//! is left on the loop is work of its own, which has an end: a large range, or a value that is read from a slow disk, holds up other
//! clients for as long as it takes, as in Redis.
//!
//! A crash at any moment: what was written is in the log, in order; with `synced` no reply was sent for what is not durable. So no
//! acknowledged write is lost. Unacknowledged ones may be there, as after any crash.

mod address;
mod choices;
mod connection;
mod event_loop;
mod listener;
mod password;
mod session;
mod worker;

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use mini_engine::MAX_VALUE_LEN;
use tracing::level_filters::LevelFilter;

use self::address::Exposure;
use self::event_loop::EventLoop;
use self::session::{Limits, Protocol, ServerDurability, Settings, Shared};
use super::Exit;
use super::database::{DatabaseArgs, OpenFor};
use super::failure::{Failure, is_want_of_space};
use super::{output, size, trace};

/// Serve the database to clients of the Redis protocol
///
/// redis-cli and redis-benchmark work, and so do client libraries for what is there: values are
/// strings and do not expire, and there is no WATCH, no script and no other type. Beside the usual
/// commands there are RANGE from to [LIMIT n] [REV] and PREFIX prefix [LIMIT n] [REV]. COMMAND
/// DOCS lists all.
///
/// The server ends at ^C, SIGTERM or SHUTDOWN: it answers what it has received, and writes
/// everything to disk. A second ^C ends it at once, and loses nothing that was acknowledged.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  mini-engine serve notes.db
  redis-cli set milk '2 litres'
  redis-cli prefix mi limit 10

  mini-engine serve notes.db --listen 0.0.0.0:6379 --password-file secret
  mini-engine serve numbers.db --protocol lines --listen 127.0.0.1:7000 --load-from data"
)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Address and port to listen on; port 0 takes a free one, which is printed
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6379")]
    listen: String,
    /// What clients write
    #[arg(long, value_enum, default_value = "resp")]
    protocol: Protocol,
    /// When a write is acknowledged
    #[arg(long, value_enum, default_value = "synced")]
    durability: ServerDurability,
    /// The password is the first line of this file, or else MINI_ENGINE_PASSWORD in the environment
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Listen on addresses that other machines reach, without a password: whoever reaches the
    /// port can read, change and delete everything
    #[arg(verbatim_doc_comment, long)]
    without_password: bool,
    /// Carry out FLUSHALL and FLUSHDB, which remove all keys
    #[arg(long)]
    allow_flushall: bool,
    /// Directory in which SAVE and BGSAVE make checkpoints, of which two are kept [default: the
    /// name of the database with .checkpoints behind it]
    #[arg(verbatim_doc_comment, long, value_name = "DIR")]
    checkpoints: Option<PathBuf>,
    /// Directory whose files the command `l` of --protocol lines may load
    #[arg(long, value_name = "DIR")]
    load_from: Option<PathBuf>,
    /// Connections at one time
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_clients: u32,
    /// Size of a request, of a reply, and of a transaction
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = request_size)]
    max_request: u64,
    /// Size of all clients' requests and replies together; past it the client with the most is
    /// disconnected
    #[arg(verbatim_doc_comment, long, value_name = "SIZE", default_value = "2G", value_parser = size::parse)]
    max_buffers: u64,
    /// Requests of one client that are carried out before the next client has its turn
    #[arg(long, value_name = "N", default_value = "256", value_parser = clap::value_parser!(u32).range(1..))]
    max_pipeline: u32,
    /// Seconds after which a client that sends nothing is disconnected; 0 is never
    #[arg(long, value_name = "SECONDS", default_value = "3600")]
    idle_timeout: u64,
}

/// A size that a request may have: a command at least, and a value of the engine at most.
fn request_size(text: &str) -> Result<u64, String> {
    let bytes = size::parse(text)?;
    let most = MAX_VALUE_LEN as u64;
    match (1024..=most).contains(&bytes) {
        true => Ok(bytes),
        false => Err(format!("expected 1024 to {most} bytes")),
    }
}

impl ServeArgs {
    /// The database has to be there.
    fn settings(&self, password: Option<Vec<u8>>, port: u16) -> Settings {
        let path = &self.database.path;
        // In full: behind `notes.db/` or `.` the ending would be a name inside the database.
        let mut beside = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()).into_os_string();
        beside.push(".checkpoints");
        Settings {
            durability: self.durability,
            password,
            limits: Limits {
                clients: self.max_clients as usize,
                request_bytes: self.max_request as usize,
                pipeline: self.max_pipeline as usize,
                buffer_bytes: self.max_buffers as usize,
                idle_seconds: self.idle_timeout,
            },
            may_flush_all: self.allow_flushall,
            checkpoints: self.checkpoints.clone().unwrap_or_else(|| beside.into()),
            load_from: self.load_from.clone(),
            port,
            first_cursor: nanos_since_1970(),
        }
    }
}

fn nanos_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_nanos() as u64)
}

pub(crate) fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    let password = password::read(args.password_file.as_deref())?;
    let exposure = Exposure {
        has_password: password.is_some(),
        speaks_passwords: args.protocol == Protocol::Resp,
        is_accepted: args.without_password,
    };
    let listener = listener::bind(&address::resolve(&args.listen, exposure)?)?;
    let address = listener.local_addr().map_err(listener::failure("ask for the address of", &args.listen))?;
    let db = args.database.open(OpenFor::Creating)?;
    // Nobody waits for a server's exit code: what goes wrong later is in its log, whether or not -v asked for more.
    trace(LevelFilter::WARN);
    let shared = Shared::new(db.clone(), args.settings(password, address.port()));
    let mut event_loop = EventLoop::new(listener, shared, args.protocol)?;
    output::say(format_args!("serving {} on {address}", args.database.path.display()));
    let outcome = event_loop.run();
    // Whatever ended the loop, what was written shall be durable. Before its threads are joined, of which one may wait for the engine.
    let closed = db.close();
    drop(event_loop);
    if closed.as_ref().is_err_and(is_want_of_space) {
        output::say(format_args!(
            "ended; what was written is in the log, which the next start reads: there is no space for tables"
        ));
    }
    outcome?;
    closed?;
    output::say(format_args!("ended; everything is written"));
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests;
