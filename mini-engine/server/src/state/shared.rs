//! State that all clients of one server share.

use std::time::Instant;

use mini_engine::Db;

use super::clients::Clients;
use super::counters::Counters;
use super::databases::Database;
use super::job::Job;
use super::key_state::KeyState;
use super::saves::Saves;
use super::scripts::Scripts;
use super::syncs::Syncs;
use crate::groups::{Cluster, Standing};
use crate::protocol::cursors::ScanCursors;
use crate::protocol::reply::{Outcome, Reply};
use crate::protocol::request::RequestLimits;
use crate::settings::Settings;

/// The maximum number of parts of a request, as in Redis.
const MOST_PARTS: usize = 1 << 20;
/// The limits of a client's requests before it has sent the password, as in Redis.
const BEFORE_PASSWORD: RequestLimits = RequestLimits { bytes: 16 << 10, parts: 10 };

pub(crate) struct Shared {
    pub(crate) keys: KeyState,
    pub(crate) settings: Settings,
    /// The database that is selected for every new client. In a cluster no request uses this database, so its handle may be outdated.
    pub(crate) first: Database,
    /// The cluster; `None` on a server of one node.
    pub(crate) cluster: Option<Box<dyn Cluster>>,
    /// The address on which the server listens, and its port; 0 if there is no port.
    pub(crate) address: String,
    pub(crate) port: u16,
    pub(crate) counters: Counters,
    pub(crate) clients: Clients,
    pub(crate) syncs: Syncs,
    pub(crate) saves: Saves,
    pub(crate) started: Instant,
    /// Whether a client requested the server to end.
    pub(crate) wants_shutdown: bool,
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
            cluster: None,
            address: String::new(),
            port: 0,
            counters: Counters::default(),
            clients: Clients::default(),
            syncs: Syncs::new(settings.durability),
            saves: Saves::new(),
            settings,
            started: Instant::now(),
            wants_shutdown: false,
            background: Vec::new(),
        }
    }

    /// The name of the server's mode in Redis.
    pub(crate) fn mode(&self) -> &'static str {
        if self.cluster.is_some() { "cluster" } else { "standalone" }
    }

    /// The place of this node among the others of its cluster, if there is one.
    pub(crate) fn standing(&self) -> Option<Standing> {
        self.cluster.as_ref().map(|cluster| cluster.standing())
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

    /// Records the end of a job. Returns the job's reply.
    pub(crate) fn end_job(&mut self, job: &Job, outcome: Outcome) -> Reply {
        match job {
            Job::Save(_) => self.saves.end(outcome.is_ok()),
            Job::Load(_) => self.syncs.end_load(),
            Job::Count(_) | Job::Create(_) | Job::Statistics => {}
        }
        self.counters.reply(outcome)
    }
}
