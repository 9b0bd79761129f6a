//! Counts syncs: appends and votes that wait at the same time share one.

use std::sync::Arc;

use futures_util::FutureExt;
use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::type_config::TypeConfigExt;
use proof::disk::{Answer, FaultFs, MemFs, Op};

use crate::support::{Log, TypeConfig, Vote, append, indexes, open_log, run, set, vote};

/// Begins to append one entry. The future completes when the entry is durable.
async fn begin(log: &mut Log, index: u64) -> impl Future<Output = std::io::Result<()>> + use<> {
    let (sender, receiver) = TypeConfig::oneshot();
    log.append([set(1, index, "x")], IOFlushed::signal(sender)).await.unwrap();
    receiver.map(Result::unwrap)
}

#[test]
fn appends_in_flight_share_a_sync() {
    // Catches a sync for each append, and a callback before the sync that makes its append durable.
    for in_flight in [1, 16, 64] {
        let fs = FaultFs::new(Arc::new(MemFs::default())).unmapped();
        let (logs, mut log) = open_log(&fs);
        let syncs = || logs.db().metrics().wal_syncs;
        run(async {
            append(&mut log, [set(1, 0, "x")]).await;
            let before = syncs();
            let (arrivals, go) = fs.hold(Op::Sync, ".log", Answer::Go);
            let first = begin(&mut log, 1).await;
            arrivals.recv().unwrap();
            // The device is busy, and these appends arrive meanwhile.
            let mut waiting = Vec::new();
            for index in 2..2 + in_flight {
                waiting.push(Box::pin(begin(&mut log, index).await));
            }
            assert_eq!(indexes(&mut log).await.len() as u64, 2 + in_flight, "readable at once");
            assert!(waiting.iter_mut().all(|durable| durable.now_or_never().is_none()));
            drop(go);
            first.await.unwrap();
            for durable in waiting {
                durable.await.unwrap();
            }
            assert_eq!(syncs() - before, 2, "one for the first append, one for {in_flight}");
        });
    }
}

#[test]
fn a_vote_shares_the_sync_of_the_appends_before_it() {
    // Catches a vote with a sync of its own, which every election would wait for, and a vote that is acknowledged before it is durable.
    let mem = MemFs::default();
    let fs = FaultFs::new(Arc::new(mem.clone())).unmapped();
    let (logs, mut log) = open_log(&fs);
    run(async {
        let (arrivals, go) = fs.hold(Op::Sync, ".log", Answer::Go);
        let first = begin(&mut log, 0).await;
        arrivals.recv().unwrap();
        let second = begin(&mut log, 1).await;
        let before = logs.db().metrics().wal_syncs;
        let vote = Vote::new(3, 1);
        let mut saved = Box::pin(log.save_vote(&vote));
        assert!(saved.as_mut().now_or_never().is_none(), "the device has not answered");
        drop(go);
        saved.await.unwrap();
        first.await.unwrap();
        second.await.unwrap();
        assert_eq!(logs.db().metrics().wal_syncs - before, 2);
    });
    for seed in 0..8 {
        let (_logs, mut log) = open_log(&MemFs::on(mem.disk().after_power_cut(seed).0));
        assert_eq!(run(vote(&mut log)), Some(Vote::new(3, 1)));
        assert_eq!(run(indexes(&mut log)), [0, 1]);
    }
}

#[test]
fn a_failed_sync_is_told_to_all_that_wait_and_to_every_later_call() {
    // Catches an append that is reported as durable after the device has failed, and a log that accepts more writes.
    let fs = FaultFs::new(Arc::new(MemFs::default())).unmapped();
    let (_logs, mut log) = open_log(&fs);
    run(async {
        let (arrivals, go) = fs.hold(Op::Sync, ".log", Answer::Fail(std::io::ErrorKind::TimedOut));
        let first = begin(&mut log, 0).await;
        arrivals.recv().unwrap();
        let second = begin(&mut log, 1).await;
        drop(go);
        assert!(first.await.is_err() && second.await.is_err());
        assert!(log.append([set(1, 2, "x")], IOFlushed::noop()).await.is_err());
        assert!(log.save_vote(&Vote::new(3, 1)).await.is_err());
    });
}
