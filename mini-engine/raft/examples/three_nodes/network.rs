//! A network within one process. A real one would send bytes: all messages, and the chunks of snapshots, are serializable.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::RPCOption;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse};
use openraft::type_config::TypeConfigExt;
use openraft::type_config::alias::{SnapshotOf, VoteOf};
use openraft::{BasicNode, OptionalSend, RaftNetworkFactory, RaftNetworkV2};
use openraft_mini_engine::{Checkpoint, State};

use super::{Raft, TypeConfig};

/// The nodes that can be reached.
#[derive(Clone, Default)]
pub(crate) struct Network {
    pub(crate) nodes: Arc<Mutex<BTreeMap<u64, (Raft, State)>>>,
}

impl Network {
    /// Waits until one of the nodes is the leader, and returns it.
    pub(crate) async fn leader(&self) -> (u64, Raft, State) {
        loop {
            let nodes = self.nodes.lock().unwrap().clone();
            for (id, (raft, state)) in nodes {
                if raft.current_leader().await == Some(id) {
                    return (id, raft, state);
                }
            }
            TypeConfig::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// The connection to one node.
pub(crate) struct Connection {
    network: Network,
    target: u64,
}

fn unreachable(error: impl Error + 'static) -> Unreachable<TypeConfig> {
    Unreachable::new(&error)
}

impl Connection {
    fn node(&self) -> Result<(Raft, State), Unreachable<TypeConfig>> {
        let stopped = || unreachable(io::Error::other("the node is stopped"));
        self.network.nodes.lock().unwrap().get(&self.target).cloned().ok_or_else(stopped)
    }
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Connection;

    async fn new_client(&mut self, target: u64, _: &BasicNode) -> Connection {
        Connection { network: self.clone(), target }
    }
}

impl RaftNetworkV2<TypeConfig> for Connection {
    type SnapshotData = Checkpoint;

    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<TypeConfig>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, RPCError<TypeConfig>> {
        Ok(self.node()?.0.append_entries(request).await.map_err(unreachable)?)
    }

    async fn vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        _: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        Ok(self.node()?.0.vote(request).await.map_err(unreachable)?)
    }

    async fn full_snapshot(
        &mut self,
        vote: VoteOf<TypeConfig>,
        snapshot: SnapshotOf<TypeConfig, Checkpoint>,
        _: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let (raft, state) = self.node()?;
        let transfer = move || {
            let mut receiver = state.receive()?;
            for chunk in snapshot.snapshot.chunks(1 << 20)? {
                receiver.write(&chunk?)?;
            }
            receiver.finish::<TypeConfig>()
        };
        let received = TypeConfig::spawn_blocking(transfer).await.flatten().map_err(unreachable)?;
        Ok(raft.install_full_snapshot(vote, received).await.map_err(unreachable)?)
    }
}
