//! One client's socket, with the input that has arrived and the output that is still to be sent.
//!
//! Bounds: more is read only while the input holds no complete request, so the input holds at most one request and the bytes of one read. Requests
//! are carried out only while little output waits, so a client that does not read its replies stops its own requests; its output is at most `STOP_AT`
//! plus the replies of one step. Such a client's further requests are still read, and wait in the input, while the buffers of all clients are small
//! (`Limits::read_ahead_bytes`). Requests are mostly shorter than their replies, and a client may send a whole pipeline before it reads a reply.
//!
//! When a connection ends with a last reply, the server sends the end of its side, and then reads and drops the client's input for a while. A socket
//! that is closed with unread input is reset, and the client might never see the reply.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use mini_engine::Error;
use mio::event::{Event, Source};

use crate::groups::{Client, GroupReplies};
use crate::protocol::output::Output;
use crate::protocol::reply::Reply;
use crate::session::{Session, Step};
use crate::state::context::Work;
use crate::state::counters::Counters;
use crate::state::refused::{Cause, Refused};
use crate::state::shared::Shared;
use crate::transport::Stream;

/// The number of bytes of one read.
pub(crate) const READ_BYTES: usize = 64 << 10;
/// The number of bytes of waiting output from which on a client's requests wait.
const STOP_AT: usize = 1 << 20;
/// The maximum memory that an empty input keeps, in bytes.
const KEPT_BYTES: usize = 64 << 10;
/// The maximum time for which a client may take none of its waiting output.
const SLOW: Duration = Duration::from_secs(60);
/// The maximum time for which Prometheus, or a client in the TLS handshake, may send nothing.
const SHORT_IDLE_SECONDS: u64 = 10;
/// The number of bytes of waiting output at which a client that has sent MONITOR is disconnected.
const MOST_BEHIND: usize = 16 << 20;
/// The time for which the rest of a client's input is read and dropped: from its last byte, and in all. A long value may still be on its way.
const LINGER: Duration = Duration::from_secs(2);
const LONGEST_LINGER: Duration = Duration::from_secs(60);

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Other threads work for its request; its next request waits.
    Waiting,
    /// The connection ends when its output is sent.
    Ending,
    /// The output is sent, and so is the end of the server's side.
    Lingering {
        until: Instant,
        at_most: Instant,
    },
    Closed,
}

pub(crate) struct Connection {
    stream: Box<dyn Stream>,
    /// Its number in the event loop.
    pub(crate) number: Client,
    /// Whether the connection serves metrics instead of a client.
    pub(crate) is_of_metrics: bool,
    session: Session,
    state: State,
    input: Vec<u8>,
    /// The number of bytes of the input whose requests were carried out.
    consumed: usize,
    output: Output,
    /// The length of the output at the beginning of this turn, and the number of replies of this turn.
    turn: (usize, usize),
    is_readable: bool,
    is_writable: bool,
    /// Whether the input may hold a complete request.
    has_request: bool,
    /// Whether the client has ended its side, and all its input was read.
    is_at_end: bool,
    /// Whether the end of the client's side was announced: no further event will report this.
    is_end_near: bool,
    /// Whether nothing more is read because the server is ending.
    is_last: bool,
    pub(crate) is_queued: bool,
    /// Its part of the memory of all connections, when it was last counted.
    pub(crate) counted: usize,
    last_request: Instant,
    last_progress: Instant,
}

impl Connection {
    /// A new connection of a client.
    pub(crate) fn new(stream: Box<dyn Stream>, number: Client, shared: &mut Shared, now: Instant) -> Self {
        let session = Session::new(shared);
        if let Some(record) = shared.clients.get_mut(session.id()) {
            record.addresses = stream.addresses();
        }
        Self::of(session, stream, number, now)
    }

    /// A new connection of Prometheus.
    pub(crate) fn of_metrics(stream: Box<dyn Stream>, number: Client, shared: &Shared, now: Instant) -> Self {
        Self { is_of_metrics: true, ..Self::of(Session::of_metrics(shared), stream, number, now) }
    }

    fn of(session: Session, stream: Box<dyn Stream>, number: Client, now: Instant) -> Self {
        Self {
            stream,
            number,
            is_of_metrics: false,
            session,
            state: State::Open,
            input: Vec::new(),
            consumed: 0,
            output: Output::default(),
            turn: (0, 0),
            is_readable: true,
            is_writable: true,
            has_request: false,
            is_at_end: false,
            is_end_near: false,
            is_last: false,
            is_queued: false,
            counted: 0,
            last_request: now,
            last_progress: now,
        }
    }

    /// The client's number, in the form that is shown to clients.
    pub(crate) fn id(&self) -> u64 {
        self.session.id()
    }

    pub(crate) fn source(&mut self) -> &mut dyn Source {
        self.stream.source()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    pub(crate) fn ready(&mut self, event: &Event) {
        self.is_readable |= event.is_readable();
        self.is_writable |= event.is_writable();
        self.is_end_near |= event.is_read_closed();
    }

    /// Whether there is work that need not wait for the network.
    pub(crate) fn has_work(&self, may_read_ahead: bool) -> bool {
        match self.state {
            State::Open if self.is_full() => may_read_ahead && self.is_readable && !self.is_last,
            State::Open => self.has_request || self.is_readable || self.is_last,
            State::Ending => self.is_writable,
            State::Lingering { .. } => self.is_readable,
            State::Waiting | State::Closed => false,
        }
    }

    /// Whether so much output waits that the client's requests wait too.
    fn is_full(&self) -> bool {
        self.output.len() >= STOP_AT
    }

    /// The client's address, in the form that is shown.
    pub(crate) fn address(&self) -> String {
        let [address, _] = self.stream.addresses();
        address
    }

    /// The memory of the connection, in bytes.
    fn size(&self) -> usize {
        self.input.capacity() + self.output.size() + self.session.size()
    }

    /// Adds the change of this connection's memory since the last count to `total`, the memory of all connections.
    pub(crate) fn count_into(&mut self, total: &mut usize) {
        let size = if self.is_closed() { 0 } else { self.size() };
        *total = *total - self.counted + size;
        self.counted = size;
    }

    /// One turn of the connection: carries out the waiting requests, and reads more if none is complete. Nothing is sent. If the last request has to
    /// wait, returns the work to begin for it.
    pub(crate) fn turn(&mut self, shared: &mut Shared, buffer: &mut [u8], now: Instant) -> Option<Work> {
        self.turn = (self.output.len(), 0);
        if let State::Lingering { at_most, .. } = self.state {
            self.drop_input(buffer, (now + LINGER).min(at_most), at_most);
            return None;
        }
        let mut left = shared.settings.limits.pipeline;
        let mut wanted = self.carry_out(shared, &mut left, now);
        let may_read = !self.has_request || (self.is_full() && shared.may_read_ahead());
        if wanted.is_none() && self.state == State::Open && may_read && self.is_readable && !self.is_last {
            self.read(&mut shared.counters, buffer);
            wanted = self.carry_out(shared, &mut left, now);
        }
        // Requests that the client sent before it ended its side are answered.
        if (self.is_at_end || self.is_last) && self.state == State::Open && !self.has_request {
            self.state = State::Ending;
        }
        wanted
    }

    fn carry_out(&mut self, shared: &mut Shared, left: &mut usize, now: Instant) -> Option<Work> {
        let mut wanted = None;
        while self.has_request && self.state == State::Open && *left > 0 && !self.is_full() {
            let step = self.session.step(shared, &self.input[self.consumed..], *left, &mut self.output);
            if !matches!(step, Step::Incomplete) {
                self.last_request = now;
            }
            *left -= if let Step::Done { requests, .. } = step { requests } else { 1 };
            match step {
                Step::Incomplete => self.has_request = false,
                Step::Empty(len) => self.consumed += len,
                // The other clients get their turns first.
                Step::Continue => *left = 0,
                Step::Done { len, requests } => {
                    self.consumed += len;
                    self.turn.1 += requests;
                    self.forget_consumed();
                }
                Step::Later(len, work) => {
                    // The reply comes in a later turn.
                    self.consumed += len;
                    self.state = State::Waiting;
                    wanted = Some(work);
                }
                Step::Close => {
                    self.state = State::Ending;
                    self.turn.1 += 1;
                }
            }
        }
        self.forget_consumed();
        wanted
    }

    /// Empties the input once all of it was carried out.
    fn forget_consumed(&mut self) {
        if self.consumed == self.input.len() {
            self.input.clear();
            self.input.shrink_to(KEPT_BYTES);
            self.consumed = 0;
            self.has_request = false;
        }
    }

    fn read(&mut self, counters: &mut Counters, buffer: &mut [u8]) {
        match self.stream.read(buffer) {
            Ok(0) => (self.is_readable, self.is_at_end) = (false, true),
            Ok(len) => {
                counters.received_bytes += len as u64;
                // While there are more requests, this is done only when half of the input was carried out, so that each byte is moved at most once.
                if !self.has_request || self.consumed > self.input.len() / 2 {
                    self.input.drain(..self.consumed);
                    self.consumed = 0;
                }
                make_room(&mut self.input, len, self.consumed + self.session.expects());
                self.input.extend_from_slice(&buffer[..len]);
                self.has_request = true;
                // A short read has taken all bytes, but perhaps not the end of the stream; the next event reports more.
                self.is_readable = len == buffer.len() || self.is_end_near || !self.stream.reads_whole();
            }
            Err(error) => {
                if error.kind() == ErrorKind::InvalidData && self.stream.is_handshaking() {
                    counters.refused.note(Cause::Handshake, &self.address(), format_args!("TLS: {error}"));
                }
                self.failed(&error, |connection| connection.is_readable = false);
            }
        }
    }

    fn drop_input(&mut self, buffer: &mut [u8], until: Instant, at_most: Instant) {
        match self.stream.read(buffer) {
            Ok(0) => self.state = State::Closed,
            Ok(_) => self.state = State::Lingering { until, at_most },
            Err(error) => self.failed(&error, |connection| connection.is_readable = false),
        }
    }

    fn failed(&mut self, error: &io::Error, wait: impl FnOnce(&mut Self)) {
        match error.kind() {
            ErrorKind::WouldBlock => wait(self),
            ErrorKind::Interrupted => {}
            // The client has disconnected.
            _ => self.state = State::Closed,
        }
    }

    /// Removes the replies of this turn from the output, because their writes could not be made durable. Each of these requests, and no other, is
    /// answered with `error`: clients count replies.
    pub(crate) fn take_back(&mut self, error: &Reply) {
        let (len, replies) = self.turn;
        if replies == 0 {
            return;
        }
        self.output.truncate(len);
        for _ in 0..replies {
            self.session.answer(error, &mut self.output);
        }
    }

    /// Appends the requests of other clients, for a client that has sent MONITOR. A client that does not read them in time is disconnected.
    pub(crate) fn show(&mut self, requests: &str, refused: &mut Refused) {
        if let State::Ending | State::Lingering { .. } | State::Closed = self.state {
            return;
        }
        self.output.put(requests.as_bytes());
        if self.output.len() > MOST_BEHIND {
            let why = format_args!("MONITOR: it was more than {MOST_BEHIND} bytes behind");
            refused.note(Cause::Monitor, &self.address(), why);
            self.close();
        }
    }

    /// Sends as many bytes as the network accepts. Returns their number.
    pub(crate) fn send(&mut self, now: Instant) -> usize {
        let before = self.output.len();
        loop {
            if self.output.is_empty() && self.state == State::Ending {
                self.stream.say_end();
            }
            if !self.is_writable || !self.has_unsent() || self.is_closed() {
                break;
            }
            let sent = match self.output.is_empty() {
                true => self.stream.flush(),
                false => self.output.send(&mut self.stream).map(drop),
            };
            match sent {
                Ok(()) => self.last_progress = now,
                Err(error) => self.failed(&error, |connection| connection.is_writable = false),
            }
        }
        if !self.has_unsent() {
            self.last_progress = now;
            if self.state == State::Ending {
                self.finish(now);
            }
        }
        before - self.output.len()
    }

    fn has_unsent(&self) -> bool {
        !self.output.is_empty() || self.stream.has_unsent()
    }

    fn finish(&mut self, now: Instant) {
        let is_ended = self.stream.shutdown().is_ok();
        self.state = match is_ended && !self.is_at_end {
            true => State::Lingering { until: now + LINGER, at_most: now + LONGEST_LINGER },
            false => State::Closed,
        };
        self.is_readable = true;
        self.input = Vec::new();
    }

    /// Appends the reply of the job for which the client waits.
    pub(crate) fn job_done(&mut self, reply: &Reply) {
        if self.state == State::Waiting {
            self.session.answer(reply, &mut self.output);
            self.last_request = Instant::now();
            self.state = State::Open;
        }
    }

    /// Appends the replies of the groups to the first requests that were passed to them.
    pub(crate) fn answered(&mut self, shared: &mut Shared, replies: GroupReplies) {
        if self.state == State::Waiting {
            let requests = &self.input[self.consumed..];
            self.consumed += self.session.answered(shared, (requests, &mut self.output), replies);
            self.forget_consumed();
            self.last_request = Instant::now();
            self.state = State::Open;
        }
    }

    /// Ends the wait of the held request: it is carried out again, or is refused.
    pub(crate) fn resume(&mut self, refusal: Option<Error>) {
        if self.state == State::Waiting {
            self.session.refuse(refusal);
            self.state = State::Open;
        }
    }

    /// Called when the server ends: received requests are carried out, their replies are sent, and no more input is read.
    pub(crate) fn end(&mut self) {
        self.is_last = true;
        if let State::Open | State::Waiting = self.state {
            self.is_readable = false;
        }
    }

    /// Closes the connection if it was idle or slow for too long.
    pub(crate) fn check_time(&mut self, now: Instant, idle_seconds: u64, refused: &mut Refused) {
        let is_slow = self.has_unsent() && now.duration_since(self.last_progress) > SLOW;
        let idle = now.duration_since(self.last_request).as_secs();
        let most_idle = match self.is_of_metrics || self.stream.is_handshaking() {
            true => SHORT_IDLE_SECONDS,
            false => idle_seconds,
        };
        let is_idle = self.state == State::Open && self.output.is_empty() && most_idle > 0 && idle >= most_idle;
        let is_over = matches!(self.state, State::Lingering { until, .. } if now >= until);
        let cause = if is_slow { Cause::Slow } else { Cause::Idle };
        if (is_slow || is_idle) && !self.is_of_metrics {
            let (seconds, left) = (SLOW.as_secs(), self.output.len());
            let why = format_args!("it took none of its replies for {seconds} s, of which {left} bytes wait");
            refused.note(cause, &self.address(), why);
        }
        if is_slow || is_idle || is_over {
            self.close();
        }
    }

    pub(crate) fn close(&mut self) {
        self.state = State::Closed;
    }
}

/// Makes room for `more` bytes after `input`. The capacity doubles, so memory follows the bytes that have arrived and not the announced length; but
/// it does not grow past `end`, the expected end of the request.
fn make_room(input: &mut Vec<u8>, more: usize, end: usize) {
    let len = input.len() + more;
    if len > input.capacity() {
        let doubled = input.capacity() * 2;
        let wanted = if len <= end { doubled.min(end) } else { doubled };
        input.reserve_exact(wanted.max(len) - input.len());
    }
}
