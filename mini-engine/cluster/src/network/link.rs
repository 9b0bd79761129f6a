//! [`Link`]: calls to one node, one after the other, on a connection that is made when it is needed.
//!
//! openraft gives up a heartbeat after a tenth of a second. So a call may be dropped at any point, and costs nothing then: a connection that is being
//! made goes on being made, and an answer that comes too late is skipped. A connection on which nothing has come for [`SILENCE`] although something
//! was asked is given up: it may lead to a machine that has gone, and the system would repeat the bytes with longer and longer pauses.

use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::dialer::Dialer;
use crate::wire::frames::Frames;
use crate::wire::handshake::Audience;
use crate::wire::message::{Answer, Call, Numbered};

const SILENCE: Duration = Duration::from_secs(2);

/// Calls to one node.
pub(crate) struct Link {
    dialer: Arc<Dialer>,
    address: String,
    audience: Audience,
    connecting: Option<JoinHandle<Result<Frames>>>,
    open: Option<Open>,
    /// The number of the last call.
    last: u64,
}

struct Open {
    frames: Frames,
    /// When the first call was sent after which nothing has come.
    asked: Option<Instant>,
}

impl Link {
    pub(crate) fn new(dialer: Arc<Dialer>, address: String, audience: Audience) -> Self {
        Self { dialer, address, audience, connecting: None, open: None, last: 0 }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The node's answer, within `deadline`. If a connection that is there already turns out to be closed, the call is made again on a new one; so a
    /// call may be carried out twice.
    pub(crate) async fn call(&mut self, call: Call, deadline: Duration) -> Result<Answer> {
        self.last += 1;
        let call = Numbered { number: self.last, body: call };
        match timeout(deadline, self.call_or_again(&call)).await {
            Ok(Ok(Answer::Failed(reason))) => Err(Error::other(reason)),
            Ok(answered) => answered,
            Err(_) => {
                self.open = None;
                let what = format!("no answer from {} in {deadline:?}", self.address);
                Err(Error::new(ErrorKind::TimedOut, what))
            }
        }
    }

    async fn call_or_again(&mut self, call: &Numbered<Call>) -> Result<Answer> {
        self.open.take_if(|open| open.asked.is_some_and(|asked| asked.elapsed() >= SILENCE));
        if let Some(open) = &mut self.open
            && let Ok(answer) = open.call(call).await
        {
            return Ok(answer);
        }
        self.open = None;
        let frames = self.connected().await?;
        let open = self.open.insert(Open { frames, asked: None });
        let answered = open.call(call).await;
        if answered.is_err() {
            self.open = None;
        }
        answered
    }

    /// A new connection, or the one that an earlier call has begun to make.
    async fn connected(&mut self) -> Result<Frames> {
        let connecting = self.connecting.get_or_insert_with(|| {
            let (dialer, address, audience) = (Arc::clone(&self.dialer), self.address.clone(), self.audience);
            tokio::spawn(async move { dialer.connect(&address, audience).await })
        });
        let connected = connecting.await;
        self.connecting = None;
        connected?
    }

    /// A connection of its own, for what is more than calls and answers.
    pub(crate) async fn connect(&self) -> Result<Frames> {
        self.dialer.connect(&self.address, self.audience).await
    }
}

impl Open {
    async fn call(&mut self, call: &Numbered<Call>) -> Result<Answer> {
        self.asked.get_or_insert_with(Instant::now);
        self.frames.send(call).await?;
        loop {
            let Numbered { number, body } = self.frames.receive::<Numbered<Answer>>().await?;
            self.asked = None;
            if number == call.number {
                return Ok(body);
            }
        }
    }
}
