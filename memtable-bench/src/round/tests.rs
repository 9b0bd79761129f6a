//! Rounds of every subject that is safe to have in a process with others, and of tables that are wrong on purpose.

use super::*;
use crate::keys::KeySet;
use crate::tables::{Record, table};

const ENTRIES: usize = 700;

fn request(subject: Subject, shape: Shape, workloads: &[Workload]) -> Request {
    Request { subject, shape, workloads: workloads.to_vec() }
}

#[test]
fn lengths_and_workloads_are_those_asked_for() {
    // Catches a round that measures keys or values of another length, and the insert that every round needs reported as if it
    // had been asked for.
    for (key_len, value_len) in [(16, 8), (64, 1000)] {
        let shape = Shape { key_len, value_len, ..Shape::new(KeySet::Random, ENTRIES) };
        let outcome = run(request(Subject::Memtable, shape, &[Workload::Scan])).expect("right");
        let Outcome { memory, samples, .. } = outcome;
        assert_eq!(memory.payload, (ENTRIES * (key_len + value_len)) as u64);
        assert!(memory.used >= Some(memory.payload), "{memory:?}");
        assert_eq!(samples.iter().map(|sample| sample.workload).collect::<Vec<_>>(), [Workload::Scan]);
    }
}

/// Yields two entries in the wrong order.
const UNSORTED: char = 'u';
/// Does not yield the last entry.
const INCOMPLETE: char = 'i';
/// Yields the last entry twice.
const DOUBLED: char = 'd';
/// Finds nothing.
const BLIND: char = 'b';
/// Does not delete what it is told to.
const KEEPING: char = 'k';

fn spoil(fault: char, read: impl FnOnce(&mut dyn FnMut(&[u8], &[u8])), mut each: impl FnMut(&[u8], &[u8])) {
    let mut entries = Vec::new();
    read(&mut |key, value| entries.push((key.to_vec(), value.to_vec())));
    match fault {
        UNSORTED => entries.swap(5, 6),
        INCOMPLETE => drop(entries.pop()),
        DOUBLED => entries.extend(entries.last().cloned()),
        _ => {}
    }
    entries.iter().for_each(|(key, value)| each(key, value));
}

table! {
    /// A right table behind a fault.
    Faulty<const FAULT: char>(LockedTree);
    new(shape) => LockedTree::new(shape);
    insert_all(tree, records) => tree.insert(records);
    scan(tree, each) => spoil(FAULT, |each| tree.scan(each), each);
    get(tree, key, read) => if FAULT == BLIND { None } else { tree.get(key, read) };
    seek(tree, from, most, each) => spoil(FAULT, |each| tree.seek(from, most, each), each);
    delete(tree, key, seqno) => FAULT == KEEPING || tree.delete(key, seqno);
}

#[track_caller]
fn refused<const FAULT: char>(workloads: &[Workload], expected: &str) {
    let round = Round::new(request(Subject::Btreemap, Shape::new(KeySet::Random, ENTRIES), workloads));
    let refusal = round.run::<Faulty<FAULT>>().expect_err("a wrong table");
    assert!(refusal.contains(expected), "{refusal}");
}

#[test]
fn wrong_tables_are_found_out() {
    // Catches a bench that measures whatever a table returns. A scan in wrong order has the right sum, so the last check must
    // see it, also when no scan is measured.
    let all = [Workload::Get, Workload::Scan];
    refused::<UNSORTED>(&all, "expected 700 entries in order, found 700, of which 698");
    refused::<UNSORTED>(&[Workload::Insert], "expected 700 entries in order");
    refused::<INCOMPLETE>(&all, "scan: expected 700 right values, found 699");
    refused::<INCOMPLETE>(&[Workload::Insert], "found 699");
    refused::<INCOMPLETE>(&[Workload::SeekOne], "seek-one: expected 700 right values, found 0");
    refused::<DOUBLED>(&[Workload::Seek], "seek: expected");
    refused::<DOUBLED>(&all, "scan: expected 700 right values, found 701");
    refused::<DOUBLED>(&[Workload::Insert], "found 701, of which 700");
    refused::<BLIND>(&all, "get: expected 700 right values, found 0");
    refused::<BLIND>(&[Workload::Mixed], "mixed: expected");
    refused::<KEEPING>(&[Workload::Delete], "expected 0 entries in order, found 700");
}
