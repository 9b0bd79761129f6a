//! State that all clients of one server share.

use std::time::Instant;

use mini_engine::{Db, Error};

use super::clients::Clients;
use super::clock::unix_seconds;
use super::command_stats::CommandStats;
use super::damage::Damage;
use super::databases::Database;
use super::job::Job;
use super::key_state::KeyState;
use super::monitors::Monitors;
use super::refused::Refused;
use super::scripts::Scripts;
use super::slow_log::SlowLog;
use crate::groups::Groups;
use crate::protocol::cursors::ScanCursors;
use crate::protocol::reply::{Outcome, Reply};
use crate::protocol::request::RequestLimits;
use crate::settings::{ServerDurability, Settings};

/// The maximum number of parts of a request, as in Redis.
const MOST_PARTS: usize = 1 << 20;
/// The limits of a client's requests before it has sent the password, as in Redis.
const BEFORE_PASSWORD: RequestLimits = RequestLimits { bytes: 16 << 10, parts: 10 };

/// The counters for INFO.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerCounters {
    pub(crate) commands: u64,
    /// The number of commands per second in the last interval between two ticks.
    pub(crate) commands_per_second: u64,
    pub(crate) connections: u64,
    pub(crate) clients: usize,
    /// The bytes of requests and replies in memory: now, and at most so far.
    pub(crate) buffer_bytes: usize,
    pub(crate) most_buffer_bytes: usize,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    /// The number of key lookups that found the key; `misses` counts the others.
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

/// The results of clients' writes, for INFO and for the log.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    /// The number of operations that were refused.
    pub(crate) refused: u64,
    /// The reason of the last refusal.
    pub(crate) last_refusal: Option<String>,
    /// Whether the last write was refused.
    pub(crate) are_refused: bool,
    /// The state at the last message in the log: the number of refused operations, and whether writes were still refused.
    said: (u64, bool),
}

impl Writes {
    /// Records that a batch of this many operations was written, or refused with an error.
    pub(crate) fn note(&mut self, operations: usize, refusal: Option<&Error>) {
        self.are_refused = refusal.is_some();
        if let Some(error) = refusal {
            self.refused += operations as u64;
            self.last_refusal = Some(error.to_string().replace(['\r', '\n'], " "));
        }
    }

    /// The message for the log, if something has changed.
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
    pub(crate) keys: KeyState,
    pub(crate) settings: Settings,
    /// The database that is selected for every new client. In a cluster no request uses this database, so its handle may be outdated.
    pub(crate) first: Database,
    /// The groups of the cluster; `None` on a server of one node.
    pub(crate) groups: Option<Box<dyn Groups>>,
    /// The address on which the server listens, and its port; 0 if there is no port.
    pub(crate) address: String,
    pub(crate) port: u16,
    pub(crate) counters: ServerCounters,
    pub(crate) clients: Clients,
    pub(crate) refused: Refused,
    pub(crate) stats: CommandStats,
    pub(crate) slow_log: SlowLog,
    pub(crate) monitors: Monitors,
    pub(crate) damage: Damage,
    pub(crate) writes: Writes,
    pub(crate) started: Instant,
    /// Whether something was written since the last sync.
    pub(crate) is_unsynced: bool,
    /// Whether a client requested a sync, independently of the durability setting.
    pub(crate) wants_sync: bool,
    /// Whether a client requested the server to end.
    pub(crate) wants_shutdown: bool,
    /// The time of the last checkpoint, in seconds since 1970.
    pub(crate) last_save: u64,
    pub(crate) is_saving: bool,
    /// Whether the last attempt to make a checkpoint failed.
    pub(crate) has_save_failed: bool,
    /// The number of jobs under way whose writes may be seen before they are synced.
    pub(crate) loads: usize,
    /// Jobs for which no client waits; the server begins them.
    pub(crate) background: Vec<Job>,
}

impl Shared {
    /// The numbers of SCAN's cursors begin at `first_cursor`.
    pub(crate) fn new(db: Db, settings: Settings, first_cursor: u64) -> Self {
        let first = Database::first(&db);
        let keys = KeyState {
            db,
            request_bytes: settings.limits.request_bytes,
            databases: settings.databases,
            may_flush_all: settings.may_flush_all,
            cursors: ScanCursors::new(first_cursor),
            scripts: Scripts::default(),
        };
        Self {
            keys,
            first,
            groups: None,
            address: String::new(),
            port: 0,
            settings,
            counters: ServerCounters::default(),
            clients: Clients::default(),
            refused: Refused::default(),
            stats: CommandStats::default(),
            slow_log: SlowLog::default(),
            monitors: Monitors::default(),
            damage: Damage::default(),
            writes: Writes::default(),
            started: Instant::now(),
            is_unsynced: false,
            wants_sync: false,
            wants_shutdown: false,
            last_save: unix_seconds(),
            is_saving: false,
            has_save_failed: false,
            loads: 0,
            background: Vec::new(),
        }
    }

    /// The name of the server's mode in Redis.
    pub(crate) fn mode(&self) -> &'static str {
        if self.groups.is_some() { "cluster" } else { "standalone" }
    }

    /// Whether requests are read even from a client that has not taken its replies.
    pub(crate) fn may_read_ahead(&self) -> bool {
        self.counters.buffer_bytes < self.settings.limits.read_ahead_bytes()
    }

    /// The limits of a client's requests.
    pub(crate) fn limits_of_requests(&self, is_authenticated: bool) -> RequestLimits {
        let bytes = self.settings.limits.request_bytes;
        match is_authenticated {
            true => RequestLimits { bytes, parts: MOST_PARTS },
            false => RequestLimits { bytes: BEFORE_PASSWORD.bytes.min(bytes), ..BEFORE_PASSWORD },
        }
    }

    /// The reply for a result of a command. Damage in the result is recorded.
    pub(crate) fn reply(&mut self, outcome: Outcome) -> Reply {
        outcome.unwrap_or_else(|refusal| {
            if let Some(error) = refusal.cause() {
                self.damage.note(error);
            }
            refusal.into_reply()
        })
    }

    /// Records the end of a job. Returns the job's reply.
    pub(crate) fn end_job(&mut self, job: &Job, outcome: Outcome) -> Reply {
        match job {
            Job::Save(_) => {
                (self.is_saving, self.has_save_failed) = (false, outcome.is_err());
                if outcome.is_ok() {
                    self.last_save = unix_seconds();
                }
            }
            Job::Load(_) => {
                self.loads -= 1;
                // A failed job has not synced its writes.
                self.is_unsynced = true;
            }
            Job::Count(_) | Job::Create(_) | Job::Statistics => {}
        }
        self.reply(outcome)
    }

    /// Whether the replies of this turn must wait for a sync.
    pub(crate) fn must_sync(&self) -> bool {
        self.wants_sync
            || ((self.is_unsynced || self.loads > 0) && self.settings.durability == ServerDurability::Synced)
    }
}
