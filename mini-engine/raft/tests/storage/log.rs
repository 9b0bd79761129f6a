//! The behaviour of the log: holes, groups, limits, purges.

use std::io::ErrorKind;

use futures_util::StreamExt;
use openraft::storage::{IOFlushed, LogState, RaftLogStorage};
use openraft::{LogIdOptionExt, RaftLogReader};
use openraft_mini_engine::Logs;
use proof::disk::MemFs;

use crate::support::{
    Log, TypeConfig, Vote, append, append_soon, entries, indexes, indexes_of, log_id, open_log, run, set, sets, state,
    vote,
};

fn groups<const N: usize>(logs: &Logs, numbers: [u32; N]) -> [Log; N] {
    numbers.map(|group| logs.group(group).unwrap())
}

#[test]
fn an_append_that_would_leave_a_hole_or_overwrite_is_refused_and_changes_nothing() {
    // Catches a log in which a later read finds a gap, and an entry that is replaced without a truncation.
    let fs = MemFs::default();
    let (_logs, mut log) = open_log(&fs);
    run(async {
        append(&mut log, [set(1, 5, "a"), set(1, 6, "b")]).await;
        for wrong in [vec![set(1, 8, "c")], vec![set(1, 6, "c")], vec![set(1, 7, "c"), set(1, 9, "c")]] {
            let error = log.append(wrong, IOFlushed::noop()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        }
        assert_eq!(indexes(&mut log).await, [5, 6]);
        append(&mut log, [set(1, 7, "c")]).await;
        assert_eq!(state(&mut log).await.last_log_id, Some(log_id(1, 7)));
    });
}

#[test]
fn a_group_that_was_removed_begins_anew_and_the_others_keep_what_they_have() {
    // Catches a removed group's entry that comes back, a vote that does not, a purge that removes later entries, and lost entries of a neighbour.
    let fs = MemFs::default();
    let (logs, mut log) = open_log(&fs);
    let mut others = groups(&logs, [1, 2]);
    run(async {
        for log in others.iter_mut().chain([&mut log]) {
            // Large enough that the thread removes the purged entries.
            append(log, sets(1, 0..1000, &"v".repeat(10_000))).await;
            log.save_vote(&Vote::new(7, 1)).await.unwrap();
        }
        others[0].purge(log_id(1, 989)).await.unwrap();
    });
    assert_eq!(logs.remove_group(1).unwrap_err().kind(), ErrorKind::AlreadyExists);
    let [removed, kept] = others;
    drop(removed);
    logs.remove_group(1).unwrap();
    logs.remove_group(1).unwrap();
    let mut anew = logs.group::<TypeConfig>(1).unwrap();
    run(async {
        assert_eq!((vote(&mut anew).await, state(&mut anew).await.last_log_id), (Some(Vote::new(7, 1)), None));
        append(&mut anew, [set(2, 0, "a"), set(2, 1, "b")]).await;
    });
    drop((anew, log, kept));
    logs.close().unwrap();
    let (logs, mut log) = open_log(&fs);
    let [mut anew, mut kept] = groups(&logs, [1, 2]);
    run(async {
        assert_eq!(indexes(&mut anew).await, [0, 1]);
        for log in [&mut log, &mut kept] {
            assert_eq!((vote(log).await, indexes(log).await.len()), (Some(Vote::new(7, 1)), 1000));
        }
    });
}

#[test]
fn groups_in_one_database_do_not_meet() {
    // Catches a read, a truncation or a purge that reaches the entries of a neighbour.
    let fs = MemFs::default();
    let (logs, mut log) = open_log(&fs);
    let mut others = groups(&logs, [1, 256, u32::MAX]);
    assert_eq!(logs.group::<TypeConfig>(1).unwrap_err().kind(), ErrorKind::AlreadyExists);
    run(async {
        for (number, other) in others.iter_mut().chain([&mut log]).enumerate() {
            append_soon(other, sets(1, 0..10, &number.to_string())).await;
            other.save_vote(&Vote::new(number as u64, 1)).await.unwrap();
        }
        log.purge(log_id(1, 9)).await.unwrap();
        others[1].truncate_after(None).await.unwrap();
        others[2].purge(log_id(1, 4)).await.unwrap();
        others[2].truncate_after(Some(log_id(1, 7))).await.unwrap();
    });
    drop((log, others, logs));
    let (logs, mut log) = open_log(&fs);
    let mut others = groups(&logs, [1, 256, u32::MAX]);
    run(async {
        assert_eq!(indexes(&mut log).await, [0; 0]);
        assert_eq!(entries(&mut others[0]).await, sets(1, 0..10, "0"));
        assert_eq!(indexes(&mut others[1]).await, [0; 0]);
        assert_eq!(indexes(&mut others[2]).await, [5, 6, 7]);
        assert_eq!(vote(&mut others[2]).await, Some(Vote::new(2, 1)));
    });
}

#[test]
fn a_group_can_be_opened_again_once_its_store_is_dropped() {
    // Catches a node that cannot be restarted in the same process.
    let (logs, log) = open_log(&MemFs::default());
    drop(log);
    assert!(logs.group::<TypeConfig>(0).is_ok());
}

#[test]
fn a_read_for_a_message_ends_after_a_mebibyte_but_has_at_least_one_entry() {
    // Catches a lagging follower for which the leader reads its whole log into memory, and a follower that never gets a large entry.
    let (_logs, mut log) = open_log(&MemFs::default());
    run(async {
        append_soon(&mut log, sets(1, 0..100, &"x".repeat(100_000))).await;
        append_soon(&mut log, [set(1, 100, "x".repeat(3 << 20))]).await;
        let mut reader = log.get_log_reader().await;
        let mut read = async |from| indexes_of(&reader.limited_get_log_entries(from, 101).await.unwrap());
        assert_eq!(read(20).await, (20..31).collect::<Vec<_>>());
        assert_eq!(read(98).await, [98, 99, 100]);
        assert_eq!(read(100).await, [100]);
    });
}

#[test]
fn entries_of_a_stream_are_those_of_its_beginning() {
    // Catches a stream that is affected by a truncation, a purge or an append during its read.
    let (_logs, mut log) = open_log(&MemFs::default());
    run(async {
        append_soon(&mut log, sets(1, 0..10, "old")).await;
        let mut reader = log.get_log_reader().await;
        let mut stream = Box::pin(reader.entries_stream(2..).await);
        assert_eq!(stream.next().await.unwrap().unwrap(), set(1, 2, "old"));
        log.truncate_after(Some(log_id(1, 5))).await.unwrap();
        append_soon(&mut log, sets(2, 6..12, "new")).await;
        log.purge(log_id(1, 4)).await.unwrap();
        let rest: Vec<_> = stream.map(Result::unwrap).collect().await;
        assert_eq!(rest, sets(1, 3..10, "old"));
        assert_eq!(indexes(&mut log).await, (5..12).collect::<Vec<_>>());
        assert_eq!(entries(&mut log).await[1], set(2, 6, "new"));
    });
}

#[test]
fn a_truncated_log_goes_on_where_it_was_cut() {
    // Catches truncated entries that return, at once or after an open, and a last log id that is not that of the last entry.
    let fs = MemFs::default();
    let (logs, mut log) = open_log(&fs);
    run(async {
        append_soon(&mut log, sets(1, 0..10, "old")).await;
        log.truncate_after(Some(log_id(1, 20))).await.unwrap();
        assert_eq!(state(&mut log).await.last_log_id.index(), Some(9));
        log.truncate_after(Some(log_id(1, 5))).await.unwrap();
        append_soon(&mut log, [set(2, 6, "new")]).await;
        log.purge(log_id(1, 2)).await.unwrap();
        log.truncate_after(Some(log_id(1, 1))).await.unwrap();
        let empty = LogState { last_purged_log_id: Some(log_id(1, 2)), last_log_id: Some(log_id(1, 2)) };
        assert_eq!(state(&mut log).await, empty);
        append_soon(&mut log, [set(3, 3, "newest")]).await;
    });
    drop((logs, log));
    let (_logs, mut log) = open_log(&fs);
    assert_eq!(run(entries(&mut log)), [set(3, 3, "newest")]);
}

#[test]
fn what_was_purged_stays_purged_and_is_read_by_nobody() {
    // Catches purged entries that return after an open because they are not removed yet, and a purge that moves back.
    let fs = MemFs::default();
    let (logs, mut log) = open_log(&fs);
    run(async {
        append_soon(&mut log, sets(1, 0..10, "x")).await;
        let mut reader = log.get_log_reader().await;
        log.purge(log_id(1, 6)).await.unwrap();
        log.purge(log_id(1, 3)).await.unwrap();
        assert_eq!(indexes_of(&reader.try_get_log_entries(0..9).await.unwrap()), [7, 8]);
    });
    drop((logs, log));
    let (_logs, mut log) = open_log(&fs);
    run(async {
        assert_eq!(indexes(&mut log).await, [7, 8, 9]);
        assert_eq!(state(&mut log).await.last_purged_log_id, Some(log_id(1, 6)));
    });
}

#[test]
fn a_log_of_another_application_is_refused_by_name() {
    // Catches a request that is decoded as another type.
    let fs = MemFs::default();
    let (logs, mut log) = open_log(&fs);
    run(append(&mut log, [set(1, 0, "x")]));
    drop(log);
    let error = logs.group::<OtherApp>(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    assert!(error.to_string().contains("log entry 0 of group 0"), "{error}");
}

openraft::declare_raft_types!(OtherApp: D = u8, R = (), AsyncRuntime = openraft_rt_tokio::TokioRuntime);
