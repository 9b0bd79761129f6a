//! The cost of a durable proposal, with 1, 16 and 64 of them in flight. There is one node, and so no network. Its log and its state are on the
//! disk of the directory for temporary files (`TMPDIR`).
//!
//! `cargo bench -p openraft-mini-engine --bench proposals`

#[path = "../examples/three_nodes/network.rs"]
mod network;

use std::collections::BTreeMap;
use std::io::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mini_engine::{Db, WriteBatch};
use openraft::type_config::alias::EntryOf;
use openraft::{BasicNode, Config, EntryPayload};
use openraft_mini_engine::{Apply, Logs, StateMachine};

use crate::network::Network;

openraft::declare_raft_types!(TypeConfig: D = String, R = (), AsyncRuntime = openraft_rt_tokio::TokioRuntime);
type Raft = openraft::Raft<TypeConfig, StateMachine<TypeConfig, App>>;

const WARM_UP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(5);
const VALUE_BYTES: usize = 100;

/// Stores each request under its first bytes.
struct App;

impl Apply<TypeConfig> for App {
    fn apply(&mut self, entry: EntryOf<TypeConfig>, _: &Db, batch: &mut WriteBatch) -> Result<()> {
        if let EntryPayload::Normal(request) = entry.payload {
            let (key, value) = request.split_at(16);
            batch.insert(key, value)?;
        }
        Ok(())
    }

    fn reads(&self, _: &EntryOf<TypeConfig>) -> bool {
        false
    }
}

/// Makes one proposal after the other until `end`; adds their number to `done`.
async fn propose(raft: Raft, client: usize, end: Instant, done: Arc<AtomicU64>) {
    let mut number = 0_u64;
    while Instant::now() < end {
        let request = format!("{client:04}{number:012}{}", "v".repeat(VALUE_BYTES));
        raft.client_write(request).await.expect("the node leads");
        number += 1;
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Proposals a second, and log syncs for each proposal.
async fn measure(raft: &Raft, logs: &Logs, in_flight: usize) -> (f64, f64) {
    let (done, begun) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let end = begun + WARM_UP + MEASURED;
    let clients: Vec<_> =
        (0..in_flight).map(|client| tokio::spawn(propose(raft.clone(), client, end, Arc::clone(&done)))).collect();
    tokio::time::sleep(WARM_UP).await;
    let counts = || (done.load(Ordering::Relaxed), logs.db().metrics().wal_syncs, Instant::now());
    let before = counts();
    tokio::time::sleep(MEASURED).await;
    let after = counts();
    for client in clients {
        client.await.expect("no client panics");
    }
    let proposals = (after.0 - before.0) as f64;
    (proposals / (after.2 - before.2).as_secs_f64(), (after.1 - before.1) as f64 / proposals)
}

fn main() {
    // `cargo test` also builds and starts benchmarks, to check that they work.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let dir = tempfile::tempdir().expect("a directory");
        let logs = Logs::open(dir.path().join("log")).expect("a log");
        let log_store = logs.group(0).expect("a group");
        let state_machine = StateMachine::open(dir.path().join("state"), App).expect("a state machine");
        let (network, state) = (Network::default(), state_machine.state());
        let config = Config::default().validate().expect("the default is valid");
        let raft = Raft::new(1, Arc::new(config), network.clone(), log_store, state_machine).await.expect("a node");
        raft.initialize(BTreeMap::from([(1, BasicNode::new("here"))])).await.expect("a cluster of one");
        network.nodes.lock().unwrap().insert(1, (raft, state));
        let (_, raft, _) = network.leader().await;
        println!("| in flight | proposals/s | log syncs a proposal |\n|---|---|---|");
        for in_flight in [1, 16, 64] {
            let (rate, syncs) = measure(&raft, &logs, in_flight).await;
            println!("| {in_flight} | {rate:.0} | {syncs:.3} |");
        }
        raft.shutdown().await.expect("no task panics");
    });
}
