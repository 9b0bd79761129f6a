//! The event loop that serves all clients; `lib.rs` explains why it is one thread.
//!
//! A turn:
//! 1. Waits until a socket or a result of another thread is ready, unless some client has requests left from the last turn.
//! 2. Each client that has work gets its turn, with a limited number of requests, so that a client that floods the server waits behind the others.
//! 3. If a reply of this turn has to wait for a sync, another thread makes the sync. The next turn begins when the sync is done. If the sync fails,
//!    the replies are replaced by errors, because it is unknown for all requests of the turn whether their writes are durable. The engine refuses
//!    every write after that.
//! 4. Then the replies are sent.
//!
//! The event loop never waits for the engine. A write that would have to wait for a flush or a compaction of level 0 is not begun. Its client is
//! held, and a thread waits in its place; then the request is carried out again, or refused with the reason. Other clients can read meanwhile. So
//! only the event loop carries out requests, one after the other, whichever requests wait.
//!
//! When the server is stopped, the loop accepts no more connections and reads no more input. It carries out the received requests and sends the
//! replies. It ends once every client has its replies, or after a maximum time.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::UnixStream;
use mio::{Events, Interest, Poll, Token, Waker};

use super::connection::{Connection, READ_BYTES};
use super::listener::{Listener, TlsReloader};
use super::long_wait::LongWait;
use super::worker::Workers;
use crate::error::{self, Result};
use crate::groups::{Client, ReplyReceiver};
use crate::protocol::reply::Reply;
use crate::state::context::Work;
use crate::state::job::Job;
use crate::state::refused::Cause;
use crate::state::shared::Shared;
use crate::transport::Stream;

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);
const STOP: Token = Token(usize::MAX - 2);
const METRICS: Token = Token(usize::MAX - 3);

/// The maximum number of events that are handled together.
const EVENTS: usize = 1024;
/// The interval at which idle clients are checked.
const TICK: Duration = Duration::from_millis(500);
/// The maximum number of connections that serve metrics.
const MOST_OF_METRICS: usize = 16;
/// The maximum time for sending the last replies.
const DRAIN: Duration = Duration::from_secs(10);

/// The sockets from which connections are accepted.
pub(crate) struct Listeners {
    pub(crate) clients: Listener,
    pub(crate) metrics: Option<Listener>,
    /// The TLS configuration, if clients of a TCP address must use TLS.
    pub(crate) tls: Option<TlsReloader>,
}

pub(crate) struct EventLoop {
    // Declared in the order in which the fields must be dropped: the threads before the poll that they wake.
    threads: Workers,
    /// Receives the replies of the groups of a cluster.
    answers: ReplyReceiver,
    poll: Poll,
    /// `None` while the server is ending.
    listeners: Option<Listeners>,
    /// The first socket receives a byte when the server must end. The second socket keeps the other side open.
    _stop: (UnixStream, StdUnixStream),
    shared: Shared,
    /// The connections by their numbers, which are also their tokens.
    connections: BTreeMap<Client, Connection>,
    /// The connections that have work.
    queue: Vec<Client>,
    /// The connections whose turn ends with the sync that is under way.
    syncing: Option<Vec<Client>>,
    /// The clients whose writes wait for room; if there are any, a thread waits for the room.
    held: Vec<Client>,
    /// The waits for the disk: those of writes, and those of replies.
    waits: [LongWait; 2],
    /// The number of connections that serve metrics.
    of_metrics: usize,
    /// Whether clients may be waiting to be accepted.
    may_accept: bool,
    last_number: Client,
    next_tick: Instant,
    /// The number of commands carried out before the last tick.
    commands_at_tick: u64,
    /// The time at which the server ends even if some clients have not received their replies.
    end_by: Option<Instant>,
}

impl EventLoop {
    pub(crate) fn new(mut listeners: Listeners, mut stop: (UnixStream, StdUnixStream), shared: Shared) -> Result<Self> {
        let start = |listeners: &mut Listeners, stop: &mut UnixStream| {
            let poll = Poll::new()?;
            poll.registry().register(listeners.clients.source(), LISTENER, Interest::READABLE)?;
            if let Some(metrics) = &mut listeners.metrics {
                poll.registry().register(metrics.source(), METRICS, Interest::READABLE)?;
            }
            let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
            poll.registry().register(stop, STOP, Interest::READABLE)?;
            let threads = Workers::start(&shared.keys.db, &waker, shared.settings.durability)?;
            Ok((poll, threads, ReplyReceiver::new(waker)))
        };
        let (poll, threads, answers) = start(&mut listeners, &mut stop.0).map_err(error::io("start", "the server"))?;
        Ok(Self {
            threads,
            answers,
            poll,
            listeners: Some(listeners),
            _stop: stop,
            shared,
            connections: BTreeMap::new(),
            queue: Vec::new(),
            syncing: None,
            held: Vec::new(),
            waits: ["the wait of writes for a flush or a compaction", "a sync of the log"].map(LongWait::of),
            of_metrics: 0,
            may_accept: true,
            last_number: 0,
            next_tick: Instant::now(),
            commands_at_tick: 0,
            end_by: None,
        })
    }

    /// Serves clients until the server is stopped by a `Stopper` or a client.
    pub(crate) fn run(&mut self) -> Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        let mut buffer = vec![0; READ_BYTES];
        while !self.is_over() {
            let is_idle = self.queue.is_empty() || self.syncing.is_some();
            let wait = if is_idle { TICK } else { Duration::ZERO };
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => {
                    return Err(error::io("wait for", "clients")(error));
                }
                _ => {}
            }
            for event in &events {
                match event.token() {
                    LISTENER | METRICS => self.may_accept = true,
                    STOP => self.shared.wants_shutdown = true,
                    WAKER => {}
                    Token(client) => self.wake(Some(client), |connection| connection.ready(event)),
                }
            }
            self.accept();
            self.end_sync()?;
            if self.syncing.is_none() {
                self.finish_jobs()?;
                self.finish_groups();
                self.resume_held()?;
                self.turn(&mut buffer);
            }
            self.shared.counters.damage.news().iter().for_each(|line| tracing::error!("{line}"));
            if self.shared.wants_shutdown && self.end_by.is_none() {
                self.begin_end();
            }
            self.tick();
        }
        self.say_news();
        Ok(())
    }

    /// Logs the changes since the last call.
    fn say_news(&mut self) {
        let now = Instant::now();
        if let Some(groups) = &self.shared.cluster {
            self.shared.keys.db = groups.db();
        }
        // This call logs if the system's clock was set back.
        self.shared.keys.db.now();
        let [for_room, for_sync] = &mut self.waits;
        let news = [self.shared.counters.writes.news(), for_room.news(now), for_sync.news(now)];
        for news in news.into_iter().chain(self.shared.counters.refused.news(now)).flatten() {
            tracing::warn!("{news}");
        }
    }

    fn is_over(&self) -> bool {
        self.end_by.is_some_and(|end| Instant::now() >= end || self.connections.is_empty())
    }

    /// Accepts all waiting clients, and connections of Prometheus.
    fn accept(&mut self) {
        if !std::mem::take(&mut self.may_accept) {
            return;
        }
        while let Some(stream) = self.accept_from(|listeners| listeners.clients.accept(listeners.tls.as_ref())) {
            self.add_client(stream);
        }
        let of_metrics = |listeners: &Listeners| {
            listeners.metrics.as_ref().map_or(Err(ErrorKind::WouldBlock.into()), |metrics| metrics.accept(None))
        };
        while let Some(stream) = self.accept_from(of_metrics) {
            // Further connections are closed: Prometheus does not need more.
            if self.of_metrics < MOST_OF_METRICS {
                self.last_number += 1;
                self.of_metrics += 1;
                self.add(Connection::of_metrics(stream, self.last_number, &self.shared, Instant::now()));
            }
        }
    }

    /// Accepts the next waiting connection.
    fn accept_from(&self, accept: impl Fn(&Listeners) -> io::Result<Box<dyn Stream>>) -> Option<Box<dyn Stream>> {
        let listeners = self.listeners.as_ref()?;
        loop {
            match accept(listeners) {
                Ok(stream) => return Some(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => {
                    // For example, there are no free file handles. The next tick tries again.
                    tracing::warn!(%error, "could not accept a client");
                    return None;
                }
            }
        }
    }

    fn add_client(&mut self, mut stream: Box<dyn Stream>) {
        self.shared.counters.connections += 1;
        let most = self.shared.settings.limits.clients;
        if self.shared.counters.clients >= most {
            let why = format_args!("there are already {most} clients");
            self.shared.counters.refused.note(Cause::Clients, &stream.addresses()[0], why);
            // A new socket always accepts these few bytes at once. During the TLS handshake these bytes would not be a valid record.
            if !stream.is_handshaking() {
                stream.write_all(b"-ERR max number of clients reached\r\n").ok();
            }
            return;
        }
        stream.prepare();
        self.last_number += 1;
        self.shared.counters.clients += 1;
        let connection = Connection::new(stream, self.last_number, &mut self.shared, Instant::now());
        self.add(connection);
    }

    fn add(&mut self, mut connection: Connection) {
        let (token, interest) = (Token(connection.number), Interest::READABLE | Interest::WRITABLE);
        if let Err(error) = self.poll.registry().register(connection.source(), token, interest) {
            tracing::warn!(%error, "could not watch a client");
            connection.close();
        }
        enqueue(&mut self.queue, &mut connection);
        self.connections.insert(connection.number, connection);
    }

    /// Passes the replies of finished jobs to the waiting clients.
    fn finish_jobs(&mut self) -> Result<()> {
        while let Some(((job, client), outcome)) = self.threads.jobs.next_done()? {
            if let Job::Create(_) = job {
                let refusal = outcome.err().and_then(|refusal| refusal.cause().cloned());
                self.wake(client, |connection| connection.resume(refusal));
                continue;
            }
            let reply = self.shared.end_job(&job, outcome);
            if let (Reply::Error(error), None) = (&reply, client) {
                tracing::error!(error, "could not do what nobody waits for");
            }
            self.wake(client, |connection| connection.job_done(&reply));
        }
        Ok(())
    }

    /// Passes the replies of groups to the waiting clients.
    fn finish_groups(&mut self) {
        let most = self.shared.settings.limits.buffer_bytes;
        // Above the limit on buffers, the remaining replies wait until the client with the most memory was disconnected.
        while self.shared.counters.buffer_bytes <= most
            && let Some((client, replies)) = self.answers.next()
        {
            if let Some(connection) = self.connections.get_mut(&client) {
                connection.answered(&mut self.shared, replies);
                connection.count_into(&mut self.shared.counters.buffer_bytes);
                enqueue(&mut self.queue, connection);
            }
        }
    }

    /// Carries out the held writes again, or refuses them, once a thread has waited for their room.
    fn resume_held(&mut self) -> Result<()> {
        if let Some(waited) = self.threads.room.next_done()? {
            self.waits[0].end(Instant::now());
            let refusal = waited.err();
            // Held clients come before the others, in the order in which they were held: the room is for the batch of the first one.
            let others = std::mem::take(&mut self.queue);
            for client in std::mem::take(&mut self.held) {
                self.wake(Some(client), |connection| connection.resume(refusal.clone()));
            }
            self.queue.extend(others);
        }
        Ok(())
    }

    /// Passes an event, or the result of the awaited work, to a client, if it is still connected.
    fn wake(&mut self, client: Option<Client>, tell: impl FnOnce(&mut Connection)) {
        if let Some(connection) = client.and_then(|client| self.connections.get_mut(&client)) {
            tell(connection);
            enqueue(&mut self.queue, connection);
        }
    }

    /// Gives each client in the queue its turn, and then begins a sync or sends the replies.
    fn turn(&mut self, buffer: &mut [u8]) {
        let now = Instant::now();
        let mut turn = std::mem::take(&mut self.queue);
        let most = self.shared.settings.limits.buffer_bytes;
        let mut served = 0;
        // Above the limit on buffers, the remaining clients wait until the one with the most memory was disconnected.
        while served < turn.len() && self.shared.counters.buffer_bytes <= most {
            let client = turn[served];
            served += 1;
            let Some(connection) = self.connections.get_mut(&client) else { continue };
            connection.is_queued = false;
            match connection.turn(&mut self.shared, buffer, now) {
                Some(Work::Job(job)) => self.threads.jobs.begin((job, Some(client))),
                Some(Work::Groups(requests)) => {
                    if let Some(groups) = &self.shared.cluster {
                        groups.begin(requests, self.answers.to(client));
                    }
                }
                Some(Work::Room(batch)) => {
                    // The others try again when there is room for the first one's batch.
                    if self.held.is_empty() {
                        self.waits[0].begin(now);
                        self.threads.room.begin(batch);
                    }
                    self.held.push(client);
                }
                None => {}
            }
            connection.count_into(&mut self.shared.counters.buffer_bytes);
        }
        self.queue.extend(turn.drain(served..));
        self.disconnect_killed();
        for job in self.shared.background.drain(..) {
            self.threads.jobs.begin((job, None));
        }
        if self.shared.syncs.are_needed() {
            self.shared.syncs.begin();
            self.threads.syncs.begin(());
            self.waits[1].begin(now);
            self.syncing = Some(turn);
        } else {
            self.send(turn, None);
        }
    }

    /// If the sync is done, sends the replies that have waited for it; if it failed, sends errors in their place.
    fn end_sync(&mut self) -> Result<()> {
        let Some(synced) = self.threads.syncs.next_done()? else { return Ok(()) };
        self.waits[1].end(Instant::now());
        let failed = synced.err().map(|error| {
            let text = format!("IOERR cannot sync, whether the write survives is not known: {error}");
            Reply::Error(text.replace(['\r', '\n'], " "))
        });
        let turn = self.syncing.take().unwrap_or_default();
        self.send(turn, failed.as_ref());
        Ok(())
    }

    /// Ends the turn of these clients, and sends their replies.
    fn send(&mut self, turn: Vec<Client>, failed: Option<&Reply>) {
        let now = Instant::now();
        for client in turn {
            let Some(connection) = self.connections.get_mut(&client) else { continue };
            if let Some(error) = failed {
                connection.take_back(error);
            }
            self.shared.counters.sent_bytes += connection.send(now) as u64;
            connection.count_into(&mut self.shared.counters.buffer_bytes);
            if connection.has_work(self.shared.may_read_ahead()) {
                enqueue(&mut self.queue, connection);
            }
            if connection.is_closed() {
                self.remove(client);
            }
        }
        self.show_monitors(now);
        let counters = &mut self.shared.counters;
        counters.most_buffer_bytes = counters.most_buffer_bytes.max(counters.buffer_bytes);
        self.bound_buffers();
    }

    /// Sends the requests of this turn to the clients that have sent MONITOR.
    fn show_monitors(&mut self, now: Instant) {
        let requests = self.shared.clients.monitors.take_lines();
        if requests.is_empty() {
            return;
        }
        self.for_all(|connection, shared, _| {
            if shared.clients.monitors.contains(connection.id()) {
                connection.show(&requests, &mut shared.counters.refused);
                shared.counters.sent_bytes += connection.send(now) as u64;
                connection.count_into(&mut shared.counters.buffer_bytes);
            }
        });
    }

    /// Calls `act` with each connection, and removes those that are closed.
    fn for_all(&mut self, mut act: impl FnMut(&mut Connection, &mut Shared, &mut Vec<Client>)) {
        for connection in self.connections.values_mut() {
            act(connection, &mut self.shared, &mut self.queue);
        }
        let closed = self.connections.values().filter(|connection| connection.is_closed());
        let closed: Vec<Client> = closed.map(|connection| connection.number).collect();
        closed.into_iter().for_each(|client| self.remove(client));
    }

    /// Closes the connections of the clients that CLIENT KILL has named in this turn.
    fn disconnect_killed(&mut self) {
        let killed = std::mem::take(&mut self.shared.clients.killed);
        if killed.is_empty() {
            return;
        }
        self.for_all(|connection, _, _| {
            if !connection.is_of_metrics && killed.contains(&connection.id()) {
                connection.close();
            }
        });
    }

    /// Disconnects the clients with the most memory until all clients together are within the limit.
    fn bound_buffers(&mut self) {
        while self.shared.counters.buffer_bytes > self.shared.settings.limits.buffer_bytes {
            let largest = self.connections.values().max_by_key(|connection| connection.counted);
            let Some(connection) = largest else { return };
            let (client, own, all) = (connection.number, connection.counted, self.shared.counters.buffer_bytes);
            let why = format_args!("the clients had {all} bytes of requests and replies, and it {own} of them");
            self.shared.counters.refused.note(Cause::Buffers, &connection.address(), why);
            self.remove(client);
        }
    }

    fn remove(&mut self, client: Client) {
        if let Some(mut connection) = self.connections.remove(&client) {
            // If this fails, the socket is still no longer watched, because it is closed.
            self.poll.registry().deregister(connection.source()).ok();
            if connection.is_of_metrics {
                self.of_metrics -= 1;
            } else {
                self.shared.counters.clients -= 1;
                self.shared.clients.remove(connection.id());
            }
            self.shared.counters.buffer_bytes -= connection.counted;
            self.queue.retain(|&queued| queued != client);
        }
    }

    fn tick(&mut self) {
        let now = Instant::now();
        if now < self.next_tick {
            return;
        }
        let commands = self.shared.counters.commands;
        let took = (now + TICK - self.next_tick).as_secs_f64();
        self.shared.counters.commands_per_second =
            (commands.saturating_sub(self.commands_at_tick) as f64 / took) as u64;
        self.commands_at_tick = commands;
        self.next_tick = now + TICK;
        self.say_news();
        // Accepting may have failed for lack of resources, which are free again now.
        self.may_accept = true;
        self.for_all(|connection, shared, queue| {
            connection.check_time(now, shared.settings.limits.idle_seconds, &mut shared.counters.refused);
            if connection.has_work(shared.may_read_ahead()) {
                // There was no memory to read ahead, and other clients have freed some.
                enqueue(queue, connection);
            }
        });
    }

    /// Stops accepting connections and reading input.
    fn begin_end(&mut self) {
        self.end_by = Some(Instant::now() + DRAIN);
        if let Some(mut listeners) = self.listeners.take() {
            self.poll.registry().deregister(listeners.clients.source()).ok();
        }
        self.for_all(|connection, _, queue| {
            connection.end();
            enqueue(queue, connection);
        });
    }
}

fn enqueue(queue: &mut Vec<Client>, connection: &mut Connection) {
    if !connection.is_queued {
        connection.is_queued = true;
        queue.push(connection.number);
    }
}
