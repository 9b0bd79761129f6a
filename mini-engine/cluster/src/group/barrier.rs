//! The barrier before reads: after it, the leader's database shows everything that was acknowledged before the barrier began.
//!
//! It is a read index: the leader notes the committed index, confirms with a majority that it still leads, and waits until that index is applied.
//! openraft also has leases, which would save the message. But they need clocks of equal speed on all machines, and machines that are never
//! suspended.
//!
//! Reads that arrive while a barrier is under way share the next one.
//!
//! Keys expire by the instant of the last applied proposal, and reads do not advance it. So if the instant is behind the leader's time and something
//! in the database may expire, the read first proposes an empty proposal, a tick. When the tick is applied, it also serves as the barrier.

use std::sync::Arc;
use std::time::Duration;

use mini_engine_server::replicated::AppliedInstant;
use openraft::LinearizerOption;
use openraft_mini_engine::State;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::proposals::Submission;
use super::raft::Raft;
use super::refused::Refused;
use crate::clock::GroupClock;

/// The maximum time for which an expired key may still be visible if nothing is written.
const TICK_MILLIS: u64 = 50;
/// A leader that has no confirmation from a majority after this time refuses the reads.
const HEAR_MAJORITY: Duration = Duration::from_secs(2);
/// The maximum time of a whole barrier: committed entries may still have to be applied. A read waits for two at most: the one under way, and its own.
const DEADLINE: Duration = Duration::from_millis(2500);

/// The channel to a read that waits for a barrier.
pub(super) type Waiting = oneshot::Sender<Result<(), Refused>>;

pub(super) struct Barrier {
    pub(super) raft: Raft,
    pub(super) state: State,
    pub(super) instant: AppliedInstant,
    pub(super) clock: Arc<GroupClock>,
    /// A weak handle, so that the queue ends with the group.
    pub(super) writes: mpsc::WeakUnboundedSender<Submission>,
}

impl Barrier {
    /// Runs barriers until the sender of `waiting` is dropped.
    pub(super) async fn run(self, mut waiting: mpsc::UnboundedReceiver<Waiting>) {
        let mut together = Vec::new();
        while waiting.recv_many(&mut together, usize::MAX).await > 0 {
            let outcome = timeout(DEADLINE, self.pass())
                .await
                .unwrap_or_else(|_| Err(Refused::NoMajority("what was committed is not applied yet".into())));
            for answer in together.drain(..) {
                // The client may have disconnected.
                answer.send(outcome.clone()).ok();
            }
        }
    }

    async fn pass(&self) -> Result<(), Refused> {
        if self.is_behind() {
            return self.tick().await;
        }
        let by_read_index = LinearizerOption::new(Some(Duration::ZERO), true).with_wait_timeout(HEAR_MAJORITY);
        self.raft.ensure_linearizable(by_read_index).await.map(drop).map_err(Refused::of_read)
    }

    /// Whether something that is still there by the instant may have expired by the leader's time.
    fn is_behind(&self) -> bool {
        self.state.db().has_expiring_entries() && self.clock.millis() > self.instant.millis() + TICK_MILLIS
    }

    async fn tick(&self) -> Result<(), Refused> {
        let (answer, answered) = oneshot::channel();
        let queue = self.writes.upgrade().ok_or_else(Refused::ended)?;
        queue.send(Submission { writes: Vec::new(), answer }).map_err(|_| Refused::ended())?;
        drop(queue);
        match answered.await {
            Ok(Ok(_)) => Ok(()),
            // A tick changes nothing but the instant, so the client may repeat the read.
            Ok(Err(Refused::Uncertain(why))) => Err(Refused::NoMajority(why)),
            Ok(Err(refused)) => Err(refused),
            Err(_) => Err(Refused::ended()),
        }
    }
}
