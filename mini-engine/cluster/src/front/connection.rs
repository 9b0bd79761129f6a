//! One client's connection.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::future::join_all;
use mini_engine_server::replicated::{Cause, Conversation, Request, Watched, Write};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::sync::watch;
use tokio::task::block_in_place;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout, timeout_at};

use super::budget::Share;
use super::cluster_command;
use super::house::{House, stopped};
use super::turn::{Held, Read, Source, Turn};
use crate::group::{Group, Refused};
use crate::wire::frames::Socket;

/// Bytes that are read at once.
const INPUT_BYTES: usize = 16 << 10;
/// Replies of so many bytes are sent before more are made.
const ENOUGH_REPLIES: usize = 1 << 20;
/// Buffers that are larger are not kept for the next requests.
const KEPT_BYTES: usize = 64 << 10;
/// A client that takes none of its replies for so long is disconnected.
const STUCK: Duration = Duration::from_secs(60);
/// A database that is replaced by a snapshot at this very moment is asked for again, but not without end.
const TRIES: usize = 10;

pub(super) struct Connection {
    house: Arc<House>,
    /// As it is shown.
    address: String,
    reader: ReadHalf<Box<dyn Socket>>,
    writer: WriteHalf<Box<dyn Socket>>,
    conversation: Conversation,
    input: BytesMut,
    held: Held,
    out: Vec<u8>,
    share: Share,
}

impl Connection {
    /// Serves a client until it goes, or `stop` says so.
    pub(super) async fn run(
        house: Arc<House>,
        socket: Box<dyn Socket>,
        addresses: [String; 2],
        mut stop: watch::Receiver<bool>,
    ) -> Result<()> {
        let (reader, writer) = split(socket);
        let mut connection = Connection {
            address: addresses[0].clone(),
            reader,
            writer,
            conversation: Conversation::new(&house.front, addresses),
            share: house.budget.share(),
            house,
            input: BytesMut::new(),
            held: Held::default(),
            out: Vec::new(),
        };
        let served = connection.serve(&mut stop).await;
        connection.conversation.end(&connection.house.front);
        served
    }

    async fn serve(&mut self, stop: &mut watch::Receiver<bool>) -> Result<()> {
        loop {
            let mut source = Source {
                groups: &self.house.groups,
                front: &self.house.front,
                conversation: &mut self.conversation,
                input: &mut self.input,
                held: &mut self.held,
            };
            match source.turn(&mut self.out) {
                Turn::Input => {
                    let had = self.input.len();
                    self.flush().await?;
                    // What was read meanwhile may hold whole requests.
                    if self.input.len() == had && !self.read_input(stop).await? {
                        return Ok(());
                    }
                }
                Turn::Writes(writes) => {
                    // They are not in the input any more, and wait for the others' disks.
                    self.count(writes.iter().map(|(_, write)| write.size()).sum())?;
                    self.write(writes).await;
                }
                Turn::Reads(reads) => self.read(reads).await?,
                Turn::Watch { keys, slot } => self.watch(&keys, slot).await,
                Turn::Cluster(request) => {
                    let reply = cluster_command::reply(&self.house.groups, &request);
                    self.conversation.answer(&reply, &mut self.out);
                }
                // They are sent below.
                Turn::Enough => {}
                Turn::Close => return self.flush().await,
            }
            if self.out.len() >= ENOUGH_REPLIES {
                self.flush().await?;
            }
        }
    }

    /// Waits for more input. False at its end.
    async fn read_input(&mut self, stop: &mut watch::Receiver<bool>) -> Result<bool> {
        if self.input.is_empty() && self.input.capacity() > KEPT_BYTES {
            self.input = BytesMut::new();
        }
        self.input.reserve(INPUT_BYTES);
        let read = self.reader.read_buf(&mut self.input);
        let read = async {
            match self.house.idle {
                Some(idle) => timeout(idle, read).await.inspect_err(|_| {
                    self.house.front.note(Cause::Idle, &self.address, "it sent nothing");
                })?,
                None => read.await,
            }
        };
        let len = tokio::select! {
            len = read => len?,
            () = stopped(stop) => 0,
        };
        self.count(0)?;
        Ok(len > 0)
    }

    /// Sends the replies. Meanwhile it reads requests: a client may send all of a pipeline before it reads a reply.
    async fn flush(&mut self) -> Result<()> {
        self.count(0)?;
        let (mut sent, mut progress, mut is_at_end) = (0, Instant::now(), false);
        while sent < self.out.len() {
            let may_read = !is_at_end && self.share.is_below(self.house.read_ahead_bytes);
            self.input.reserve(if may_read { INPUT_BYTES } else { 0 });
            tokio::select! {
                biased;
                written = timeout_at(progress + STUCK, self.writer.write(&self.out[sent..])) => {
                    let len = self.in_time(written)??;
                    if len == 0 {
                        return Err(ErrorKind::WriteZero.into());
                    }
                    (sent, progress) = (sent + len, Instant::now());
                }
                read = self.reader.read_buf(&mut self.input), if may_read => {
                    is_at_end = read? == 0;
                    self.count(0)?;
                }
            }
        }
        let flushed = timeout(STUCK, self.writer.flush()).await;
        self.in_time(flushed)??;
        self.out.clear();
        self.out.shrink_to(KEPT_BYTES);
        self.count(0)
    }

    fn in_time<T>(&self, sent: std::result::Result<T, Elapsed>) -> Result<T> {
        sent.map_err(|elapsed| {
            let why = format_args!("it took none of its replies for {} s", STUCK.as_secs());
            self.house.front.note(Cause::Slow, &self.address, why);
            elapsed.into()
        })
    }

    /// Fails if all clients together have too many bytes, and this one has many: its buffers, and `more`.
    fn count(&mut self, more: usize) -> Result<()> {
        let own = self.input.capacity() + self.out.capacity() + self.conversation.size() + more;
        if self.share.set(own) {
            return Ok(());
        }
        let why = format!("all clients had too many bytes of requests and replies, and it {own} of them");
        self.house.front.note(Cause::Buffers, &self.address, &why);
        Err(Error::new(ErrorKind::OutOfMemory, why))
    }

    /// Passes writes to their groups, each group's together, and appends the replies.
    async fn write(&mut self, writes: Vec<(u16, Write)>) {
        let (mut of_groups, mut order) = (BTreeMap::<u32, Vec<Write>>::new(), Vec::with_capacity(writes.len()));
        for (slot, write) in writes {
            let group = self.house.groups.of_slot(slot);
            order.push((slot, group));
            of_groups.entry(group).or_default().push(write);
        }
        let written = of_groups.into_iter().map(async |(group, writes)| {
            let written = match self.house.groups.get(group) {
                Some(group) => group.write(writes).await,
                None => Err(Refused::NotLeader(None)),
            };
            (group, written.map(Vec::into_iter))
        });
        let mut written: BTreeMap<_, _> = join_all(written).await.into_iter().collect();
        for (slot, group) in order {
            match written.get_mut(&group) {
                Some(Ok(replies)) => match replies.next() {
                    Some(reply) => self.out.extend(reply),
                    None => self.conversation.refuse("UNCERTAIN a reply of the group is missing", &mut self.out),
                },
                Some(Err(refused)) => self.conversation.refuse(&refused.text(slot), &mut self.out),
                None => self.conversation.refuse(&Refused::NotLeader(None).text(slot), &mut self.out),
            }
        }
    }

    /// Carries out reads behind one barrier for each of their groups.
    async fn read(&mut self, reads: Vec<Read>) -> Result<()> {
        let house = Arc::clone(&self.house);
        // Reads that may be stale need none, also of a leader: without a majority they go on.
        let exact = reads.iter().filter(|read| !read.may_be_stale).map(|read| house.groups.of_slot(read.slot));
        let numbers = exact.collect::<BTreeSet<_>>().into_iter();
        let settled = join_all(numbers.map(async |number| (number, house.settled(number).await))).await;
        let settled: BTreeMap<_, _> = settled.into_iter().collect();
        for Read { request, slot, may_be_stale } in reads {
            let number = house.groups.of_slot(slot);
            let group = match settled.get(&number) {
                Some(settled) if !may_be_stale => settled.clone(),
                _ => house.groups.get(number).ok_or(Refused::NotLeader(None)),
            };
            match group {
                Ok(group) => self.read_one(&group, &request, slot),
                Err(refused) => self.conversation.refuse(&refused.text(slot), &mut self.out),
            }
            if self.out.len() >= ENOUGH_REPLIES {
                self.flush().await?;
            }
        }
        Ok(())
    }

    fn read_one(&mut self, group: &Group, request: &Request, slot: u16) {
        let begun = self.out.len();
        let mut read = || {
            let (front, out) = (&self.house.front, &mut self.out);
            group.read(|executor| with_present(group, |db| executor.read(front, db, request, out)))
        };
        let outcome = if takes_long(request) { block_in_place(read) } else { read() };
        if let Err(error) = outcome {
            self.out.truncate(begun);
            self.refuse_read(&error, slot);
        }
    }

    async fn watch(&mut self, keys: &[Vec<u8>], slot: u16) {
        let group = match self.house.settled(self.house.groups.of_slot(slot)).await {
            Ok(group) => group,
            Err(refused) => return self.conversation.refuse(&refused.text(slot), &mut self.out),
        };
        let watched: mini_engine::Result<Vec<Watched>> =
            group.read(|executor| with_present(&group, |db| executor.watch(db, keys)));
        match watched {
            Ok(watched) => self.conversation.watch(watched, &mut self.out),
            Err(error) => self.refuse_read(&error, slot),
        }
    }

    fn refuse_read(&mut self, error: &mini_engine::Error, slot: u16) {
        let text = match error {
            // The group has left this node.
            mini_engine::Error::Closed => Refused::NotLeader(None).text(slot),
            _ => format!("IOERR {error}"),
        };
        self.conversation.refuse(&text, &mut self.out);
    }
}

/// Does something with the group's database. If a snapshot replaces it meanwhile, with the new one.
fn with_present<T>(
    group: &Group,
    mut run: impl FnMut(&mini_engine::Db) -> mini_engine::Result<T>,
) -> mini_engine::Result<T> {
    for _ in 1..TRIES {
        match run(&group.db()) {
            Err(mini_engine::Error::Closed) => {}
            done => return done,
        }
    }
    run(&group.db())
}

/// Whether a request may read many keys, so that another thread should take over this one's other tasks.
fn takes_long(request: &Request) -> bool {
    const LONG: [&[u8]; 6] = [b"RANGE", b"PREFIX", b"KEYS", b"SCAN", b"DBSIZE", b"MGET"];
    request.parts().next().is_some_and(|name| LONG.iter().any(|long| name.eq_ignore_ascii_case(long)))
}
