//! `serve --cluster`: a node of a cluster.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use mini_engine_cluster::{Node, Security, Settings};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGINT, SIGTERM};
use tokio::signal::unix::{SignalKind, signal};
use tracing::level_filters::LevelFilter;

use super::{runtime, security};
use crate::failure::{Exit, Failure};
use crate::{output, size, trace};

/// The options of a node.
#[derive(Args)]
#[command(next_help_heading = "Options of a node of a cluster")]
pub(crate) struct NodeArgs {
    /// Be a node of a cluster; DB is the node's directory. See `mini-engine cluster`
    #[arg(long, requires = "cluster_listen", conflicts_with_all = NOT_IN_A_CLUSTER)]
    pub(crate) cluster: bool,
    /// Address and port on which the other nodes reach this one
    #[arg(long, value_name = "ADDR", requires = "cluster")]
    cluster_listen: Option<String>,
    /// The address that the other nodes are told, if it is another one than --cluster-listen
    #[arg(long, value_name = "ADDR", requires = "cluster")]
    cluster_advertise: Option<String>,
    /// The address that clients are told, if it is another one than --listen, or that is a Unix socket
    #[arg(long, value_name = "ADDR", requires = "cluster")]
    advertise: Option<String>,
    /// The secret of all nodes is in this file; during its change, the new one and the old one, each on a line. SIGHUP
    /// makes the node read this file, and the files of TLS, again
    #[arg(long, value_name = "FILE", requires = "cluster")]
    cluster_secret_file: Option<PathBuf>,
    /// Speak TLS with the other nodes, and show them the certificate in this PEM file
    #[arg(long, value_name = "FILE", requires = "cluster", requires = "cluster_tls_key", requires = "cluster_tls_ca")]
    cluster_tls_cert: Option<PathBuf>,
    /// The private key of that certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "cluster_tls_cert")]
    cluster_tls_key: Option<PathBuf>,
    /// Trust nodes whose certificates these authorities have signed, a PEM file
    #[arg(long, value_name = "FILE", requires = "cluster_tls_cert")]
    cluster_tls_ca: Option<PathBuf>,
    /// Milliseconds without a leader, up to a third more, after which a node wants to be the leader
    #[arg(long, value_name = "MS", requires = "cluster", default_value = "600")]
    election_timeout_ms: u32,
    /// Keep up to about this many bytes of log, or K, M or G behind the number, for nodes that are away; beyond it they get a copy of the data. By default a
    /// tenth of the disk, at most 8G
    #[arg(long, value_name = "BYTES", requires = "cluster", value_parser = size::parse)]
    keep_log: Option<u64>,
    /// Accept no writes that add data while less is free on the disk; 0 turns this off. By default 2% of the disk, from 1G to 8G, but at most 10%
    #[arg(long, value_name = "BYTES", requires = "cluster", value_parser = size::parse)]
    min_free_bytes: Option<u64>,
    /// Accept no writes that add data to a group that this node leads while its tables have more bytes. By default, and with 0, there is no limit
    #[arg(long, value_name = "BYTES", requires = "cluster", value_parser = size::parse)]
    max_bytes: Option<u64>,
}

/// Options that apply only to a server outside of a cluster.
const NOT_IN_A_CLUSTER: [&str; 9] = [
    "protocol",
    "durability",
    "allow_flushall",
    "checkpoints",
    "load_from",
    "databases",
    "memtable_bytes",
    "wait",
    "quarantine",
];

impl NodeArgs {
    pub(crate) fn settings(
        &self,
        dir: &Path,
        listen: &str,
        clients: mini_engine_server::Settings,
    ) -> Result<Settings, Failure> {
        Ok(Settings {
            dir: dir.to_owned(),
            listen: listen.to_owned(),
            advertise: self.advertise.clone(),
            cluster_listen: self.cluster_listen.clone().unwrap_or_default(),
            cluster_advertise: self.cluster_advertise.clone(),
            security: self.security()?,
            clients,
            election_timeout: Duration::from_millis(u64::from(self.election_timeout_ms)),
            keep_log: self.keep_log,
            min_free_bytes: self.min_free_bytes,
            max_bytes: self.max_bytes,
        })
    }

    fn security(&self) -> Result<Security, Failure> {
        let tls = [&self.cluster_tls_cert, &self.cluster_tls_key, &self.cluster_tls_ca];
        security::read(self.cluster_secret_file.as_deref(), tls)
    }
}

/// Runs a node until a signal or a failure ends it. SIGHUP makes it read the files of `args` again.
pub(crate) fn run(args: &NodeArgs, settings: Settings) -> Result<Exit, Failure> {
    // A node's exit code is rarely read, so later errors go to its log, with or without -v.
    trace::to_stderr(LevelFilter::WARN);
    allow_files();
    runtime::run(async {
        let dir = settings.dir.display().to_string();
        let signals = || Ok((stop_signal()?, signal(SignalKind::hangup())?));
        let (stop, mut hangup) =
            signals().map_err(|source| Failure::Io { action: "wait for", place: "signals".into(), source })?;
        tokio::pin!(stop);
        let mut node = Node::start(settings).await?;
        output::say(format_args!("nodes reach this one on {}", node.cluster_address()));
        if let Some(metrics) = node.metrics_address() {
            output::say(format_args!("metrics at http://{metrics}/metrics"));
        }
        output::say(format_args!("serving {dir} on {}", node.clients_address()));
        let failure = loop {
            tokio::select! {
                failure = node.failed() => break Some(failure),
                () = &mut stop => break None,
                _ = hangup.recv() => {}
            }
            match args.security().and_then(|security| Ok(node.reload(&security)?)) {
                Ok(()) => output::say(format_args!("the secrets and the files of TLS were read again")),
                Err(error) => tracing::error!("the old secrets and certificates stay, because SIGHUP failed: {error}"),
            }
        };
        let stopped = node.stop().await;
        if let Some(failure) = failure {
            return Err(failure.into());
        }
        stopped?;
        output::say(format_args!("ended; everything is written"));
        Ok(Exit::Done)
    })
}

/// Raises the limit on open files to the highest that the system allows: each connection is an open file, and a node ends if its database cannot
/// open a file.
pub(crate) fn allow_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_err() {
        output::say(format_args!("could not raise the number of open files from {}", current.unwrap_or(u64::MAX)));
    }
}

/// A future that completes at ^C or SIGTERM. A second signal ends the process at once.
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let is_second = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // After a first signal, the default action ends the process. It comes before the flag is set, so that a first signal does not cause it.
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&is_second))?;
        signal_hook::flag::register(signal, Arc::clone(&is_second))?;
    }
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
