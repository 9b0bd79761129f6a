//! Proposes writes: all queued writes go into one proposal, up to a bound.
//!
//! A proposal costs an entry of the log, a message to each node and a share in a sync, however many writes it has. So only a few proposals are under
//! way at once; writes that arrive meanwhile wait and go into the next one together. Writes are proposed in the order of the queue.

use std::sync::Arc;
use std::time::Duration;

use mini_engine_server::replicated::{Proposal, Replies, Watches, Write};
use openraft::impls::ProgressResponder;
use openraft::raft::ClientWriteResult;
use openraft::type_config::alias::OneshotReceiverOf;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use super::refused::Refused;
use crate::application::Raft;
use crate::clock::GroupClock;
use crate::types::TypeConfig;

/// Bounds of a proposal; the last submission may exceed them.
const MOST_BYTES: usize = 1 << 20;
const MOST_WRITES: usize = 1000;
/// The number of proposals under way: while some are being sent, others are being synced.
const UNDER_WAY: usize = 4;
/// The maximum time that a proposal waits for the earlier ones: without a majority these do not end soon, and openraft refuses new proposals at once.
const WAIT_FOR_EARLIER: Duration = Duration::from_secs(1);
/// A proposal that is not applied after this time is given up; with the wait before it, a write takes at most 5 seconds.
const SECONDS: u64 = 4;

/// Writes of one client, and the channel for their replies.
pub(super) struct Submission {
    pub(super) writes: Vec<Write>,
    pub(super) answer: oneshot::Sender<Result<Vec<Vec<u8>>, Refused>>,
}

type Applied = OneshotReceiverOf<TypeConfig, ClientWriteResult<TypeConfig>>;
/// The number of replies for each client, in the order of the proposal.
type Waiting = Vec<(usize, oneshot::Sender<Result<Vec<Vec<u8>>, Refused>>)>;

/// Proposes the submissions of the queue, until the sender of the queue is dropped.
pub(super) async fn run(raft: Raft, clock: Arc<GroupClock>, mut queue: mpsc::UnboundedReceiver<Submission>) {
    let (under_way, mut watches) = (Arc::new(Semaphore::new(UNDER_WAY)), Watches::default());
    while let Some(first) = queue.recv().await {
        let place = timeout(WAIT_FOR_EARLIER, Arc::clone(&under_way).acquire_owned()).await.ok().and_then(Result::ok);
        let (mut writes, waiting) = gather(first, &mut queue);
        if waiting.is_empty() {
            continue;
        }
        // In the order of the log, which is the order of this queue.
        writes.iter_mut().for_each(|write| watches.note(write));
        let proposal = Proposal { at: clock.millis(), writes };
        let (responder, applied) = ProgressResponder::complete_only();
        match raft.client_write_ff(proposal, Some(responder)).await {
            Ok(()) => drop(tokio::spawn(answer_when_applied(applied, waiting, place))),
            Err(fatal) => answer(waiting, Err(Refused::by_fatal(&fatal))),
        }
    }
}

/// Takes all queued submissions, beginning with `first`.
fn gather(first: Submission, queue: &mut mpsc::UnboundedReceiver<Submission>) -> (Vec<Write>, Waiting) {
    let (mut writes, mut waiting, mut bytes) = (Vec::new(), Vec::new(), 0);
    let mut next = Some(first);
    while let Some(Submission { writes: more, answer }) = next {
        // Submissions whose client no longer waits are not proposed.
        if !answer.is_closed() {
            bytes += more.iter().map(Write::size).sum::<usize>();
            waiting.push((more.len(), answer));
            writes.extend(more);
        }
        let has_room = bytes < MOST_BYTES && writes.len() < MOST_WRITES;
        next = has_room.then(|| queue.try_recv().ok()).flatten();
    }
    (writes, waiting)
}

async fn answer_when_applied(applied: Applied, waiting: Waiting, _place: Option<OwnedSemaphorePermit>) {
    let outcome = match timeout(Duration::from_secs(SECONDS), applied).await {
        Ok(Ok(Ok(response))) => Ok(response.data),
        Ok(Ok(Err(error))) => Err(Refused::of_write(error)),
        Ok(Err(_)) => Err(Refused::Uncertain("this node has stopped taking part".into())),
        Err(_) => Err(Refused::timed_out(SECONDS)),
    };
    answer(waiting, outcome);
}

fn answer(waiting: Waiting, outcome: Result<Replies, Refused>) {
    let expected: usize = waiting.iter().map(|(writes, _)| writes).sum();
    let mut outcome = match outcome {
        Ok(Replies(replies)) if replies.len() != expected => {
            Err(Refused::Uncertain(format!("expected {expected} replies of the group, found {}", replies.len())))
        }
        outcome => outcome.map(|Replies(replies)| replies.into_iter()),
    };
    for (writes, answer) in waiting {
        let own = outcome.as_mut().map(|replies| replies.take(writes).collect()).map_err(|refused| refused.clone());
        // The client may have disconnected.
        answer.send(own).ok();
    }
}
