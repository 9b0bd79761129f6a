//! The network: each message is delayed, so messages overtake each other; some are lost, some arrive twice, and links are cut in one direction.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use openraft::entry::RaftEntry;
use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::RPCOption;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse};
use openraft::type_config::alias::SnapshotOf;
use openraft::{AsyncRuntime, BasicNode, OptionalSend, RaftNetworkFactory, RaftNetworkV2};
use openraft_mini_engine::{Checkpoint, Chunk};
use tokio::sync::mpsc::unbounded_channel;

use crate::cluster::{Node, TypeConfig, Vote, World};
use crate::runtime::{Seeded, Sim};

/// The side of one node.
pub(crate) struct Network(pub(crate) Arc<World>, pub(crate) u64);

pub(crate) struct Link {
    world: Arc<World>,
    from: u64,
    to: u64,
}

type Handled<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

impl World {
    fn loses(&self, from: u64, to: u64) -> bool {
        self.cuts.lock().unwrap().contains(&(from, to)) || self.below(100) == 0
    }

    async fn delay(&self) {
        let limit = match self.below(50) {
            0 => 2_000_000,
            _ if *self.is_slow.lock().unwrap() => 200_000,
            _ => 5_000,
        };
        Sim::sleep(Duration::from_micros(100 + self.below(limit))).await;
    }
}

impl Link {
    /// Sends a message, which `handle` handles as a task of the receiver, and returns the first answer that arrives within `limit`.
    async fn send<T: Send + 'static>(
        &self,
        kind: &'static str,
        what: String,
        limit: Duration,
        handle: impl Fn(Node) -> Handled<T> + Clone + Send + 'static,
    ) -> Result<T, Unreachable<TypeConfig>> {
        let (answer, mut answers) = unbounded_channel();
        let copies = if self.world.below(30) == 0 { 2 } else { 1 };
        for _ in 0..copies {
            let (world, from, to) = (Arc::clone(&self.world), self.from, self.to);
            let (answer, handle, what) = (answer.clone(), handle.clone(), what.clone());
            Seeded::spawn(async move {
                world.delay().await;
                let node = world.node(to).filter(|_| !world.loses(from, to));
                let Some(node) = node else { return world.note("lost", format!("{kind} from {from} to {to} {what}")) };
                world.note(kind, format!("from {from} to {to} {what}"));
                let Ok(handled) = node.process.clone().spawn(handle(node)).await else { return };
                world.delay().await;
                if !world.loses(to, from) {
                    answer.send(handled).ok();
                }
            });
        }
        // `answer` is still here, so without an answer this waits until the limit.
        match Sim::timeout(limit, answers.recv()).await {
            Ok(Some(Ok(answer))) => Ok(answer),
            Ok(Some(Err(error))) => Err(Unreachable::new(&error)),
            Ok(None) | Err(_) => Err(Unreachable::new(&io::Error::from(io::ErrorKind::TimedOut))),
        }
    }

    async fn ask(
        &self,
        kind: &'static str,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        let text = request.to_string();
        let handle = move |node: Node| -> Handled<_> {
            let (request, is_vote) = (request.clone(), kind == "vote");
            Box::pin(async move {
                let answer = if is_vote { node.raft.vote(request).await } else { node.raft.pre_vote(request).await };
                let answer = answer.map_err(io::Error::other)?;
                node.answers(&answer, is_vote);
                Ok(answer)
            })
        };
        Ok(self.send(kind, text, option.hard_ttl(), handle).await?)
    }
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Link;

    async fn new_client(&mut self, to: u64, _: &BasicNode) -> Link {
        Link { world: Arc::clone(&self.0), from: self.1, to }
    }
}

impl RaftNetworkV2<TypeConfig> for Link {
    type SnapshotData = Checkpoint;

    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, RPCError<TypeConfig>> {
        let text = request.to_string();
        let handle = move |node: Node| -> Handled<_> {
            let request = request.clone();
            Box::pin(async move {
                let log_ids = request.prev_log_id.into_iter().chain(request.entries.iter().map(RaftEntry::log_id));
                node.check(&request.vote, log_ids)?;
                node.raft.append_entries(request).await.map_err(io::Error::other)
            })
        };
        Ok(self.send("append", text, option.hard_ttl(), handle).await?)
    }

    async fn vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        self.ask("vote", request, option).await
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        self.ask("pre-vote", request, option).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: SnapshotOf<TypeConfig, Checkpoint>,
        _: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let chunks = snapshot.snapshot.chunks(64 << 10).and_then(Iterator::collect::<io::Result<Vec<Chunk>>>);
        let (chunks, meta) = (Arc::new(chunks.map_err(|error| Unreachable::new(&error))?), snapshot.meta);
        let text = meta.to_string();
        let handle = move |node: Node| -> Handled<_> {
            let (chunks, last) = (Arc::clone(&chunks), meta.last_log_id);
            Box::pin(async move {
                node.check(&vote, last)?;
                let mut receiver = node.state.receive()?;
                chunks.iter().try_for_each(|chunk| receiver.write(chunk))?;
                let received = receiver.finish::<TypeConfig>()?;
                node.raft.install_full_snapshot(vote, received).await.map_err(io::Error::other)
            })
        };
        Ok(self.send("snapshot", text, option.hard_ttl(), handle).await?)
    }
}
