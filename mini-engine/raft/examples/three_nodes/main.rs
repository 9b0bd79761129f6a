//! Three nodes in one process: a key is set, the leader is stopped, and the key is read on the new leader.
//!
//! `cargo run -p openraft-mini-engine --example three_nodes`

mod network;

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::path::Path;

use mini_engine::{Db, WriteBatch};
use openraft::type_config::alias::EntryOf;
use openraft::{BasicNode, Config, EntryPayload, ReadPolicy};
use openraft_mini_engine::{Apply, Logs, StateMachine};

use crate::network::Network;

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

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (dir, network) = (tempfile::tempdir()?, Network::default());
    for id in 1..=3 {
        start(id, &dir.path().join(id.to_string()), &network).await?;
    }
    let first = network.nodes.lock().unwrap()[&1].0.clone();
    first.initialize(BTreeMap::from([1, 2, 3].map(|id| (id, BasicNode::new(format!("node {id}")))))).await?;
    let (old, raft, _) = network.leader().await;
    raft.client_write("colour=blue".to_owned()).await?;
    println!("node {old} leads and has set the colour");

    network.nodes.lock().unwrap().remove(&old);
    raft.shutdown().await?;
    let (new, raft, state) = network.leader().await;
    raft.ensure_linearizable(ReadPolicy::ReadIndex).await?;
    let colour = state.db().get("colour")?.ok_or("the colour is lost")?;
    println!("node {new} leads now; the colour is {}", String::from_utf8_lossy(&colour));
    Ok(())
}
