//! The loop that serves all clients: see `lib.rs` for why it is one thread.
//!
//! A turn:
//! 1. Waits until something is ready, unless some client's requests are left over.
//! 2. Gives each client that has work its turn: so many requests and no more, so that a flood waits behind the others.
//! 3. Has a thread sync, if a reply of this turn has to wait for that. The next turn begins when that is done. If the sync fails, the
//!    replies are taken back and errors sent: of no request of the turn is it known what is durable. The engine refuses every write
//!    from then on.
//! 4. Sends the replies.
//!
//! It never waits for the engine. A write that would have to, for a flush or for a compaction of level 0, is not begun: its client is held,
//! and a thread waits in its place; then the request is carried out again, or refused with the reason. Meanwhile other clients read.
//! So requests are carried out here alone, one after the other, whatever waits.
//!
//! Told to stop, it stops to accept and to read; it carries out what it has received, sends the replies, and ends once every client
//! has its own, or after a while.

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

/// Events that are looked at together.
const EVENTS: usize = 1024;
/// How often clients are looked at that do nothing.
const TICK: Duration = Duration::from_millis(500);
/// For how long the last replies may take.
const DRAIN: Duration = Duration::from_secs(10);

pub(crate) struct EventLoop {
    // In the order in which they are to be dropped: the threads before the poll that they wake.
    threads: Workers,
    poll: Poll,
    /// `None` once the server ends.
    listener: Option<TcpListener>,
    /// A byte comes to the first one when the server is to end. The second one keeps its side open.
    _stop: (UnixStream, StdUnixStream),
    shared: Shared,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// The places of the connections that have work.
    queue: Vec<usize>,
    /// The places of the connections whose turn is over when the sync under way is.
    syncing: Option<Vec<usize>>,
    /// The clients whose writes wait for room, which a thread does if there are any.
    held: Vec<Client>,
    /// Whether clients may be waiting to be accepted.
    may_accept: bool,
    next_number: u64,
    next_tick: Instant,
    /// When the server ends, whoever has not received its replies.
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

    /// Says in the log what has changed since it was last asked.
    fn say_news(&mut self) {
        if let Some(news) = self.shared.writes.news() {
            tracing::warn!("{news}");
        }
    }

    fn is_over(&self) -> bool {
        self.end_by.is_some_and(|end| Instant::now() >= end || self.free.len() == self.connections.len())
    }

    fn ready(&mut self, place: usize, event: &Event) {
        // An event may be of a connection that had the place before: then nothing is found to be ready.
        if let Some(Some(connection)) = self.connections.get_mut(place) {
            connection.ready(event);
            enqueue(&mut self.queue, place, connection);
        }
    }

    /// Accepts all who wait.
    fn accept(&mut self) {
        while self.may_accept {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((stream, _)) => self.add(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.may_accept = false,
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => {
                    // No file handles, for instance. The next tick tries again.
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
            // A socket that is new takes so little at once.
            stream.write_all(b"-ERR max number of clients reached\r\n").ok();
            return;
        }
        // Replies are sent whole, so there is nothing to gather.
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

    /// Hands the replies of jobs to who waits for them.
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

    /// Has the writes that were held carried out again, or refused, once a thread has waited for them.
    fn resume_held(&mut self) -> Result<()> {
        if let Some(waited) = self.threads.room.next_done()? {
            let refusal = waited.err();
            // Before the others, and the first one first: the room is for its batch.
            let others = std::mem::take(&mut self.queue);
            for client in std::mem::take(&mut self.held) {
                self.wake(Some(client), |connection| connection.resume(refusal.clone()));
            }
            self.queue.extend(others);
        }
        Ok(())
    }

    /// Tells a client, if it is still there, of what it has waited for.
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
        // Past the bound the others wait: who takes the most has to go first.
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

    /// Ends the turn of these clients.
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

    /// Disconnects those who take the most memory until all together take what they may.
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
        // In case accepting failed for want of something.
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

    /// Accepts and reads no more.
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
