//! [`Link`]: calls to one node, one after the other, on a connection that is made at the first call.
//!
//! openraft gives up a heartbeat after a tenth of a second. So a call may be dropped at any point, without a cost: a connection that is being made is
//! still completed, and a late reply is skipped. A connection on which a request was sent but nothing was received for [`SILENCE`] is given up: the
//! other machine may be gone, and the system would repeat the bytes at longer and longer intervals.

use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::dialer::Dialer;
use crate::clock::{ClockOffset, WallClock};
use crate::places::Places;
use crate::wire::control::{ControlReply, ControlRequest, Description};
use crate::wire::frames::Frames;
use crate::wire::handshake::Audience;
use crate::wire::message::{Call, CallReply, Numbered};

/// The time after which a node that does not describe itself is given up.
const DESCRIBE_DEADLINE: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(2);

/// A node's description of itself, and the offset of its clock.
pub(crate) type Described = (Description, ClockOffset);

/// Calls to one node.
pub(crate) struct Link {
    pub(super) dialer: Arc<Dialer>,
    address: String,
    audience: Audience,
    connecting: Option<JoinHandle<Result<Frames>>>,
    open: Option<Open>,
    /// The number of the latest call.
    last: u64,
}

struct Open {
    frames: Frames,
    /// The time of the first call since the last byte was received.
    asked: Option<Instant>,
}

impl Link {
    pub(crate) fn new(dialer: Arc<Dialer>, address: String, audience: Audience) -> Self {
        Self { dialer, address, audience, connecting: None, open: None, last: 0 }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Sends a call and returns the node's reply, which `expected` must accept, within `deadline`. If an existing connection is found closed, the call
    /// is repeated on a new one, so it may be carried out twice.
    pub(crate) async fn call<T>(
        &mut self,
        call: Call,
        deadline: Duration,
        expected: impl FnOnce(CallReply) -> Option<T>,
    ) -> Result<T> {
        self.dialer.starts.check()?;
        self.last += 1;
        let call = Numbered { number: self.last, body: call };
        match timeout(deadline, self.call_or_again(&call)).await {
            Ok(reply) => reply?.find(expected),
            Err(_) => {
                self.open = None;
                let what = format!("no answer from {} in {deadline:?}", self.address);
                Err(Error::new(ErrorKind::TimedOut, what))
            }
        }
    }

    /// The node's description of itself, and the offset of its clock from `clock`. `told` goes along.
    pub(crate) async fn describe(&mut self, told: Option<(u64, Places)>, clock: &WallClock) -> Result<Described> {
        let (sent, begun) = (clock(), Instant::now());
        let call = Call::Control(ControlRequest::Describe(told));
        let description = |reply| match reply {
            CallReply::Control(ControlReply::Description(description)) => Some(*description),
            _ => None,
        };
        let description = self.call(call, DESCRIBE_DEADLINE, description).await?;
        let offset = ClockOffset::new(description.clock, sent, begun.elapsed());
        Ok((description, offset))
    }

    async fn call_or_again(&mut self, call: &Numbered<Call>) -> Result<CallReply> {
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

    /// A separate connection, for exchanges other than calls and replies.
    pub(crate) async fn connect(&self) -> Result<Frames> {
        self.dialer.connect(&self.address, self.audience).await
    }
}

impl Open {
    async fn call(&mut self, call: &Numbered<Call>) -> Result<CallReply> {
        self.asked.get_or_insert_with(Instant::now);
        self.frames.send(call).await?;
        loop {
            let Numbered { number, body } = self.frames.receive::<Numbered<CallReply>>().await?;
            self.asked = None;
            if number == call.number {
                return Ok(body);
            }
        }
    }
}
