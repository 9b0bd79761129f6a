//! The barrier before reads: after it, the leader's database shows everything that was acknowledged before the barrier began.
//!
//! By a read index: the leader notes what is committed, hears from a majority that it still leads, and waits until that much is applied. The leases that
//! openraft has too would save the message, but rest on clocks that run equally fast on all machines, and on none of them being suspended.
//!
//! Reads that come while a barrier is under way share the next one.
//!
//! Keys expire by the instant that was applied last, and reads do not move it. So a read of a database in which something may expire first proposes an
//! empty proposal, a tick, if the instant is behind the leader's clock. When it is applied it is a barrier, too.

use std::time::Duration;

use mini_engine_server::replicated::AppliedInstant;
use openraft::LinearizerOption;
use openraft_mini_engine::State;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::proposals::Submission;
use super::raft::Raft;
use super::refused::Refused;
use crate::clock::WallClock;

/// A key that should be absent is there for so long, at most, if nothing is written.
const TICK_MILLIS: u64 = 50;
/// A leader that hears no majority by then answers no reads.
const HEAR_MAJORITY: Duration = Duration::from_secs(2);
/// The whole barrier takes no longer: what is committed may take time to be applied. A read waits for two at most, one that is under way and its own.
const DEADLINE: Duration = Duration::from_millis(2500);

/// Who waits for a barrier.
pub(super) type Waiting = oneshot::Sender<Result<(), Refused>>;

pub(super) struct Barrier {
    pub(super) raft: Raft,
    pub(super) state: State,
    pub(super) instant: AppliedInstant,
    pub(super) clock: WallClock,
    /// Weak: the queue ends with the group.
    pub(super) writes: mpsc::WeakUnboundedSender<Submission>,
}

impl Barrier {
    /// Makes barriers until the other end of `waiting` is dropped.
    pub(super) async fn run(self, mut waiting: mpsc::UnboundedReceiver<Waiting>) {
        let mut together = Vec::new();
        while waiting.recv_many(&mut together, usize::MAX).await > 0 {
            let outcome = timeout(DEADLINE, self.pass())
                .await
                .unwrap_or_else(|_| Err(Refused::NoMajority("what was committed is not applied yet".into())));
            for answer in together.drain(..) {
                // The client may have gone.
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

    /// Whether something may have expired by the leader's clock that is still there by the instant.
    fn is_behind(&self) -> bool {
        self.state.db().has_expiring_entries() && (self.clock)() > self.instant.millis() + TICK_MILLIS
    }

    async fn tick(&self) -> Result<(), Refused> {
        let (answer, answered) = oneshot::channel();
        let queue = self.writes.upgrade().ok_or_else(Refused::ended)?;
        queue.send(Submission { writes: Vec::new(), answer }).map_err(|_| Refused::ended())?;
        drop(queue);
        match answered.await {
            Ok(Ok(_)) => Ok(()),
            // It changes nothing but the instant, so a client may read again.
            Ok(Err(Refused::Uncertain(why))) => Err(Refused::NoMajority(why)),
            Ok(Err(refused)) => Err(refused),
            Err(_) => Err(Refused::ended()),
        }
    }
}
