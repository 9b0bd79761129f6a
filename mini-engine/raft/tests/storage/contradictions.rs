//! Calls that contradict what is committed, applied or voted for: other nodes have lost what they had acknowledged.

use std::fmt::Display;
use std::io::{ErrorKind, Result};

use openraft::storage::{IOFlushed, RaftLogStorage, RaftStateMachine};
use proof::disk::MemFs;

use crate::snapshots::{DIR, chunks, receive, snapshot};
use crate::support::{
    Log, Vote, append, apply, indexes, log_id, open_log, open_machine, run, set, sets, try_apply, vote,
};

/// The error names both ids, and what to do.
#[track_caller]
fn refused<T>(outcome: Result<T>, new: impl Display, settled: impl Display) {
    let error = outcome.err().expect("an error");
    let said = error.to_string();
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{said}");
    assert!(said.contains(&format!(" {new} contradicts {settled}, ")) && said.contains("empty directory"), "{said}");
}

/// Appends ten entries; the first three are purged, the next five committed.
async fn settle(log: &mut Log, vote: Vote) {
    append(log, sets(1, 0..10, "x")).await;
    log.save_vote(&vote).await.unwrap();
    log.save_committed(Some(log_id(1, 7))).await.unwrap();
    log.purge(log_id(1, 2)).await.unwrap();
}

#[test]
fn a_call_that_contradicts_the_log_is_refused_and_changes_nothing() {
    // Catches a follower that cuts off or overwrites committed entries, because another node lost them and was elected; and a second vote in a term.
    let fs = MemFs::default();
    let (mut logs, mut log) = open_log(&fs);
    run(settle(&mut log, Vote::new(3, 2)));
    for _ in 0..2 {
        run(async {
            refused(log.truncate_after(Some(log_id(1, 6))).await, log_id(1, 6), log_id(1, 7));
            refused(log.truncate_after(None).await, log_id(1, 2), log_id(1, 7));
            refused(log.save_committed(Some(log_id(2, 5))).await, log_id(2, 5), log_id(1, 7));
            refused(log.save_committed(None).await, "nothing", log_id(1, 7));
            refused(log.append([set(0, 10, "x")], IOFlushed::noop()).await, log_id(0, 10), log_id(1, 9));
            for wrong in [log_id(2, 7), log_id(0, 9)] {
                refused(log.purge(wrong).await, wrong, log_id(1, 7));
            }
            for other in [Vote::new(3, 1), Vote::new_committed(2, 9)] {
                refused(log.save_vote(&other).await, other, Vote::new(3, 2));
            }
            assert_eq!(indexes(&mut log).await, (3..10).collect::<Vec<_>>());
            assert_eq!(vote(&mut log).await, Some(Vote::new(3, 2)));
        });
        drop((log, logs));
        (logs, log) = open_log(&fs);
    }
    run(log.truncate_after(Some(log_id(1, 7)))).unwrap();
    run(append(&mut log, [set(3, 8, "y")]));
}

#[test]
fn a_leaders_message_is_compared_with_the_committed_entries() {
    // Catches a follower that takes other entries for those that it has committed, as openraft does. A message of a deposed leader is no damage.
    let (_logs, mut log) = open_log(&MemFs::default());
    run(async {
        settle(&mut log, Vote::new_committed(3, 2)).await;
        let reader = log.get_log_reader().await;
        let check = |term, ids: &[_]| reader.check(&Vote::new_committed(term, 2), ids.iter().copied());
        for (found, stored) in [(log_id(2, 5), log_id(1, 5)), (log_id(2, 7), log_id(1, 7))] {
            refused(check(3, &[log_id(1, 3), found]), found, stored);
            refused(check(4, &[found, log_id(2, 8)]), found, stored);
            check(2, &[found]).unwrap();
        }
        for agrees in
            [&[log_id(1, 6), log_id(1, 7), log_id(2, 8)][..], &[log_id(1, 5)], &[log_id(2, 9)], &[log_id(1, 1)], &[]]
        {
            check(3, agrees).unwrap();
        }
    });
}

#[test]
fn the_log_does_not_contradict_the_state() {
    // Catches a truncation of entries that were applied, after a power cut took the record that they are committed; and a log that was put back alone.
    let (_logs, mut log) = open_log(&MemFs::default());
    run(async {
        append(&mut log, sets(2, 0..10, "x")).await;
        refused(log.settle(Some(log_id(1, 8))), log_id(2, 8), log_id(1, 8));
        log.settle(None).unwrap();
        log.settle(Some(log_id(2, 8))).unwrap();
        refused(log.truncate_after(Some(log_id(2, 7))).await, log_id(2, 7), log_id(2, 8));
        log.settle(Some(log_id(3, 20))).unwrap();
    });
}

#[test]
fn the_state_takes_only_what_follows_the_applied_entries() {
    // Catches an entry or a snapshot that replaces applied entries.
    let mut machine = open_machine(&MemFs::default(), DIR);
    let mut other = open_machine(&MemFs::default(), DIR);
    run(async {
        apply(&mut machine, sets(1, 0..4, "x")).await;
        for wrong in [set(2, 2, "y"), set(1, 3, "y"), set(0, 4, "y")] {
            refused(try_apply(&mut machine, [wrong.clone()]).await, wrong.log_id, log_id(1, 3));
        }
        apply(&mut other, sets(2, 0..3, "y")).await;
        let sent = snapshot(&mut other).await;
        let received = receive(&machine.state(), &chunks(&sent.snapshot)).unwrap();
        refused(machine.install_snapshot(&received.meta, received.snapshot).await, log_id(2, 2), log_id(1, 3));
        assert_eq!(machine.applied_state().await.unwrap().0, Some(log_id(1, 3)));
        assert_eq!(machine.state().db().get("key2").unwrap().as_deref(), Some(&b"x"[..]));
        apply(&mut machine, [set(2, 4, "y")]).await;
    });
}
