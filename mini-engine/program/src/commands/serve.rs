//! `serve`: answers clients over the network, with the server of `mini-engine-server`.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, ValueEnum};
use mini_engine::MAX_VALUE_LEN;
use mini_engine_server::{Error, Limits, Protocol, Server, ServerDurability, Settings, Stopper, TlsFiles};
use signal_hook::consts::{SIGINT, SIGTERM};
use tracing::level_filters::LevelFilter;

use crate::database::{DatabaseArgs, OpenFor};
use crate::failure::{Exit, Failure, is_want_of_space};
#[cfg(not(feature = "cluster"))]
use crate::node::NodeArgs;
#[cfg(feature = "cluster")]
use crate::node::serve::{self, NodeArgs};
use crate::{output, password, size, trace};

/// Serve the database to clients of the Redis protocol
///
/// redis-cli and redis-benchmark work, and so do client libraries for what is there: values are
/// strings, which may expire. There is no other type, and of scripts only those of locks and rate
/// limiters. Beside the usual commands there are RANGE from to [LIMIT n] [REV], PREFIX prefix
/// [LIMIT n] [REV], DELRANGE from to and DELPREFIX prefix. COMMAND DOCS lists all.
///
/// The server ends at ^C, SIGTERM or SHUTDOWN: it answers what it has received, and writes
/// everything to disk. A second ^C ends it at once, and loses nothing that was acknowledged.
#[derive(Args)]
#[command(after_help = "\
Examples:
  mini-engine serve notes.db
  redis-cli set milk '2 litres'
  redis-cli prefix mi limit 10

  mini-engine serve notes.db --listen 0.0.0.0:6379 --password-file secret \\
    --tls-cert server.pem --tls-key server.key --metrics 127.0.0.1:9100
  mini-engine serve notes.db --listen unix:/run/notes.sock
  mini-engine serve --cluster node-1 --listen 127.0.0.1:7001 --cluster-listen 127.0.0.1:17001
  mini-engine serve numbers.db --protocol lines --listen 127.0.0.1:7000 --load-from data")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Address and port to listen on, where port 0 takes a free one, which is printed; or
    /// unix:PATH for a Unix socket, which its file's permissions protect
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6379")]
    listen: String,
    /// What clients write
    #[arg(long, value_enum, default_value = "resp")]
    protocol: Language,
    /// When a write is acknowledged
    #[arg(long, value_enum, default_value = "synced")]
    durability: Acknowledged,
    /// The password is the first line of this file, or else MINI_ENGINE_PASSWORD in the environment
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Listen on addresses that other machines reach, without a password: whoever reaches the
    /// port can read, change and delete everything
    #[arg(long)]
    without_password: bool,
    /// Speak TLS only, with the certificate in this PEM file, followed by those of its authorities.
    /// In a program that is built with `--features tls`
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Address and port at which Prometheus reads the metrics, at /metrics over HTTP. They are
    /// numbers, and need no password
    #[arg(long, value_name = "ADDR")]
    metrics: Option<String>,
    /// Carry out FLUSHALL and FLUSHDB, which remove all keys
    #[arg(long)]
    allow_flushall: bool,
    /// Directory in which SAVE and BGSAVE make checkpoints, of which two are kept [default: the
    /// name of the database with .checkpoints behind it]
    #[arg(long, value_name = "DIR")]
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
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = size::parse)]
    max_buffers: u64,
    /// Requests of one client that are carried out before the next client has its turn
    #[arg(long, value_name = "N", default_value = "256", value_parser = clap::value_parser!(u32).range(1..))]
    max_pipeline: u32,
    /// Databases that clients can select
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    databases: u32,
    /// Microseconds from which on a request is in SLOWLOG; 0 is all
    #[arg(long, value_name = "MICROS", default_value = "10000")]
    slow: u64,
    /// Seconds after which a client that sends nothing is disconnected; 0 is never
    #[arg(long, value_name = "SECONDS", default_value = "3600")]
    idle_timeout: u64,
    #[command(flatten)]
    node: NodeArgs,
}

/// Parses the size of a request: at least that of a command, and at most that of a value of the engine.
fn request_size(text: &str) -> Result<u64, String> {
    let bytes = size::parse(text)?;
    let (least, most) = (Limits::MIN_REQUEST_BYTES as u64, MAX_VALUE_LEN as u64);
    match (least..=most).contains(&bytes) {
        true => Ok(bytes),
        false => Err(format!("expected {least} to {most} bytes")),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    /// The Redis protocol, versions 2 and 3
    Resp,
    /// p KEY VALUE, g KEY, r FROM TO, d KEY, l FILE, s, one a line; keys and values are whole numbers
    Lines,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Acknowledged {
    /// Once it survives power loss; writes that arrive together share a sync
    Synced,
    /// Before; power loss takes the last second or two, a killed server nothing
    Everysec,
    /// Before; power loss takes what was not written yet, a killed server nothing
    Buffered,
}

impl ServeArgs {
    fn settings(&self, password: Option<Vec<u8>>) -> Settings {
        Settings {
            protocol: match self.protocol {
                Language::Resp => Protocol::Resp,
                Language::Lines => Protocol::Lines,
            },
            durability: match self.durability {
                Acknowledged::Synced => ServerDurability::Synced,
                Acknowledged::Everysec => ServerDurability::Everysec,
                Acknowledged::Buffered => ServerDurability::Buffered,
            },
            password,
            without_password: self.without_password,
            limits: self.limits(),
            may_flush_all: self.allow_flushall,
            checkpoints: self.checkpoints.clone().unwrap_or_else(|| self.beside_the_database()),
            load_from: self.load_from.clone(),
            tls: self.tls(),
            metrics: self.metrics.clone(),
            databases: self.databases as usize,
            slow_micros: self.slow,
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            clients: self.max_clients as usize,
            request_bytes: self.max_request as usize,
            pipeline: self.max_pipeline as usize,
            buffer_bytes: self.max_buffers as usize,
            idle_seconds: self.idle_timeout,
        }
    }

    fn tls(&self) -> Option<TlsFiles> {
        let files = self.tls_cert.clone().zip(self.tls_key.clone());
        files.map(|(certificates, key)| TlsFiles { certificates, key })
    }

    fn beside_the_database(&self) -> PathBuf {
        let path = &self.database.path;
        // The full path, without a slash at the end: after `notes.db/` or `.` the suffix would be a name inside the database. A database that does
        // not exist yet has no canonical path.
        let full = std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.clone());
        let mut beside = full.components().collect::<PathBuf>().into_os_string();
        beside.push(".checkpoints");
        beside.into()
    }
}

pub(crate) fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    let password = password::read(args.password_file.as_deref())?;
    #[cfg(not(feature = "cluster"))]
    args.node.check()?;
    #[cfg(feature = "cluster")]
    if args.node.cluster {
        let settings = args.node.settings(&args.database.path, &args.listen, args.settings(password))?;
        return serve::run(&args.node, settings);
    }
    let settings = args.settings(password);
    let server = Server::bind(&args.listen, settings)?;
    let address = server.address().clone();
    let metrics = server.metrics_address().cloned();
    let db = args.database.open(OpenFor::Creating)?;
    // A server's exit code is rarely read, so later errors go to its log, with or without -v.
    trace::to_stderr(LevelFilter::WARN);
    stop_at_signals(server.stopper()?).map_err(|source| Failure::Io {
        action: "wait for",
        place: "signals".into(),
        source,
    })?;
    if let Some(metrics) = metrics {
        output::say(format_args!("metrics at http://{metrics}/metrics"));
    }
    output::say(format_args!("serving {} on {address}", args.database.path.display()));
    let ended = server.run(db);
    if let Err(Error::Engine(error)) = &ended
        && is_want_of_space(error)
    {
        output::say(format_args!(
            "ended; what was written is in the log, which the next start reads: there is no space for tables"
        ));
    }
    ended?;
    output::say(format_args!("ended; everything is written"));
    Ok(Exit::Done)
}

/// Makes ^C and SIGTERM shut the server down cleanly. A second signal ends the process at once.
fn stop_at_signals(stopper: Stopper) -> io::Result<()> {
    let is_second = Arc::new(AtomicBool::new(false));
    let socket = stopper.into_socket();
    for signal in [SIGINT, SIGTERM] {
        // After a first signal, the default action ends the process. Registered before the flag, so that the first signal does not see its own flag.
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&is_second))?;
        signal_hook::flag::register(signal, Arc::clone(&is_second))?;
        signal_hook::low_level::pipe::register(signal, socket.try_clone()?)?;
    }
    Ok(())
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Engine(error) => error.into(),
            Error::Io { action, place, source } => Self::Io { action, place, source },
            Error::Exposed(address) => exposed(address),
            Error::Address { .. } | Error::Tls { .. } => Self::Usage(error.to_string()),
            Error::NoPasswords => Self::Usage("--protocol lines has no passwords: nobody could tell this one".into()),
            other => Self::Usage(other.to_string()),
        }
    }
}

fn exposed(address: SocketAddr) -> Failure {
    Failure::Usage(format!(
        "refused to listen on {address}: other machines can reach it, and there is no password; give one with \
         --password-file or MINI_ENGINE_PASSWORD (not with --protocol lines), or say --without-password if whoever reaches the \
         port may read, change and delete everything"
    ))
}
