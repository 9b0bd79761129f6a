//! The memory of large logs and snapshots, measured by a counting allocator. It is the only test of its program, so no other test allocates
//! meanwhile. Memtables are not counted, because their memory comes from the system; their size is an option.

#[path = "storage/support.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::sync::Arc;

use futures_util::StreamExt;
use mini_engine::fs::StdFs;
use mini_engine::{Compression, Options};
use openraft::storage::{IOFlushed, RaftLogStorage, RaftStateMachine};
use openraft::{RaftLogReader, RaftSnapshotBuilder};
use openraft_mini_engine::{Logs, StateMachine};
use peak_alloc::PeakAlloc;
use proof::Random;

use crate::support::{AnEntry, App, TypeConfig, run, set};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;
/// Bytes of all entries together, and the most that a step may take.
const DATA: usize = 64 * MIB;
const ALLOWED: usize = 16 * MIB;

/// An entry of 64 KiB that hardly compresses.
fn entry(index: u64) -> AnEntry {
    let mut random = Random(index);
    set(1, index, (0..64 << 10).map(|_| char::from(b'0' + random.below(64) as u8)).collect::<String>())
}

/// The peak of allocated bytes during `step`, without those allocated before it.
async fn peak<T>(what: &str, step: impl Future<Output = T>) -> T {
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let done = step.await;
    let bytes = ALLOCATED.peak_usage() - before;
    println!("{what}: {bytes} bytes");
    assert!(bytes <= ALLOWED, "{what}: {bytes} bytes, expected at most {ALLOWED}");
    done
}

fn options() -> Options {
    Options::default().memtable_bytes(4 * MIB).cache_bytes(MIB as u64).compression(Compression::None)
}

#[test]
fn memory_does_not_depend_on_the_length_of_a_log_or_the_size_of_a_snapshot() {
    // Catches entries that are all read before they are applied, one batch for all entries, and a snapshot that is held whole in memory.
    run(async {
        let dir = proof::TempDir::new().unwrap();
        let logs = Logs::open_with(dir.path().join("log"), options(), Arc::new(StdFs)).unwrap();
        let mut log = logs.group::<TypeConfig>(0).unwrap();
        let open = |name| StateMachine::open_with(dir.path().join(name), App, options(), Arc::new(StdFs)).unwrap();
        let (mut leader, mut follower) = (open("leader"), open("follower"));
        let entries = (DATA >> 16) as u64;
        let append = async {
            for index in 0..entries {
                log.append([entry(index)], IOFlushed::noop()).await.unwrap();
            }
        };
        peak("append", append).await;
        let mut reader = log.get_log_reader().await;
        let apply = async {
            let stream = reader.entries_stream(..).await.map(|entry| Ok((entry?, None)));
            leader.apply(Box::pin(stream)).await.unwrap();
        };
        peak("apply", apply).await;
        let build = async { leader.get_snapshot_builder().await.build_snapshot().await.unwrap() };
        let sent = peak("build", build).await;
        let mut received_bytes = 0;
        let transfer = async {
            let mut receiver = follower.state().receive().unwrap();
            for chunk in sent.snapshot.chunks(MIB).unwrap() {
                let chunk = chunk.unwrap();
                received_bytes += postcard::to_stdvec(&chunk).unwrap().len();
                receiver.write(&chunk).unwrap();
            }
            receiver.finish::<TypeConfig>().unwrap()
        };
        let received = peak("transfer", transfer).await;
        assert!(received_bytes > DATA);
        peak("install", follower.install_snapshot(&received.meta, received.snapshot)).await.unwrap();
        assert_eq!(follower.state().db().iter().count() as u64, entries + 1);
    });
}
