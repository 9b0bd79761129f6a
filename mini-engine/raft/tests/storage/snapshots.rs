//! Snapshots that are made, sent, damaged in transfer, and installed; and the effects of entries on the state.

use std::io::{ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;

use mini_engine::Error;
use mini_engine::fs::{FileSystem, StdFs};
use openraft::entry::RaftEntry;
use openraft::storage::RaftStateMachine;
use openraft::type_config::alias::{SnapshotOf, StoredMembershipOf};
use openraft::{BasicNode, Entry, Membership, RaftSnapshotBuilder};
use openraft_mini_engine::{Checkpoint, Chunk, RESERVED, State, StoredState};
use proof::disk::MemFs;

use crate::support::{
    AnEntry, App, Machine, Request, TypeConfig, apply, count, log_id, number, open_machine, run, set, small,
};

pub(crate) const DIR: &str = "/node/machine";

fn membership(index: u64) -> AnEntry {
    let nodes = std::collections::BTreeMap::from([1, 2].map(|id| (id, BasicNode::new(format!("node {id}")))));
    Entry::new_membership(log_id(1, index), Membership::new(vec![[1, 2].into()], nodes).unwrap())
}

/// A machine with several tables, after `last + 1` entries; those from index 100 on are counts.
pub(crate) fn filled(fs: &Arc<dyn FileSystem>, last: u64) -> Machine {
    let mut machine = open_machine(fs, DIR);
    run(async {
        apply(&mut machine, [membership(0)]).await;
        apply(&mut machine, (1..100).map(|index| set(1, index, "v".repeat(2000)))).await;
        apply(&mut machine, (100..=last).map(count)).await;
    });
    machine
}

pub(crate) async fn snapshot(machine: &mut Machine) -> SnapshotOf<TypeConfig, Checkpoint> {
    machine.get_snapshot_builder().await.build_snapshot().await.unwrap()
}

pub(crate) fn chunks(snapshot: &Checkpoint) -> Vec<Chunk> {
    snapshot.chunks(3000).unwrap().map(Result::unwrap).collect()
}

pub(crate) fn receive(state: &State, chunks: &[Chunk]) -> Result<SnapshotOf<TypeConfig, Checkpoint>> {
    let mut receiver = state.receive()?;
    chunks.iter().try_for_each(|chunk| receiver.write(chunk))?;
    receiver.finish::<TypeConfig>()
}

fn memory() -> (MemFs, Arc<dyn FileSystem>) {
    let mem = MemFs::default();
    (mem.clone(), Arc::new(mem))
}

/// The names in the machine's directory.
fn names(mem: &MemFs) -> Vec<String> {
    let mut names: Vec<_> =
        mem.read_dir(Path::new(DIR)).unwrap().into_iter().map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_snapshot_that_was_sent_and_installed_is_the_state_of_its_sender() {
    // Catches a lost membership, log id or table, and a receiver that keeps its own older state.
    let ((_, leader_fs), (mem, fs)) = (memory(), memory());
    let mut leader = filled(&leader_fs, 120);
    let sent = run(snapshot(&mut leader));
    // Encodes and decodes each chunk, as a transport does.
    let sent_chunks = chunks(&sent.snapshot).into_iter().map(|chunk| {
        let bytes = postcard::to_stdvec(&chunk).unwrap();
        postcard::from_bytes(&bytes).unwrap()
    });
    let sent_chunks: Vec<Chunk> = sent_chunks.collect();
    assert!(sent_chunks.len() > 50);

    let mut follower = open_machine(&fs, DIR);
    run(apply(&mut follower, [set(1, 0, "mine"), set(1, 1, "mine")]));
    let state = follower.state();
    let old = state.db();
    let received = receive(&state, &sent_chunks).unwrap();
    assert_eq!(received.meta, sent.meta);
    assert_eq!(received.meta.last_log_id, Some(log_id(1, 120)));
    run(follower.install_snapshot(&received.meta, received.snapshot)).unwrap();

    let expected = (
        Some(log_id(1, 120)),
        StoredMembershipOf::<TypeConfig>::new(Some(log_id(1, 0)), membership(0).get_membership().unwrap()),
    );
    assert_eq!(run(follower.applied_state()).unwrap(), expected);
    assert_eq!(number(&state.db(), "count").unwrap(), 21);
    let contents = |state: &State| state.db().iter().map(mini_engine::Result::unwrap).collect::<Vec<_>>();
    assert_eq!(contents(&state), contents(&leader.state()));
    assert!(matches!(old.get("key1"), Err(Error::Closed)), "an old handle must not show an old value");
    run(apply(&mut follower, [count(121)]));
    drop((follower, state, old));
    assert_eq!(names(&mem), ["state-000001"]);
    let mut follower = open_machine(&fs, DIR);
    assert_eq!(run(follower.applied_state()).unwrap().0, Some(log_id(1, 121)));
    assert_eq!(number(&follower.state().db(), "count").unwrap(), 22);
}

#[test]
fn a_stored_state_is_copied_with_its_last_entries_and_stays_as_it_is() {
    // Catches a copy that lacks entries that are in no table yet, and a read that changes the directory.
    let (mem, fs) = memory();
    drop(filled(&fs, 120));
    let files = || {
        let mut names = mem.read_dir(&Path::new(DIR).join("state-000000")).unwrap();
        names.sort();
        names
    };
    let before = files();
    let open = |dir| StoredState::<TypeConfig>::open(dir, small(), Arc::clone(&fs)).unwrap();
    let stored = open(DIR).unwrap();
    assert_eq!(stored.meta().last_log_id, Some(log_id(1, 120)));
    stored.copy_to("/copy").unwrap();
    assert_eq!((files(), names(&mem)), (before, vec!["state-000000".to_owned()]));
    let mut copy = open_machine(&fs, "/copy");
    assert_eq!(run(copy.applied_state()).unwrap().0, Some(log_id(1, 120)));
    assert_eq!(number(&copy.state().db(), "count").unwrap(), 21);
    assert!(open("/nothing").is_none());
}

#[cfg(unix)]
#[test]
fn a_machine_whose_directory_is_moved_goes_on_in_it_beside_another_at_its_old_name() {
    // Catches snapshots that are received, installed and removed by absolute path, and so in a directory that another machine now uses.
    let place = proof::TempDir::new().unwrap();
    let [old, moved] = ["machine", "moved"].map(|name| place.path().join(name));
    let sent = run(snapshot(&mut filled(&memory().1, 120)));
    let fs: Arc<dyn FileSystem> = Arc::new(StdFs);
    let mut first = open_machine(&fs, &old);
    run(apply(&mut first, [set(1, 0, "first")]));
    std::fs::rename(&old, &moved).unwrap();
    let mut second = open_machine(&fs, &old);
    run(apply(&mut second, [set(1, 0, "second")]));
    let received = receive(&first.state(), &chunks(&sent.snapshot)).unwrap();
    assert_eq!(run(snapshot(&mut first)).meta.last_log_id, Some(log_id(1, 0)));
    run(first.install_snapshot(&received.meta, received.snapshot)).unwrap();
    drop((first, second));
    assert_eq!([&old, &moved].map(|dir| fs.read_dir(dir).unwrap()), [["state-000000"], ["state-000001"]]);
    assert_eq!(number(&open_machine(&fs, &moved).state().db(), "count").unwrap(), 21);
    assert_eq!(open_machine(&fs, &old).state().db().get("key0").unwrap().as_deref(), Some(&b"second"[..]));
}

#[test]
fn a_transfer_that_is_not_as_it_was_sent_is_refused_and_leaves_nothing() {
    // Catches a state made of damaged, lost, repeated or misplaced chunks, a write outside the directory, and leftovers of a failed transfer.
    let ((_, leader_fs), (mem, fs)) = (memory(), memory());
    let mut leader = filled(&leader_fs, 110);
    let sent = run(snapshot(&mut leader));
    let sent = chunks(&sent.snapshot);
    let follower = open_machine(&fs, DIR);
    let middle = sent.len() / 2;
    type Change<'a> = Box<dyn Fn(&mut Vec<Chunk>) + 'a>;
    let changes: [(&str, Change<'_>); 6] = [
        ("lost", Box::new(|chunks| drop(chunks.remove(middle)))),
        ("first lost", Box::new(|chunks| drop(chunks.remove(0)))),
        ("last lost", Box::new(|chunks| drop(chunks.pop()))),
        ("repeated", Box::new(|chunks| chunks.insert(middle, chunks[middle].clone()))),
        ("swapped", Box::new(|chunks| chunks.swap(middle, middle + 1))),
        ("nothing sent", Box::new(Vec::clear)),
    ];
    for (what, change) in changes {
        let mut changed = sent.clone();
        change(&mut changed);
        assert!(receive(&follower.state(), &changed).is_err(), "{what}");
    }
    for at in 0..sent.len() {
        let mut bytes = postcard::to_stdvec(&sent[at]).unwrap();
        let place = bytes.len() / 2;
        bytes[place] ^= 1;
        // The decoder may refuse the chunk before the checksum is compared.
        if let Ok(damaged) = postcard::from_bytes::<Chunk>(&bytes) {
            let mut changed = sent.clone();
            changed[at] = damaged;
            assert_eq!(receive(&follower.state(), &changed).unwrap_err().kind(), ErrorKind::InvalidData, "{at}");
        }
    }
    drop(follower);
    assert_eq!(names(&mem), ["state-000000"]);
}

#[test]
fn a_snapshot_whose_sender_has_a_damaged_table_is_refused() {
    // Catches damage that spreads from the leader to its followers, because only the transfer is checked.
    let ((leader_mem, leader_fs), (_, fs)) = (memory(), memory());
    let mut leader = filled(&leader_fs, 110);
    let sent = run(snapshot(&mut leader));
    let names = leader_mem.read_dir(sent.snapshot.path()).unwrap();
    let table = names.iter().find(|name| name.to_string_lossy().ends_with(".sst")).unwrap();
    let file = leader_mem.open_write(&sent.snapshot.path().join(table)).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 100).unwrap();
    file.write_all_at(&[byte[0] ^ 1], 100).unwrap();
    let follower = open_machine(&fs, DIR);
    let error = receive(&follower.state(), &chunks(&sent.snapshot)).unwrap_err();
    assert!(error.to_string().contains(".sst"), "{error}");
}

#[test]
fn a_snapshot_with_other_metadata_is_not_installed() {
    // Catches a node that reports entries as applied that its database does not hold.
    let ((_, leader_fs), (mem, fs)) = (memory(), memory());
    let mut leader = filled(&leader_fs, 110);
    let mut sent = run(snapshot(&mut leader));
    sent.meta.last_log_id = Some(log_id(1, 111));
    let mut follower = open_machine(&fs, DIR);
    let error = run(follower.install_snapshot(&sent.meta, sent.snapshot)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(run(follower.applied_state()).unwrap().0, None);
    run(apply(&mut follower, [count(0)]));
    drop(follower);
    assert_eq!(names(&mem), ["state-000000"]);
}

#[test]
fn snapshots_disappear_when_they_are_dropped_and_remains_at_the_next_open() {
    // Catches checkpoints that keep the space of tables which compactions have replaced, and a removal of a foreign directory.
    let (mem, fs) = memory();
    let mut machine = filled(&fs, 110);
    let first = run(snapshot(&mut machine));
    let second = run(machine.get_current_snapshot()).unwrap().unwrap();
    let receiver = machine.state().receive().unwrap();
    assert_eq!(names(&mem), ["incoming-000002", "snapshot-000000", "snapshot-000001", "state-000000"]);
    let left = mem.disk();
    drop((first, second, receiver, machine));
    assert_eq!(names(&mem), ["state-000000"]);

    let mem = MemFs::on(left);
    for dir in ["notes", "snapshot-000007.incomplete"] {
        mem.create_dir_all(&Path::new(DIR).join(dir)).unwrap();
    }
    let fs: Arc<dyn FileSystem> = Arc::new(mem.clone());
    let mut machine = open_machine(&fs, DIR);
    assert_eq!(names(&mem), ["notes", "state-000000"]);
    let snapshot = run(snapshot(&mut machine));
    assert_eq!(snapshot.snapshot.path(), Path::new(DIR).join("snapshot-000003"), "a name that no earlier snapshot has");
}

#[test]
fn an_entry_sees_the_effects_of_all_earlier_ones() {
    // Catches a read that misses the writes of an entry in the same batch.
    let (_, fs) = memory();
    let mut machine = open_machine(&fs, DIR);
    let entry = |index, request| Entry::new_normal(log_id(1, index), request);
    let set_count = |text: &str| Request::Set("count".into(), text.into());
    run(apply(
        &mut machine,
        [entry(0, set_count("7")), count(1), count(2), entry(3, set_count("20")), entry(4, set_count("30")), count(5)],
    ));
    assert_eq!(number(&machine.state().db(), "count").unwrap(), 31);
}

#[test]
fn entries_that_read_nothing_share_a_batch() {
    // Catches a batch for each entry, and a batch without a size limit.
    let (_, fs) = memory();
    let mut machine = open_machine(&fs, DIR);
    let writes = |machine: &Machine| machine.state().db().metrics().writes;
    let before = writes(&machine);
    run(apply(&mut machine, (0..1000).map(|index| set(1, index, "x"))));
    assert_eq!(writes(&machine) - before, 1000 + 1, "one record");
    let before = writes(&machine);
    run(apply(&mut machine, (1000..1010).map(|index| set(1, index, "x".repeat(256 << 10)))));
    assert_eq!(writes(&machine) - before, 10 + 10, "ten records");
}

#[test]
fn a_request_that_removes_all_keys_leaves_the_record() {
    // Catches a state machine that loses its last applied log id, and applies entries again.
    let (_, fs) = memory();
    let mut machine = filled(&fs, 110);
    run(apply(&mut machine, [Entry::new_normal(log_id(1, 111), Request::Clear)]));
    let keys: Vec<_> = machine.state().db().iter().map(|entry| entry.unwrap().0).collect();
    assert!(keys.len() == 1 && keys[0].starts_with(RESERVED), "{keys:?}");
    let expected = run(machine.applied_state()).unwrap();
    drop(machine);
    let mut machine = open_machine(&fs, DIR);
    assert_eq!(run(machine.applied_state()).unwrap(), expected);
    assert_eq!(expected.0, Some(log_id(1, 111)));
}

#[test]
fn a_second_process_is_refused_and_removes_nothing() {
    // Catches two nodes on one directory, and an open that cleans up before it has the lock.
    let (mem, fs) = memory();
    let mut machine = filled(&fs, 110);
    let snapshot = run(snapshot(&mut machine));
    let error = Machine::open_with(DIR, App, small(), Arc::clone(&fs)).unwrap_err();
    assert!(error.to_string().contains("locked"), "{error}");
    assert_eq!(names(&mem), ["snapshot-000000", "state-000000"]);
    assert_eq!(chunks(&snapshot.snapshot).last().map(|chunk| format!("{chunk:?}").contains("CURRENT")), Some(true));
}
