//! The transfer of snapshots: chunk after chunk, on a separate connection. Each side holds a few chunks in memory.

use std::io::{Error, ErrorKind, Result};
use std::time::Duration;

use openraft::type_config::alias::SnapshotOf;
use openraft_mini_engine::{Checkpoint, Chunk, State};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{interval, timeout};

use super::link::Link;
use crate::types::{SnapshotResponse, TypeConfig, Vote};
use crate::wire::control::ControlReply;
use crate::wire::frames::Frames;
use crate::wire::message::{Call, CallReply, Numbered, Part, only};

pub(crate) type Snapshot = SnapshotOf<TypeConfig, Checkpoint>;

const CHUNK_BYTES: usize = 1 << 20;
/// The number of chunks that were read or received and wait.
const CHUNKS_AHEAD: usize = 2;
/// The silence after which the other side counts as gone.
const SILENCE: Duration = Duration::from_secs(30);
/// The interval at which the receiver reports that it is still working.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);

/// Sends a snapshot to a node, which installs it.
pub(super) async fn send(link: &Link, group: u32, vote: Vote, snapshot: Checkpoint) -> Result<SnapshotResponse> {
    let mut frames = link.connect().await?;
    frames.send(&Numbered { number: 1, body: Call::Snapshot(group, vote) }).await?;
    send_parts(&mut frames, snapshot).await?;
    loop {
        let reply = timeout(SILENCE, frames.receive::<Numbered<CallReply>>()).await??.body;
        if !matches!(reply, CallReply::Working) {
            return reply.find(only!(CallReply::Snapshot));
        }
    }
}

/// Sends the parts of a snapshot.
pub(crate) async fn send_parts(frames: &mut Frames, snapshot: Checkpoint) -> Result<()> {
    let (sender, mut chunks) = mpsc::channel::<Result<Chunk>>(CHUNKS_AHEAD);
    spawn_blocking(move || read(&snapshot, &sender));
    while let Some(chunk) = chunks.recv().await {
        match chunk {
            Ok(chunk) => timeout(SILENCE, frames.send(&Part::Chunk(chunk))).await??,
            Err(error) => {
                timeout(SILENCE, frames.send(&Part::Failed(error.to_string()))).await??;
                return Err(error);
            }
        }
    }
    timeout(SILENCE, frames.send(&Part::End)).await?
}

/// Reads chunks until the receiver of the channel is dropped.
fn read(snapshot: &Checkpoint, to: &mpsc::Sender<Result<Chunk>>) {
    match snapshot.chunks(CHUNK_BYTES) {
        Ok(mut chunks) => while chunks.next().is_some_and(|chunk| to.blocking_send(chunk).is_ok()) {},
        Err(error) => drop(to.blocking_send(Err(error))),
    }
}

/// A snapshot of the group of `link` for a backup; `None` if the node does not lead the group. The inner result is that of storing and checking it here:
/// another attempt would not help.
pub(crate) async fn fetch(link: &Link, group: u32, state: State) -> Result<Option<Result<Snapshot>>> {
    let mut frames = link.connect().await?;
    frames.send(&Numbered { number: 1, body: Call::Backup(group) }).await?;
    match timeout(SILENCE, frames.receive::<Numbered<CallReply>>()).await??.body {
        CallReply::Working => Ok(Some(receive_parts(&mut frames, state).await?.await?)),
        CallReply::Control(ControlReply::NotLeader) => Ok(None),
        reply => reply.find(|_| None),
    }
}

/// Receives the parts of a snapshot, and checks the snapshot. `number` is the number of the call.
pub(crate) async fn receive(frames: &mut Frames, number: u64, state: State) -> Result<Snapshot> {
    let mut received = receive_parts(frames, state).await?;
    let mut signs = interval(SIGN_OF_LIFE);
    loop {
        tokio::select! {
            done = &mut received => return done?,
            _ = signs.tick() => timeout(SILENCE, frames.send(&Numbered { number, body: CallReply::Working })).await??,
        }
    }
}

/// Receives the parts of a snapshot. The returned task then checks the snapshot.
async fn receive_parts(frames: &mut Frames, state: State) -> Result<JoinHandle<Result<Snapshot>>> {
    let (sender, mut chunks) = mpsc::channel::<Part>(CHUNKS_AHEAD);
    let received = spawn_blocking(move || {
        let mut receiver = state.receive()?;
        loop {
            match chunks.blocking_recv() {
                Some(Part::Chunk(chunk)) => receiver.write(&chunk)?,
                Some(Part::End) => return receiver.finish::<TypeConfig>(),
                Some(Part::Failed(reason)) => return Err(Error::other(reason)),
                None => return Err(Error::new(ErrorKind::UnexpectedEof, "the sender of a snapshot has gone")),
            }
        }
    });
    loop {
        let part = timeout(SILENCE, frames.receive::<Part>()).await??;
        let is_last = !matches!(part, Part::Chunk(_));
        // If the receiver has failed, the task returns its error.
        if sender.send(part).await.is_err() || is_last {
            return Ok(received);
        }
    }
}
