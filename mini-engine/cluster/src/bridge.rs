//! [`Bridge`]: passes clients' requests to the groups on this node, and the replies back to the server's event loop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join_all;
use mini_engine::{Db, Error};
use mini_engine_server::replicated::{
    self, Access, Executor, Gauge, GroupRequests, MAX_REQUEST_BYTES, Reply, ReplySender, Request, ScanCursors,
    Standing, Write, encode_error,
};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::block_in_place;

use crate::cluster_command;
use crate::gauges::gauges;
use crate::group::{Group, Refused};
use crate::local::{Groups, Local};

/// When replies have this many bytes, they are sent before more is read.
const ENOUGH_REPLIES: usize = 1 << 20;
/// If a snapshot replaces the database during a request, the request is repeated with the new one, but only this many times.
const TRIES: usize = 10;
const NO_CLUSTER: &str =
    "CLUSTERDOWN The cluster is down: this node is in no cluster yet; `mini-engine cluster init` makes one";
const NO_ROOM: &str = "OOM command not allowed: no room for more data; remove keys, make room on the disks, or raise --max-bytes (`mini-engine cluster status`)";

/// Groups by their numbers, each with an executor of reads, or why they cannot be read.
type Settled = BTreeMap<u32, std::result::Result<(Arc<Group>, Executor), Refused>>;

/// The groups, as the interface that the server uses. Each request that waits for a group is a task of the runtime.
pub(crate) struct Bridge {
    local: Arc<Local>,
    runtime: Handle,
    /// Permits for reads that are under way, or whose replies the server has not taken yet: each reply may be long.
    reads: Arc<Semaphore>,
}

impl Bridge {
    /// Must be called within the runtime. Replies that the server has not taken yet have at most about `buffer_bytes` in total.
    pub(crate) fn new(local: Arc<Local>, buffer_bytes: usize) -> Self {
        let reads = (buffer_bytes / (ENOUGH_REPLIES + MAX_REQUEST_BYTES)).clamp(1, Semaphore::MAX_PERMITS);
        Self { local, runtime: Handle::current(), reads: Arc::new(Semaphore::new(reads)) }
    }
}

impl replicated::Cluster for Bridge {
    fn is_one_group(&self) -> bool {
        self.local.groups().is_some_and(|groups| groups.identity.groups == 1)
    }

    fn redirect(&self, slot: u16, access: Access) -> Option<String> {
        let Some(groups) = self.local.groups() else { return Some(NO_CLUSTER.into()) };
        let number = groups.of_slot(slot);
        if matches!(access, Access::StaleRead | Access::FollowerRead)
            && groups.get(number).is_some_and(|group| group.votes())
        {
            return None;
        }
        groups.leads(number).err().map(|refused| refused.text(slot))
    }

    fn begin(&self, requests: GroupRequests, answer: ReplySender) {
        // This cannot happen: a node never leaves its cluster.
        let Some(groups) = self.local.groups() else { return };
        let reads = Arc::clone(&self.reads);
        self.runtime.spawn(async move {
            match requests {
                GroupRequests::Writes(writes) => answer.send(write(&groups, writes).await, None),
                GroupRequests::Reads { requests, access, cursors } => {
                    let settled = settle(&groups, &requests, access).await;
                    // Only now: other reads need not wait for this barrier. The semaphore is never closed.
                    let Ok(permit) = reads.acquire_owned().await else { return };
                    answer.send(read(&groups, requests, settled, &cursors), Some(Box::new(permit)));
                }
            }
        });
    }

    fn cluster(&self, request: &Request) -> Reply {
        match self.local.groups() {
            Some(groups) => cluster_command::reply(&groups, request),
            None => Reply::Error(NO_CLUSTER.into()),
        }
    }

    fn standing(&self) -> Standing {
        match self.local.groups() {
            Some(groups) => cluster_command::standing(&groups),
            None => Standing { followers: Some(0), ..Standing::default() },
        }
    }

    fn gauges(&self) -> Vec<Gauge> {
        gauges(&self.local)
    }

    /// The database of the first group on this node, or else the database of the log.
    fn db(&self) -> Db {
        let first = self.local.groups().and_then(|groups| groups.here().values().next().map(|group| group.db()));
        first.unwrap_or_else(|| self.local.parts.logs.db().clone())
    }
}

/// Passes writes to their groups; the writes for one group are passed together. The replies are in the order of the writes.
async fn write(groups: &Groups, writes: Vec<(u16, Write)>) -> Vec<Vec<u8>> {
    let mut of_groups = BTreeMap::<u32, (Option<Arc<Group>>, Vec<Write>)>::new();
    let mut order = Vec::with_capacity(writes.len());
    for (slot, write) in writes {
        let number = groups.of_slot(slot);
        let (group, of_group) = of_groups.entry(number).or_insert_with(|| (groups.get(number), Vec::new()));
        let is_refused = group.as_ref().is_some_and(|group| group.refuses_growth()) && Executor::grows(&write);
        order.push((slot, number, is_refused));
        if !is_refused {
            of_group.push(write);
        }
    }
    let written = of_groups.into_iter().map(async |(number, (group, writes))| {
        let written = match group {
            Some(_) if writes.is_empty() => Ok(Vec::new()),
            Some(group) => group.write(writes).await,
            None => Err(Refused::NotLeader(None)),
        };
        (number, written.map(Vec::into_iter))
    });
    let mut written: BTreeMap<_, _> = join_all(written).await.into_iter().collect();
    let reply = |(slot, number, is_refused)| match written.get_mut(&number) {
        _ if is_refused => encode_error(NO_ROOM),
        Some(Err(refused)) => encode_error(&refused.text(slot)),
        Some(Ok(replies)) => replies.next().unwrap_or_else(missing),
        None => missing(),
    };
    order.into_iter().map(reply).collect()
}

fn missing() -> Vec<u8> {
    encode_error("UNCERTAIN a reply of the group is missing")
}

/// The groups of reads, each once its database on this node shows everything that was acknowledged before the call.
async fn settle(groups: &Groups, requests: &[(u16, Request)], access: Access) -> Settled {
    let numbers: BTreeSet<u32> = requests.iter().map(|(slot, _)| groups.of_slot(*slot)).collect();
    let settled = numbers.into_iter().map(async |number| {
        let settled = match groups.get(number).ok_or(Refused::NotLeader(None)) {
            // Reads that may be stale need no barrier, even on a leader: they also work without a majority.
            Ok(group) if access != Access::StaleRead => group.catch_up().await.map(|()| group),
            group => group,
        };
        (number, settled.map(|group| (Arc::clone(&group), group.executor())))
    });
    join_all(settled).await.into_iter().collect()
}

/// Carries out reads, until the replies are long enough.
fn read(groups: &Groups, requests: Vec<(u16, Request)>, mut settled: Settled, cursors: &ScanCursors) -> Vec<Vec<u8>> {
    let (mut replies, mut bytes) = (Vec::with_capacity(requests.len()), 0);
    for (slot, request) in requests {
        let reply = match settled.get_mut(&groups.of_slot(slot)) {
            Some(Ok((group, executor))) => {
                let mut run = || read_one(group, executor, cursors, &request);
                if takes_long(&request) { block_in_place(run) } else { run() }
            }
            Some(Err(refused)) => Err(refused.clone()),
            None => Err(Refused::NotLeader(None)),
        };
        let reply = reply.unwrap_or_else(|refused| encode_error(&refused.text(slot)));
        bytes += reply.len();
        replies.push(reply);
        if bytes >= ENOUGH_REPLIES {
            break;
        }
    }
    replies
}

/// If a snapshot replaces the database meanwhile, reads again from the new one.
fn read_one(
    group: &Group,
    executor: &mut Executor,
    cursors: &ScanCursors,
    request: &Request,
) -> std::result::Result<Vec<u8>, Refused> {
    for _ in 0..TRIES {
        match executor.read(cursors, &group.db(), request) {
            Err(Error::Closed) => {}
            read => return Ok(read.unwrap_or_else(|failed| encode_error(&format!("IOERR {failed}")))),
        }
    }
    // The group was removed from this node.
    Err(Refused::NotLeader(None))
}

/// Whether a request may read many keys: then another thread should run this thread's other tasks.
fn takes_long(request: &Request) -> bool {
    const LONG: [&[u8]; 6] = [b"RANGE", b"PREFIX", b"KEYS", b"SCAN", b"DBSIZE", b"MGET"];
    request.parts().next().is_some_and(|name| LONG.iter().any(|long| name.eq_ignore_ascii_case(long)))
}
