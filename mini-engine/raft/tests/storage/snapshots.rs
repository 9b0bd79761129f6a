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
    AnEntry, App, Machine, Request, TypeConfig, apply, count, log_id, number, open_machine, run, set, sets, small,
};

pub(crate) const DIR: &str = "/node/machine";

fn membership(index: u64) -> AnEntry {
    let nodes = std::collections::BTreeMap::from([1, 2].map(|id| (id, BasicNode::new(format!("node {id}")))));
    Entry::new_membership(log_id(1, index), Membership::new(vec![[1, 2].into()], nodes).unwrap())
}

/// A machine with several tables, after `last + 1` entries; those from index 100 on are counts.
pub(crate) fn filled(fs: &MemFs, last: u64) -> Machine {
    let mut machine = open_machine(fs, DIR);
    run(async {
        apply(&mut machine, [membership(0)]).await;
        apply(&mut machine, sets(1, 1..100, &"v".repeat(2000))).await;
        apply(&mut machine, (100..=last).map(count)).await;
    });
    machine
}

/// A leader's disk and machine after 111 entries, and its snapshot.
fn leader() -> (MemFs, Machine, SnapshotOf<TypeConfig, Checkpoint>) {
    let mem = MemFs::default();
    let mut machine = filled(&mem, 110);
    let sent = run(snapshot(&mut machine));
    (mem, machine, sent)
}

/// An empty disk, and a machine on it.
fn follower() -> (MemFs, Machine) {
    let mem = MemFs::default();
    let machine = open_machine(&mem, DIR);
    (mem, machine)
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

/// The names in a directory.
fn names_in(mem: &MemFs, dir: impl AsRef<Path>) -> Vec<String> {
    let names = mem.read_dir(dir.as_ref()).unwrap().into_iter().map(|name| name.into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// The names in the machine's directory.
fn names(mem: &MemFs) -> Vec<String> {
    names_in(mem, DIR)
}

fn last_applied(machine: &mut Machine) -> Option<u64> {
    run(machine.applied_state()).unwrap().0.map(|last| last.index)
}

fn counted(machine: &Machine) -> u64 {
    number(&machine.state().db(), "count").unwrap()
}

#[test]
fn a_snapshot_that_was_sent_and_installed_is_the_state_of_its_sender() {
    // Catches a lost membership, log id or table, and a receiver that keeps its own older state.
    let (_, leader, sent) = leader();
    // Encodes and decodes each chunk, as a transport does.
    let decoded = |chunk: &Chunk| postcard::from_bytes(&postcard::to_stdvec(chunk).unwrap()).unwrap();
    let sent_chunks: Vec<Chunk> = chunks(&sent.snapshot).iter().map(decoded).collect();
    assert!(sent_chunks.len() > 50);

    let (mem, mut follower) = follower();
    run(apply(&mut follower, sets(1, 0..2, "mine")));
    let old = follower.state().db();
    let received = receive(&follower.state(), &sent_chunks).unwrap();
    assert_eq!(received.meta, sent.meta);
    assert_eq!(received.meta.last_log_id, Some(log_id(1, 110)));
    run(follower.install_snapshot(&received.meta, received.snapshot)).unwrap();

    let members = membership(0).get_membership().unwrap();
    let expected = (Some(log_id(1, 110)), StoredMembershipOf::<TypeConfig>::new(Some(log_id(1, 0)), members));
    assert_eq!(run(follower.applied_state()).unwrap(), expected);
    assert_eq!(counted(&follower), 11);
    let contents = |machine: &Machine| machine.state().db().iter().map(mini_engine::Result::unwrap).collect::<Vec<_>>();
    assert_eq!(contents(&follower), contents(&leader));
    assert!(matches!(old.get("key1"), Err(Error::Closed)), "an old handle must not show an old value");
    run(apply(&mut follower, [count(111)]));
    drop((follower, old));
    assert_eq!(names(&mem), ["state-000001"]);
    let mut follower = open_machine(&mem, DIR);
    assert_eq!((last_applied(&mut follower), counted(&follower)), (Some(111), 12));
}

#[test]
fn a_stored_state_is_copied_with_its_last_entries_and_stays_as_it_is() {
    // Catches a copy that lacks entries that are in no table yet, and a read that changes the directory.
    let mem = MemFs::default();
    drop(filled(&mem, 120));
    let files = || (names(&mem), names_in(&mem, Path::new(DIR).join("state-000000")));
    let before = files();
    assert_eq!(before.0, ["state-000000"]);
    let open = |dir| StoredState::<TypeConfig>::open(dir, small(), Arc::new(mem.clone())).unwrap();
    let stored = open(DIR).unwrap();
    assert_eq!(stored.meta().last_log_id, Some(log_id(1, 120)));
    stored.copy_to("/copy").unwrap();
    assert_eq!(files(), before);
    let mut copy = open_machine(&mem, "/copy");
    assert_eq!((last_applied(&mut copy), counted(&copy)), (Some(120), 21));
    assert!(open("/nothing").is_none());
}

#[cfg(unix)]
#[test]
fn a_machine_whose_directory_is_moved_goes_on_in_it_beside_another_at_its_old_name() {
    // Catches snapshots that are received, installed and removed by absolute path, and so in a directory that another machine now uses.
    let place = proof::TempDir::new().unwrap();
    let [old, moved] = ["machine", "moved"].map(|name| place.path().join(name));
    let (.., sent) = leader();
    let mut first = open_machine(&StdFs, &old);
    run(apply(&mut first, [set(1, 0, "first")]));
    std::fs::rename(&old, &moved).unwrap();
    let mut second = open_machine(&StdFs, &old);
    run(apply(&mut second, [set(1, 0, "second")]));
    let received = receive(&first.state(), &chunks(&sent.snapshot)).unwrap();
    assert_eq!(run(snapshot(&mut first)).meta.last_log_id, Some(log_id(1, 0)));
    run(first.install_snapshot(&received.meta, received.snapshot)).unwrap();
    drop((first, second));
    assert_eq!([&old, &moved].map(|dir| StdFs.read_dir(dir).unwrap()), [["state-000000"], ["state-000001"]]);
    assert_eq!(counted(&open_machine(&StdFs, &moved)), 11);
    assert_eq!(open_machine(&StdFs, &old).state().db().get("key0").unwrap().as_deref(), Some(&b"second"[..]));
}

#[test]
fn a_transfer_that_is_not_as_it_was_sent_is_refused_and_leaves_nothing() {
    // Catches a state made of damaged, lost, repeated or misplaced chunks, a write outside the directory, and leftovers of a failed transfer.
    let ((.., sent), (mem, follower)) = (leader(), follower());
    let sent = chunks(&sent.snapshot);
    let middle = sent.len() / 2;
    let received = |change: &dyn Fn(&mut Vec<Chunk>)| {
        let mut changed = sent.clone();
        change(&mut changed);
        receive(&follower.state(), &changed).map(drop)
    };
    received(&|chunks| drop(chunks.remove(middle))).expect_err("lost");
    received(&|chunks| drop(chunks.remove(0))).expect_err("first lost");
    received(&|chunks| drop(chunks.pop())).expect_err("last lost");
    received(&|chunks| chunks.insert(middle, chunks[middle].clone())).expect_err("repeated");
    received(&|chunks| chunks.swap(middle, middle + 1)).expect_err("swapped");
    received(&Vec::clear).expect_err("nothing sent");
    for at in 0..sent.len() {
        let mut bytes = postcard::to_stdvec(&sent[at]).unwrap();
        let place = bytes.len() / 2;
        bytes[place] ^= 1;
        // The decoder may refuse the chunk before the checksum is compared.
        if let Ok(damaged) = postcard::from_bytes::<Chunk>(&bytes) {
            let error = received(&|chunks| chunks[at] = damaged.clone()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{at}");
        }
    }
    drop(follower);
    assert_eq!(names(&mem), ["state-000000"]);
}

#[test]
fn a_snapshot_whose_sender_has_a_damaged_table_is_refused() {
    // Catches damage that spreads from the leader to its followers, because only the transfer is checked.
    let ((mem, _, sent), (_, follower)) = (leader(), follower());
    let names = names_in(&mem, sent.snapshot.path());
    let table = names.iter().find(|name| name.ends_with(".sst")).unwrap();
    let file = mem.open_write(&sent.snapshot.path().join(table)).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 100).unwrap();
    file.write_all_at(&[byte[0] ^ 1], 100).unwrap();
    let error = receive(&follower.state(), &chunks(&sent.snapshot)).unwrap_err();
    assert!(error.to_string().contains(".sst"), "{error}");
}

#[test]
fn a_snapshot_with_other_metadata_is_not_installed() {
    // Catches a node that reports entries as applied that its database does not hold.
    let ((.., mut sent), (mem, mut follower)) = (leader(), follower());
    sent.meta.last_log_id = Some(log_id(1, 111));
    let error = run(follower.install_snapshot(&sent.meta, sent.snapshot)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(last_applied(&mut follower), None);
    run(apply(&mut follower, [count(0)]));
    drop(follower);
    assert_eq!(names(&mem), ["state-000000"]);
}

#[test]
fn snapshots_disappear_when_they_are_dropped_and_remains_at_the_next_open() {
    // Catches checkpoints that keep the space of tables which compactions have replaced, and a removal of a foreign directory.
    let (mem, mut machine, first) = leader();
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
    let mut machine = open_machine(&mem, DIR);
    assert_eq!(names(&mem), ["notes", "state-000000"]);
    let snapshot = run(snapshot(&mut machine));
    assert_eq!(snapshot.snapshot.path(), Path::new(DIR).join("snapshot-000003"), "a name that no earlier snapshot has");
}

#[test]
fn an_entry_sees_the_effects_of_all_earlier_ones() {
    // Catches a read that misses the writes of an entry in the same batch.
    let (_, mut machine) = follower();
    let set = |index, text: &str| Entry::new_normal(log_id(1, index), Request::Set("count".into(), text.into()));
    run(apply(&mut machine, [set(0, "7"), count(1), count(2), set(3, "20"), set(4, "30"), count(5)]));
    assert_eq!(counted(&machine), 31);
}

#[test]
fn entries_that_read_nothing_share_a_batch() {
    // Catches a batch for each entry, and a batch without a size limit.
    let (_, mut machine) = follower();
    for (entries, records) in [(sets(1, 0..1000, "x"), 1), (sets(1, 1000..1010, &"x".repeat(256 << 10)), 10)] {
        let (before, expected) = (machine.state().db().metrics().writes, entries.len() as u64 + records);
        run(apply(&mut machine, entries));
        assert_eq!(machine.state().db().metrics().writes - before, expected, "{records} records");
    }
}

#[test]
fn a_request_that_removes_all_keys_leaves_the_record() {
    // Catches a state machine that loses its last applied log id, and applies entries again.
    let mem = MemFs::default();
    let mut machine = filled(&mem, 110);
    run(apply(&mut machine, [Entry::new_normal(log_id(1, 111), Request::Clear)]));
    let keys: Vec<_> = machine.state().db().iter().map(|entry| entry.unwrap().0).collect();
    assert!(keys.len() == 1 && keys[0].starts_with(RESERVED), "{keys:?}");
    let expected = run(machine.applied_state()).unwrap();
    drop(machine);
    assert_eq!(run(open_machine(&mem, DIR).applied_state()).unwrap(), expected);
    assert_eq!(expected.0, Some(log_id(1, 111)));
}

#[test]
fn a_second_process_is_refused_and_removes_nothing() {
    // Catches two nodes on one directory, and an open that cleans up before it has the lock.
    let (mem, _machine, snapshot) = leader();
    let error = Machine::open_with(DIR, App, small(), Arc::new(mem.clone())).unwrap_err();
    assert!(error.to_string().contains("locked"), "{error}");
    assert_eq!(names(&mem), ["snapshot-000000", "state-000000"]);
    assert_eq!(chunks(&snapshot.snapshot).last().map(|chunk| format!("{chunk:?}").contains("CURRENT")), Some(true));
}
