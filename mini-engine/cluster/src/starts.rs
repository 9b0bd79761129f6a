//! [`Starts`]: the starts of this node, and the last known start of each other node. By them a node finds out that its directory is an older copy.
//!
//! Such a node lacks votes and entries that it has acknowledged, so it must not count. Each start draws a random number, appends it to the node's
//! history, and then counts ticks. At the beginning of a connection, both nodes tell their histories, and which start and tick of each other node they
//! know. Each judges only itself: if what the other one knows of it is not in its present history, its directory is an older copy. It then begins no
//! call and replies to none, and ends. A node that is told a history without what it knows refuses the connection: that is late, or of an older copy.
//!
//! * Starts and ticks are durable before they are told. So a node ends only if its directory was replaced, or a copy of it takes part.
//! * They are durable at the other node before a message of Raft is sent on the connection. So a node that has counted a vote or an entry knows better
//!   than all copies from before that start, and soon than those from before the present tick.
//! * A node that starts introduces itself to all others before it opens its groups. Those that do not answer in time do not count: any majority must be
//!   able to start. So a copy takes part if all that know of later starts are away, even as one of a majority, until one of them returns.
//! * The new start is appended after that, so a copy that is refused may be started as often as one likes. A history that begins after the known start
//!   is admitted: the other node was away. So is a copy that has started [`KEPT`] times while all that know better were away.
//! * A machine that is copied with its memory goes on with the same start. It is found out only until it has counted as many ticks as were told.
//! * A refusal is not recorded, and what an older copy knows does not count. So no sound node is locked out for good.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use mini_engine::{Db, Durability, Error as EngineError, WriteBatch};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, OwnedMutexGuard, SetOnce, watch};
use tokio::task::spawn_blocking;

use crate::error::{self, Error, Result};
use crate::identity::{Identity, draw};

/// The keyspace and the key, in the database of the logs: a log that is put back alone brings its history along.
const KEY: &str = "starts";
/// The number of starts in a history.
pub(crate) const KEPT: usize = if cfg!(test) { 4 } else { 64 };

/// A start of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Start {
    number: u64,
    /// Distinguishes the starts of a directory and of its copy.
    drawn: u64,
    tick: u64,
}

/// What a node tells about starts, and stores. On the wire, the bound of a frame limits its size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Introduction {
    pub(crate) cluster: u64,
    pub(crate) node: u64,
    /// The last starts of the node, the present one at the end.
    pub(crate) history: Vec<Start>,
    /// The last known start of each other node.
    pub(crate) others: BTreeMap<u64, Start>,
}

/// The starts that this node knows. Those of a command are empty.
#[derive(Default)]
pub(crate) struct Starts {
    /// `None` once the node has stopped. Locked while a change is made and stored.
    db: Arc<Mutex<Option<Db>>>,
    /// What is stored, if the node is in a cluster.
    known: watch::Sender<Option<Introduction>>,
    /// The number of this start, drawn at random.
    drawn: u64,
    /// The reason why this node must end.
    outdated: SetOnce<String>,
}

impl Starts {
    /// The starts that are stored in the database of the logs.
    pub(crate) fn load(db: Db, identity: Option<Identity>) -> Result<Self> {
        let stored = db.keyspace(KEY)?.get(KEY)?.map(|stored| postcard::from_bytes(&stored)).transpose();
        let stored = stored.map_err(|error| error::io("read", "the starts of this node")(io::Error::other(error)))?;
        let known = watch::Sender::new(stored.or_else(|| identity.map(unknown)));
        Ok(Self { db: Arc::new(Mutex::new(Some(db))), known, drawn: draw()?, ..Self::default() })
    }

    /// Appends this start to the history, durably, or counts a tick.
    pub(crate) async fn advance(&self, identity: Identity) -> io::Result<()> {
        let db = Arc::clone(&self.db).lock_owned().await;
        let mut known = self.introduction().unwrap_or_else(|_| unknown(identity));
        match known.history.last_mut() {
            Some(last) if last.drawn == self.drawn => last.tick += 1,
            last => {
                let number = last.map_or(1, |last| last.number + 1);
                known.history.push(Start { number, drawn: self.drawn, tick: 0 });
            }
        }
        known.history.drain(..known.history.len().saturating_sub(KEPT));
        self.store(db, known).await
    }

    /// What this node tells, if it is in a cluster.
    pub(crate) fn introduction(&self) -> io::Result<Introduction> {
        self.known.borrow().clone().ok_or_else(|| io::Error::other("this node is in no cluster"))
    }

    /// Judges this node by what another one tells, and stores the last start of that node. Fails if the connection must not be used.
    pub(crate) async fn learn(&self, told: &Introduction) -> io::Result<()> {
        let db = Arc::clone(&self.db).lock_owned().await;
        let mut known = self.introduction()?;
        if told.cluster != known.cluster || told.node == known.node {
            return Err(io::Error::other("it is a node of another cluster, or has the number of this one"));
        }
        let (node, before) = (told.node, known.others.get(&told.node).copied());
        if before.is_some_and(|before| !descends(&told.history, before)) {
            return Err(refused(format!("node {node} tells of older starts than before: late, or of an older copy")));
        }
        if told.others.get(&known.node).is_some_and(|own| !descends(&known.history, *own)) {
            let reason = format!(
                "the directory of this node is an older copy, or a copy of it has been started: node {node} knows a later start; remove this node from \
                 its cluster, and add it with an empty directory"
            );
            self.outdated.set(reason.clone()).ok();
            return Err(refused(reason));
        }
        // Until then the other node can only know the start before.
        let has_started = known.history.last().is_some_and(|last| last.drawn == self.drawn);
        if let Some(last) = told.history.last().filter(|last| before != Some(**last)) {
            known.others.insert(node, *last);
            self.store(db, known).await?;
        }
        if has_started { Ok(()) } else { Err(io::Error::other("this node is still starting")) }
    }

    /// Stores the starts, durably. The lock goes along: if the caller gives up, a later call still waits for this one.
    async fn store(&self, db: OwnedMutexGuard<Option<Db>>, new: Introduction) -> io::Result<()> {
        let known = self.known.clone();
        let stored = spawn_blocking(move || {
            let (db, mut batch) = (db.as_ref().ok_or(EngineError::Closed)?, WriteBatch::new());
            let value = postcard::to_stdvec(&new).map_err(io::Error::other)?;
            batch.keyspace(&db.keyspace(KEY)?).insert(KEY, value)?;
            db.write(batch, Durability::Synced)?;
            known.send_replace(Some(new));
            Ok(())
        });
        stored.await?
    }

    /// Fails once this node knows that its directory is an older copy.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.outdated.get().map_or(Ok(()), |reason| Err(refused(reason.clone())))
    }

    /// Waits until this node knows that its directory is an older copy.
    pub(crate) async fn until_outdated(&self) -> Error {
        Error::Outdated(self.outdated.wait().await.clone())
    }

    /// Releases the database.
    pub(crate) async fn close(&self) {
        *self.db.lock().await = None;
    }
}

fn unknown(Identity { cluster, node, .. }: Identity) -> Introduction {
    Introduction { cluster, node, history: Vec::new(), others: BTreeMap::new() }
}

fn descends(history: &[Start], known: Start) -> bool {
    match history.iter().find(|start| start.drawn == known.drawn) {
        Some(start) => start.tick >= known.tick,
        None => history.first().is_some_and(|first| first.number > known.number),
    }
}

fn refused(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

#[cfg(test)]
mod tests {
    use proof::TempDir;

    use super::*;

    #[tokio::test]
    async fn a_late_message_or_one_of_an_older_copy_ends_nobody_and_is_not_recorded() {
        // Catches a memory that ends with the process, a sound node that ends, a copy that is recorded, and one that is admitted.
        let dirs = [(); 2].map(|()| TempDir::new().unwrap());
        let identity = |node| Identity { cluster: 5, node, groups: 1 };
        let load = |at: usize, node| Starts::load(Db::open(dirs[at].path()).unwrap(), Some(identity(node))).unwrap();
        let (node, peer) = (load(0, 1), load(1, 2));
        node.advance(identity(1)).await.unwrap();
        let old = node.introduction().unwrap();
        node.advance(identity(1)).await.unwrap();
        let new = node.introduction().unwrap();
        assert!(peer.learn(&new).await.unwrap_err().to_string().contains("still starting"));
        drop(peer);
        let peer = load(1, 2);
        peer.advance(identity(2)).await.unwrap();
        for _ in 0..2 {
            peer.learn(&old).await.unwrap_err();
            peer.learn(&new).await.unwrap();
        }
        node.learn(&peer.introduction().unwrap()).await.unwrap();
        // The peer was away.
        let mut many = new;
        many.history[0] = Start { number: 3, drawn: 0, tick: 0 };
        peer.learn(&many).await.unwrap();
        // A copy of the peer has met a copy of the node.
        let mut of_copy = peer.introduction().unwrap();
        of_copy.history.clear();
        node.learn(&of_copy).await.unwrap_err();
        node.check().unwrap();
        node.learn(&peer.introduction().unwrap()).await.unwrap_err();
        node.check().unwrap_err();
    }
}
