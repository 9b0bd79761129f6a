//! Three nodes in one process: a key is set, the leader is stopped, and the key is read on the new leader.
//!
//! `cargo run -p openraft-mini-engine --example three_nodes`

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mini_engine::{Db, WriteBatch};
use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::RPCOption;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse};
use openraft::type_config::TypeConfigExt;
use openraft::type_config::alias::{EntryOf, SnapshotOf, VoteOf};
use openraft::{BasicNode, Config, EntryPayload, OptionalSend, RaftNetworkFactory, RaftNetworkV2, ReadPolicy};
use openraft_mini_engine::{Apply, Checkpoint, Logs, State, StateMachine};

// A request is `key=value`.
openraft::declare_raft_types!(TypeConfig: D = String, R = (), AsyncRuntime = openraft_rt_tokio::TokioRuntime);
type Raft = openraft::Raft<TypeConfig, StateMachine<TypeConfig, Settings>>;

struct Settings;

impl Apply<TypeConfig> for Settings {
    fn apply(&mut self, entry: EntryOf<TypeConfig>, _: &Db, batch: &mut WriteBatch) -> io::Result<()> {
        if let EntryPayload::Normal(request) = entry.payload {
            let (key, value) = request.split_once('=').unwrap_or((&request, ""));
            batch.insert(key, value)?;
        }
        Ok(())
    }
}

/// The nodes that can be reached. A real network would send bytes: all messages, and the chunks of snapshots, are serializable.
#[derive(Clone, Default)]
struct Network {
    nodes: Arc<Mutex<BTreeMap<u64, (Raft, State)>>>,
}

/// The connection to one node.
struct Connection {
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

/// Starts a node whose files are in `dir`.
async fn start(id: u64, dir: &Path, network: &Network) -> Result<(), Box<dyn Error>> {
    let log_store = Logs::open(dir.join("log"))?.group(0)?;
    let state_machine = StateMachine::open(dir.join("state"), Settings)?;
    let state = state_machine.state();
    let config = Config::default().validate()?;
    let raft = Raft::new(id, config.into(), network.clone(), log_store, state_machine).await?;
    network.nodes.lock().unwrap().insert(id, (raft, state));
    Ok(())
}

/// Waits until one of the running nodes is the leader, and returns it.
async fn leader(network: &Network) -> (u64, Raft, State) {
    loop {
        let nodes = network.nodes.lock().unwrap().clone();
        for (id, (raft, state)) in nodes {
            if raft.current_leader().await == Some(id) {
                return (id, raft, state);
            }
        }
        TypeConfig::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (dir, network) = (tempfile::tempdir()?, Network::default());
    for id in 1..=3 {
        start(id, &dir.path().join(id.to_string()), &network).await?;
    }
    let first = network.nodes.lock().unwrap()[&1].0.clone();
    first.initialize(BTreeMap::from([1, 2, 3].map(|id| (id, BasicNode::new(format!("node {id}")))))).await?;
    let (old, raft, _) = leader(&network).await;
    raft.client_write("colour=blue".to_owned()).await?;
    println!("node {old} leads and has set the colour");

    network.nodes.lock().unwrap().remove(&old);
    raft.shutdown().await?;
    let (new, raft, state) = leader(&network).await;
    raft.ensure_linearizable(ReadPolicy::ReadIndex).await?;
    let colour = state.db().get("colour")?.ok_or("the colour is lost")?;
    println!("node {new} leads now; the colour is {}", String::from_utf8_lossy(&colour));
    Ok(())
}
