//! The loop that serves all clients; `lib.rs` explains why it is one thread.
//!
//! A turn:
//! 1. Waits until something is ready, unless requests of some client are left from the last turn.
//! 2. Gives each client that has work its turn, of a limited number of requests, so that a flood waits behind the others.
//! 3. Has a thread sync, if a reply of this turn has to wait for that. The next turn begins when the sync is done. If it fails, the replies are
//!    taken back and errors sent, because it is unknown for all requests of the turn whether they are durable. The engine refuses every write from
//!    then on.
//! 4. Sends the replies.
//!
//! The loop never waits for the engine. A write that would have to wait for a flush or a compaction of level 0 is not begun: its client is held,
//! and a thread waits in its place; then the request is carried out again, or refused with the reason. Other clients read meanwhile. So only the
//! loop carries out requests, one after the other, whatever waits.
//!
//! When it is told to stop, it accepts and reads no more. It carries out the received requests, sends the replies, and ends once every client has
//! its replies, or after a while.

use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::{TcpListener, TcpStream, UnixStream};
use mio::{Events, Interest, Poll, Token, Waker};

use super::connection::{Connection, READ_BYTES, Wanted};
use super::worker::{Client, Workers};
use crate::error::{Result, io};
use crate::protocol::reply::Reply;
use crate::state::shared::Shared;

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);
const STOP: Token = Token(usize::MAX - 2);

/// The number of events that are handled together.
const EVENTS: usize = 1024;
/// The interval at which idle clients are checked.
const TICK: Duration = Duration::from_millis(500);
/// The maximum time for sending the last replies.
const DRAIN: Duration = Duration::from_secs(10);

pub(crate) struct EventLoop {
    // Declared in the order in which they must be dropped: the threads before the poll that they wake.
    threads: Workers,
    poll: Poll,
    /// `None` once the server ends.
    listener: Option<TcpListener>,
    /// The first one receives a byte when the server must end. The second one keeps its side open.
    _stop: (UnixStream, StdUnixStream),
    shared: Shared,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// The places of the connections that have work.
    queue: Vec<usize>,
    /// The places of the connections whose turn ends with the sync under way.
    syncing: Option<Vec<usize>>,
    /// The clients whose writes wait for room; if there are any, a thread waits for them.
    held: Vec<Client>,
    /// Whether clients may be waiting to be accepted.
    may_accept: bool,
    next_number: u64,
    next_tick: Instant,
    /// The time at which the server ends, even if some clients have not received their replies.
    end_by: Option<Instant>,
}

impl EventLoop {
    pub(crate) fn new(
        mut listener: TcpListener,
        mut stop: (UnixStream, StdUnixStream),
        shared: Shared,
    ) -> Result<Self> {
        let start = |listener: &mut TcpListener, stop: &mut UnixStream| {
            let poll = Poll::new()?;
            poll.registry().register(listener, LISTENER, Interest::READABLE)?;
            let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
            poll.registry().register(stop, STOP, Interest::READABLE)?;
            let threads = Workers::start(&shared.db, &waker, shared.settings.durability)?;
            Ok((poll, threads))
        };
        let (poll, threads) = start(&mut listener, &mut stop.0).map_err(io("start", "the server"))?;
        Ok(Self {
            threads,
            poll,
            listener: Some(listener),
            _stop: stop,
            shared,
            connections: Vec::new(),
            free: Vec::new(),
            queue: Vec::new(),
            syncing: None,
            held: Vec::new(),
            may_accept: true,
            next_number: 0,
            next_tick: Instant::now(),
            end_by: None,
        })
    }

    /// Serves until it is told to stop, or a client ends it.
    pub(crate) fn run(&mut self) -> Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        let mut buffer = vec![0; READ_BYTES];
        while !self.is_over() {
            let is_idle = self.queue.is_empty() || self.syncing.is_some();
            let wait = if is_idle { TICK } else { Duration::ZERO };
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => {
                    return Err(io("wait for", "clients")(error));
                }
                _ => {}
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.may_accept = true,
                    STOP => self.shared.wants_shutdown = true,
                    WAKER => {}
                    Token(place) => self.ready(place, event),
                }
            }
            self.accept();
            self.end_sync()?;
            if self.syncing.is_none() {
                self.finish_jobs()?;
                self.resume_held()?;
                self.turn(&mut buffer);
            }
            self.shared.damage.news().iter().for_each(|line| tracing::error!("{line}"));
            if self.shared.wants_shutdown && self.end_by.is_none() {
                self.begin_end();
            }
            self.tick();
        }
        self.say_news();
        Ok(())
    }

    /// Reports in the log the changes since the last call.
    fn say_news(&mut self) {
        if let Some(news) = self.shared.writes.news() {
            tracing::warn!("{news}");
        }
    }

    fn is_over(&self) -> bool {
        self.end_by.is_some_and(|end| Instant::now() >= end || self.free.len() == self.connections.len())
    }

    fn ready(&mut self, place: usize, event: &Event) {
        // An event may belong to an earlier connection with this place: then nothing is ready.
        if let Some(Some(connection)) = self.connections.get_mut(place) {
            connection.ready(event);
            enqueue(&mut self.queue, place, connection);
        }
    }

    /// Accepts all waiting clients.
    fn accept(&mut self) {
        while self.may_accept {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((stream, _)) => self.add(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.may_accept = false,
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => {
                    // For example, no file handles are left. The next tick tries again.
                    tracing::warn!(%error, "could not accept a client");
                    self.may_accept = false;
                }
            }
        }
    }

    fn add(&mut self, mut stream: TcpStream) {
        self.shared.counters.connections += 1;
        if self.shared.counters.clients >= self.shared.settings.limits.clients {
            self.shared.counters.rejected += 1;
            // A new socket accepts so few bytes at once.
            stream.write_all(b"-ERR max number of clients reached\r\n").ok();
            return;
        }
        // Replies are sent as a whole, so the kernel need not collect them.
        stream.set_nodelay(true).ok();
        let place = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        self.next_number += 1;
        let mut connection = Connection::new(stream, self.next_number, &mut self.shared, Instant::now());
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.poll.registry().register(connection.stream(), Token(place), interest) {
            tracing::warn!(%error, "could not watch a client");
            self.shared.clients.remove(connection.id());
            self.free.push(place);
            return;
        }
        self.shared.counters.clients += 1;
        enqueue(&mut self.queue, place, &mut connection);
        self.connections[place] = Some(connection);
    }

    /// Passes the replies of jobs to the waiting clients.
    fn finish_jobs(&mut self) -> Result<()> {
        while let Some(((job, client), outcome)) = self.threads.jobs.next_done()? {
            let reply = self.shared.end_job(&job, outcome);
            if let (Reply::Error(error), None) = (&reply, client) {
                tracing::error!(error, "could not do what nobody waits for");
            }
            self.wake(client, |connection| connection.job_done(&reply));
        }
        Ok(())
    }

    /// Carries out the held writes again, or refuses them, once a thread has waited for them.
    fn resume_held(&mut self) -> Result<()> {
        if let Some(waited) = self.threads.room.next_done()? {
            let refusal = waited.err();
            // They come before the others, and the first one first, because the room is for its batch.
            let others = std::mem::take(&mut self.queue);
            for client in std::mem::take(&mut self.held) {
                self.wake(Some(client), |connection| connection.resume(refusal.clone()));
            }
            self.queue.extend(others);
        }
        Ok(())
    }

    /// Tells a client that the awaited work is done, if it is still connected.
    fn wake(&mut self, client: Option<Client>, tell: impl FnOnce(&mut Connection)) {
        let Some((place, number)) = client else { return };
        let connection = self.connections.get_mut(place).and_then(Option::as_mut);
        if let Some(connection) = connection.filter(|connection| connection.number == number) {
            tell(connection);
            enqueue(&mut self.queue, place, connection);
        }
    }

    /// Gives each client in the queue its turn, and begins a sync or sends.
    fn turn(&mut self, buffer: &mut [u8]) {
        let now = Instant::now();
        let mut turn = std::mem::take(&mut self.queue);
        let most = self.shared.settings.limits.buffer_bytes;
        let mut served = 0;
        // Above the bound the other clients wait until the one with the most memory was disconnected.
        while served < turn.len() && self.shared.counters.buffer_bytes <= most {
            let place = turn[served];
            served += 1;
            let Some(connection) = &mut self.connections[place] else { continue };
            connection.is_queued = false;
            let client = (place, connection.number);
            match connection.turn(&mut self.shared, buffer, now) {
                Some(Wanted::Job(job)) => self.threads.jobs.begin((job, Some(client))),
                Some(Wanted::Room(batch)) => {
                    // The others try again when the first one's batch has room.
                    if self.held.is_empty() {
                        self.threads.room.begin(batch);
                    }
                    self.held.push(client);
                }
                None => {}
            }
            connection.count_into(&mut self.shared.counters.buffer_bytes);
        }
        self.queue.extend(turn.drain(served..));
        for job in self.shared.background.drain(..) {
            self.threads.jobs.begin((job, None));
        }
        if self.shared.must_sync() {
            (self.shared.is_unsynced, self.shared.wants_sync) = (false, false);
            self.threads.syncs.begin(());
            self.syncing = Some(turn);
        } else {
            self.send(turn, None);
        }
    }

    /// Sends the replies that have waited for a sync, if it is done; or errors instead of them, if it failed.
    fn end_sync(&mut self) -> Result<()> {
        let Some(synced) = self.threads.syncs.next_done()? else { return Ok(()) };
        let failed = synced.err().map(|error| {
            let text = format!("IOERR cannot sync, whether the write survives is not known: {error}");
            Reply::Error(text.replace(['\r', '\n'], " "))
        });
        let turn = self.syncing.take().unwrap_or_default();
        self.send(turn, failed.as_ref());
        Ok(())
    }

    /// Ends the turn of these clients, and sends their replies.
    fn send(&mut self, turn: Vec<usize>, failed: Option<&Reply>) {
        let now = Instant::now();
        for place in turn {
            let Some(connection) = &mut self.connections[place] else { continue };
            if let Some(error) = failed {
                connection.take_back(error);
            }
            connection.send(now);
            connection.count_into(&mut self.shared.counters.buffer_bytes);
            if connection.has_work() {
                enqueue(&mut self.queue, place, connection);
            }
            if connection.is_closed() {
                self.remove(place);
            }
        }
        self.bound_buffers();
    }

    /// Disconnects the clients with the most memory until all together are within the limit.
    fn bound_buffers(&mut self) {
        while self.shared.counters.buffer_bytes > self.shared.settings.limits.buffer_bytes {
            let open = self.connections.iter().enumerate();
            let sizes = open.filter_map(|(place, connection)| Some((connection.as_ref()?.counted, place)));
            let Some((_, place)) = sizes.max() else { return };
            self.remove(place);
        }
    }

    fn remove(&mut self, place: usize) {
        if let Some(mut connection) = self.connections[place].take() {
            // A closed socket is no longer watched in any case.
            self.poll.registry().deregister(connection.stream()).ok();
            self.shared.counters.clients -= 1;
            self.shared.clients.remove(connection.id());
            self.shared.counters.buffer_bytes -= connection.counted;
            self.free.push(place);
            self.queue.retain(|&queued| queued != place);
        }
    }

    fn tick(&mut self) {
        let now = Instant::now();
        if now < self.next_tick {
            return;
        }
        self.next_tick = now + TICK;
        self.say_news();
        // Accepting may have failed for lack of resources.
        self.may_accept = true;
        let idle_seconds = self.shared.settings.limits.idle_seconds;
        for place in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[place] else { continue };
            connection.check_time(now, idle_seconds);
            if connection.is_closed() {
                self.remove(place);
            }
        }
    }

    /// Stops accepting and reading.
    fn begin_end(&mut self) {
        self.end_by = Some(Instant::now() + DRAIN);
        if let Some(mut listener) = self.listener.take() {
            self.poll.registry().deregister(&mut listener).ok();
        }
        for place in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[place] else { continue };
            connection.end();
            enqueue(&mut self.queue, place, connection);
        }
    }
}

fn enqueue(queue: &mut Vec<usize>, place: usize, connection: &mut Connection) {
    if !connection.is_queued {
        connection.is_queued = true;
        queue.push(place);
    }
}
