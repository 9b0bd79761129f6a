//! The network: each message is delayed, so messages overtake each other; some are lost, some arrive twice, and links are cut in one direction.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
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
use crate::runtime::Sim;

type Append = AppendEntriesRequest<TypeConfig>;
type Appended = Result<AppendEntriesResponse<TypeConfig>, RPCError<TypeConfig>>;
type Voted = Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>>;
type Installed = Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>>;

/// The side of one node.
pub(crate) struct Network(pub(crate) Arc<World>, pub(crate) u64);

pub(crate) struct Link {
    world: Arc<World>,
    from: u64,
    to: u64,
}

impl World {
    fn loses(&self, from: u64, to: u64) -> bool {
        self.cuts.lock().unwrap().contains(&(from, to)) || self.below(100) == 0
    }

    async fn delay(&self) {
        let limit = match self.below(50) {
            0 => 2_000_000,
            _ if self.is_slow.load(Relaxed) => 200_000,
            _ => 5_000,
        };
        Sim::sleep(Duration::from_micros(100 + self.below(limit))).await;
    }
}

impl Link {
    /// Sends a message, which `handle` handles as a task of the receiver, and returns the first answer that arrives in time.
    async fn send<M: Clone + Send + 'static, T: Send + 'static>(
        &self,
        (kind, text): (&'static str, String),
        message: M,
        option: RPCOption,
        handle: impl AsyncFn(&Node, M) -> io::Result<T> + Copy + Send + 'static,
    ) -> Result<T, Unreachable<TypeConfig>> {
        let (answer, mut answers) = unbounded_channel();
        let copies = if self.world.below(30) == 0 { 2 } else { 1 };
        for _ in 0..copies {
            let (world, from, to) = (Arc::clone(&self.world), self.from, self.to);
            let (answer, message, event) = (answer.clone(), message.clone(), format!("from {from} to {to} {text}"));
            self.world.outside.spawn(async move {
                world.delay().await;
                let node = world.node(to).filter(|_| !world.loses(from, to));
                let Some(node) = node else { return world.note("lost", format!("{kind} {event}")) };
                world.note(kind, event);
                let process = Arc::clone(&node.process);
                let Ok(handled) = process.spawn(async move { handle(&node, message).await }).await else { return };
                world.delay().await;
                if !world.loses(to, from) {
                    answer.send(handled).ok();
                }
            });
        }
        // `answer` is still here, so without an answer this waits until the limit.
        let in_time = Sim::timeout(option.hard_ttl(), answers.recv()).await.ok().flatten();
        in_time.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into())).map_err(|error| Unreachable::new(&error))
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

    async fn append_entries(&mut self, request: Append, option: RPCOption) -> Appended {
        let handle = async |node: &Node, request: Append| {
            let log_ids = request.prev_log_id.into_iter().chain(request.entries.iter().map(RaftEntry::log_id));
            node.check(&request.vote, log_ids)?;
            node.raft.append_entries(request).await.map_err(io::Error::other)
        };
        Ok(self.send(("append", request.to_string()), request, option, handle).await?)
    }

    async fn vote(&mut self, request: VoteRequest<TypeConfig>, option: RPCOption) -> Voted {
        let handle = async |node: &Node, request| node.answer(node.raft.vote(request), true).await;
        Ok(self.send(("vote", request.to_string()), request, option, handle).await?)
    }

    async fn pre_vote(&mut self, request: VoteRequest<TypeConfig>, option: RPCOption) -> Voted {
        let handle = async |node: &Node, request| node.answer(node.raft.pre_vote(request), false).await;
        Ok(self.send(("pre-vote", request.to_string()), request, option, handle).await?)
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: SnapshotOf<TypeConfig, Checkpoint>,
        _: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Installed {
        let chunks = snapshot.snapshot.chunks(64 << 10).and_then(Iterator::collect::<io::Result<Vec<Chunk>>>);
        let chunks = Arc::new(chunks.map_err(|error| Unreachable::new(&error))?);
        let message = (vote, snapshot.meta.last_log_id, chunks);
        let handle = async |node: &Node, (vote, last, chunks): (_, _, Arc<Vec<Chunk>>)| {
            node.check(&vote, last)?;
            let mut receiver = node.state.receive()?;
            chunks.iter().try_for_each(|chunk| receiver.write(chunk))?;
            let received = receiver.finish::<TypeConfig>()?;
            node.raft.install_full_snapshot(vote, received).await.map_err(io::Error::other)
        };
        Ok(self.send(("snapshot", snapshot.meta.to_string()), message, option, handle).await?)
    }
}
