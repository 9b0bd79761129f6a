//! The settings with which a server is started.

use std::fmt;
use std::path::PathBuf;

/// The maximum length, in a cluster, of a request, a value, a transaction with its watched keys, and a reply: 16 MiB. It is the same on every node.
pub const MAX_REQUEST_BYTES: usize = 16 << 20;

/// The protocol that clients use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// The Redis protocol, versions 2 and 3.
    Resp,
    /// The small language of the Harvard LSM coursework (CS265), one command per line; it has no passwords.
    Lines,
}

/// The time at which a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerDurability {
    /// After it is synced.
    Synced,
    /// Before it is synced; a sync happens each second.
    Everysec,
    /// Before it is synced; only the system decides when data goes to the device.
    Buffered,
}

impl ServerDurability {
    /// The name of this setting in Redis.
    pub(crate) fn appendfsync(self) -> &'static str {
        match self {
            Self::Synced => "always",
            Self::Everysec => "everysec",
            Self::Buffered => "no",
        }
    }
}

/// Limits on the resources of clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum number of connections at one time, 1 or more.
    pub clients: usize,
    /// The maximum bytes of a request, of the commands queued in a transaction, and of a reply: 1024 to
    /// [`MAX_VALUE_LEN`](mini_engine::MAX_VALUE_LEN).
    pub request_bytes: usize,
    /// The maximum number of commands of one client that are carried out before the next client has its turn, 1 or more.
    pub pipeline: usize,
    /// The maximum bytes of all clients' requests and replies together.
    pub buffer_bytes: usize,
    /// The number of seconds without a request after which a client is disconnected; 0 means never.
    pub idle_seconds: u64,
}

impl Limits {
    /// The minimum of [`Limits::request_bytes`]: any command fits, not counting its values.
    pub const MIN_REQUEST_BYTES: usize = 1024;

    /// While the requests and replies of all clients together have fewer bytes than this, requests are read even from a client that has not taken its
    /// replies: a quarter of [`Limits::buffer_bytes`]. The rest leaves room, because a buffer may double when it grows.
    pub const fn read_ahead_bytes(&self) -> usize {
        self.buffer_bytes / 4
    }
}

impl Settings {
    /// The settings of a node of a cluster: its groups have one database, and limits of their own. The groups make their writes durable themselves.
    pub(crate) fn in_cluster(self) -> Self {
        let request_bytes = self.limits.request_bytes.min(MAX_REQUEST_BYTES);
        let limits = Limits { request_bytes, ..self.limits };
        Self { limits, databases: 1, durability: ServerDurability::Synced, protocol: Protocol::Resp, ..self }
    }

    /// The maximum length of a password in bytes. A client could not send a longer one: its requests are limited until it has sent the password.
    pub const MAX_PASSWORD_LEN: usize = 512;
}

impl Default for Limits {
    /// 1,000 connections, requests of 512 MiB, 256 commands in a turn, 2 GiB of buffers, and an hour without a request.
    fn default() -> Self {
        Self { clients: 1000, request_bytes: 512 << 20, pipeline: 256, buffer_bytes: 2 << 30, idle_seconds: 3600 }
    }
}

/// The settings of a server.
#[derive(Clone)]
pub struct Settings {
    /// The protocol that clients use.
    pub protocol: Protocol,
    /// The time at which a write is acknowledged.
    pub durability: ServerDurability,
    /// The password that clients must send before anything else, 1 to 512 bytes.
    pub password: Option<Vec<u8>>,
    /// Whether to listen without a password on addresses that other machines can reach: anyone who reaches the port can read, change and delete
    /// everything.
    pub without_password: bool,
    /// Limits on the resources of clients.
    pub limits: Limits,
    /// Whether FLUSHALL and FLUSHDB are carried out.
    pub may_flush_all: bool,
    /// The directory in which SAVE and BGSAVE make checkpoints. The two newest are kept.
    pub checkpoints: PathBuf,
    /// The directory from which the command `l` of the coursework's language may load files.
    pub load_from: Option<PathBuf>,
    /// The files for TLS; if they are given, clients of a TCP address must use TLS.
    pub tls: Option<TlsFiles>,
    /// The address and port at which Prometheus reads the metrics, over HTTP and without a password.
    pub metrics: Option<String>,
    /// The number of databases that clients can select, 1 or more.
    pub databases: usize,
    /// SLOWLOG records requests that took this number of microseconds or more; 0 records all.
    pub slow_micros: u64,
}

/// Files in PEM form for TLS. They are read when the server starts.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The server's certificate, followed by those of the authorities between it and the root.
    pub certificates: PathBuf,
    /// The private key of the first certificate.
    pub key: PathBuf,
}

impl Default for Settings {
    /// The Redis protocol without a password or TLS, 16 databases, synced writes, checkpoints in `checkpoints` of the working directory, and
    /// requests of 10 ms and more in SLOWLOG.
    fn default() -> Self {
        Self {
            protocol: Protocol::Resp,
            durability: ServerDurability::Synced,
            password: None,
            without_password: false,
            limits: Limits::default(),
            may_flush_all: false,
            checkpoints: "checkpoints".into(),
            load_from: None,
            tls: None,
            metrics: None,
            databases: 16,
            slow_micros: 10_000,
        }
    }
}

/// The output leaves out the password.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut settings = f.debug_struct("Settings");
        settings.field("protocol", &self.protocol).field("durability", &self.durability).field("limits", &self.limits);
        settings.field("checkpoints", &self.checkpoints).field("load_from", &self.load_from).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        // Catches a password that appears in a log.
        let shown = format!("{:?}", Settings { password: Some(b"secret".to_vec()), ..Settings::default() });
        assert!(!shown.contains("secret") && !shown.contains("115"), "{shown}");
    }
}
