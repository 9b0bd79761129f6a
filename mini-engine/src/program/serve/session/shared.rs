//! What all clients of one server share.

use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use mini_engine::{Db, Error};

use super::clients::Clients;
use super::cursors::Cursors;
use super::damage::Damage;
use super::job::Job;
use super::reply::{Outcome, Reply};
use super::request::RequestLimits;

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerDurability {
    /// Once it is synced.
    Synced,
    /// Before it is synced, which happens each second.
    Everysec,
    /// Before it is synced; nobody syncs but the system.
    Buffered,
}

impl ServerDurability {
    /// What Redis calls it.
    pub(crate) fn appendfsync(self) -> &'static str {
        match self {
            Self::Synced => "always",
            Self::Everysec => "everysec",
            Self::Buffered => "no",
        }
    }
}

/// Bounds on what clients can take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections at one time.
    pub(crate) clients: usize,
    /// Bytes of a request, of the commands queued in a transaction, and of a reply.
    pub(crate) request_bytes: usize,
    /// Commands of one client that are carried out before the next client has its turn.
    pub(crate) pipeline: usize,
    /// Bytes of all clients' requests and replies together.
    pub(crate) buffer_bytes: usize,
    /// Seconds without a request after which a client is disconnected; 0 is never.
    pub(crate) idle_seconds: u64,
}

/// The most parts of a request, as in Redis.
const MOST_PARTS: usize = 1 << 20;
/// What a client may send before it has told the password, as in Redis.
const BEFORE_PASSWORD: RequestLimits = RequestLimits { bytes: 16 << 10, parts: 10 };

impl Limits {
    pub(crate) fn of_requests(&self, is_authenticated: bool) -> RequestLimits {
        match is_authenticated {
            true => RequestLimits { bytes: self.request_bytes, parts: MOST_PARTS },
            false => RequestLimits { bytes: BEFORE_PASSWORD.bytes.min(self.request_bytes), ..BEFORE_PASSWORD },
        }
    }
}

/// How the server was started.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) durability: ServerDurability,
    pub(crate) password: Option<Vec<u8>>,
    pub(crate) limits: Limits,
    /// Whether FLUSHALL and FLUSHDB are carried out.
    pub(crate) may_flush_all: bool,
    /// The directory that SAVE and BGSAVE make checkpoints in.
    pub(crate) checkpoints: PathBuf,
    /// The directory whose files `l FILE` may load.
    pub(crate) load_from: Option<PathBuf>,
    pub(crate) port: u16,
    /// Where the numbers of SCAN's cursors begin.
    pub(crate) first_cursor: u64,
}

/// What INFO counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerCounters {
    pub(crate) commands: u64,
    pub(crate) connections: u64,
    pub(crate) rejected: u64,
    pub(crate) clients: usize,
    pub(crate) buffer_bytes: usize,
}

/// What has become of the writes of clients, for INFO and for the log.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    /// Operations that were refused.
    pub(crate) refused: u64,
    /// Why the last one was, of those that were.
    pub(crate) last_refusal: Option<String>,
    /// Whether the last write was refused.
    pub(crate) are_refused: bool,
    /// What the log says: how many were refused, and whether they still are.
    said: (u64, bool),
}

impl Writes {
    /// A batch of so many operations was written, or refused with an error.
    pub(crate) fn note(&mut self, operations: usize, refusal: Option<&Error>) {
        self.are_refused = refusal.is_some();
        if let Some(error) = refusal {
            self.refused += operations as u64;
            self.last_refusal = Some(error.to_string().replace(['\r', '\n'], " "));
        }
    }

    /// What the log is to say, if anything has changed.
    pub(crate) fn news(&mut self) -> Option<String> {
        let (said, is_said) = std::mem::replace(&mut self.said, (self.refused, self.are_refused));
        let cause = self.last_refusal.as_deref()?;
        match (is_said, self.are_refused) {
            (false, true) => Some(format!("writes are refused: {cause}")),
            (false, false) if said < self.refused => Some(format!("writes were refused, and are taken again: {cause}")),
            (true, false) => Some(format!("writes are taken again; refused so far: {}", self.refused)),
            _ => None,
        }
    }
}

pub(crate) struct Shared {
    pub(crate) db: Db,
    pub(crate) settings: Settings,
    pub(crate) cursors: Cursors,
    pub(crate) counters: ServerCounters,
    pub(crate) clients: Clients,
    pub(crate) damage: Damage,
    pub(crate) writes: Writes,
    pub(crate) started: Instant,
    /// Whether something was written since the last sync.
    pub(crate) is_unsynced: bool,
    /// Whether a client asked for a sync whatever the durability.
    pub(crate) wants_sync: bool,
    /// Whether a client asked the server to end.
    pub(crate) wants_shutdown: bool,
    /// When the last checkpoint was made, in seconds since 1970.
    pub(crate) last_save: u64,
    pub(crate) is_saving: bool,
    /// Jobs under way whose writes may be seen before they are synced.
    pub(crate) loads: usize,
    /// Jobs that no client waits for, for the server to begin.
    pub(crate) background: Vec<Job>,
}

impl Shared {
    pub(crate) fn new(db: Db, settings: Settings) -> Self {
        Self {
            db,
            cursors: Cursors::new(settings.first_cursor),
            settings,
            counters: ServerCounters::default(),
            clients: Clients::default(),
            damage: Damage::default(),
            writes: Writes::default(),
            started: Instant::now(),
            is_unsynced: false,
            wants_sync: false,
            wants_shutdown: false,
            last_save: unix_seconds(),
            is_saving: false,
            loads: 0,
            background: Vec::new(),
        }
    }

    /// The reply that tells of `outcome`. Damage is noted.
    pub(crate) fn reply(&mut self, outcome: Outcome) -> Reply {
        outcome.unwrap_or_else(|refusal| {
            if let Some(error) = refusal.cause() {
                self.damage.note(error);
            }
            refusal.into_reply()
        })
    }

    /// A job has ended. Its reply.
    pub(crate) fn end_job(&mut self, job: &Job, outcome: Outcome) -> Reply {
        match job {
            Job::Save(_) => {
                self.is_saving = false;
                if outcome.is_ok() {
                    self.last_save = unix_seconds();
                }
            }
            Job::Load(_) => {
                self.loads -= 1;
                // One that failed has not synced.
                self.is_unsynced = true;
            }
            Job::Count | Job::Statistics => {}
        }
        self.reply(outcome)
    }

    /// Whether the replies of this turn wait for a sync.
    pub(crate) fn must_sync(&self) -> bool {
        self.wants_sync
            || ((self.is_unsynced || self.loads > 0) && self.settings.durability == ServerDurability::Synced)
    }
}

pub(super) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs())
}
