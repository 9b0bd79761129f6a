//! Rounds of tables, and of tables that are wrong on purpose.

use super::*;
use crate::spec::{KeySet, Subject};
use crate::tables::maps::LockedTree;
use crate::tables::table::{Record, table};

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
        let input = Input::new(&shape, 0);
        assert_eq!(input.payload(), (ENTRIES * (key_len + value_len)) as u64);
        let run = |workload| crate::round::run(&request(Subject::Memtable, shape, &[workload])).expect("right");
        let workloads = run(Workload::Scan).samples.into_iter().map(|sample| sample.workload).collect::<Vec<_>>();
        assert_eq!(workloads, [Workload::Scan]);
        // A few bytes for a link and its part of the index; a table's fixed part is spread over few entries here.
        let facts = &run(Workload::Insert).samples[0].facts;
        assert!(
            (20.0..400.0).contains(&facts[&Fact::OwnOverhead]) && facts.contains_key(&Fact::FailedCas),
            "{facts:?}"
        );
    }
}

/// What is wrong with a table.
const UNSORTED: u8 = 0;
const INCOMPLETE: u8 = 1;
const DOUBLED: u8 = 2;
const WRONG_VALUE: u8 = 3;
const BLIND: u8 = 4;
const KEEPS_DELETED: u8 = 5;
const FORGETS_SINGLE: u8 = 6;

fn spoil(fault: u8, read: impl FnOnce(&mut dyn FnMut(&[u8], &[u8])), mut each: impl FnMut(&[u8], &[u8])) {
    let mut entries = Vec::new();
    read(&mut |key, value| entries.push((key.to_vec(), value.to_vec())));
    match fault {
        UNSORTED => entries.swap(5, 6),
        INCOMPLETE => drop(entries.pop()),
        DOUBLED => entries.extend(entries.last().cloned()),
        WRONG_VALUE => entries[5].1 = entries[6].1.clone(),
        _ => {}
    }
    entries.iter().for_each(|(key, value)| each(key, value));
}

table! {
    /// A right table behind a fault.
    Faulty<const FAULT: u8>(LockedTree);
    new(shape) => LockedTree::new(shape);
    insert_all(tree, records) => match records.size_hint() {
        (1, Some(1)) if FAULT == FORGETS_SINGLE => records.count(),
        _ => tree.insert(records),
    };
    scan(tree, each) => spoil(FAULT, |each| tree.scan(each), each);
    get(tree, key, read) => if FAULT == BLIND { None } else { tree.get(key, read) };
    seek(tree, from, most, each) => spoil(FAULT, |each| tree.seek(from, most, each), each);
    delete(tree, key, seqno) => FAULT == KEEPS_DELETED || tree.delete(key, seqno);
}

fn refusal<const FAULT: u8>(workload: Workload) -> String {
    let request = request(Subject::Btreemap, Shape::new(KeySet::Random, ENTRIES), &[workload]);
    run::<Faulty<FAULT>>(&request).expect_err("a wrong table")
}

#[test]
fn wrong_tables_are_found_out() {
    // Catches a bench that measures whatever a table returns. A scan in wrong order has the right sum, so the last check must
    // see it, also when no scan is measured.
    for (refusal, expected) in [
        (refusal::<UNSORTED>(Workload::Scan), "expected 700 entries in order, found 700, of which 698"),
        (refusal::<UNSORTED>(Workload::Insert), "expected 700 entries in order, found 700, of which 698"),
        (refusal::<INCOMPLETE>(Workload::Scan), "scan: expected 700 right values, found 699"),
        (refusal::<INCOMPLETE>(Workload::Insert), "found 699"),
        (refusal::<INCOMPLETE>(Workload::SeekOne), "seek-one: expected 700 right values, found 0"),
        (refusal::<DOUBLED>(Workload::Seek), "seek: expected"),
        (refusal::<DOUBLED>(Workload::Scan), "scan: expected 700 right values, found 701"),
        (refusal::<DOUBLED>(Workload::Insert), "found 701, of which 700"),
        (refusal::<WRONG_VALUE>(Workload::Scan), "scan: expected 700 right values, found 700, not all of them right"),
        (refusal::<BLIND>(Workload::Get), "get: expected 700 right values, found 0"),
        (refusal::<BLIND>(Workload::Mixed), "mixed: expected"),
        (refusal::<FORGETS_SINGLE>(Workload::InsertLatency), "expected 700 entries in order, found 0"),
        (refusal::<KEEPS_DELETED>(Workload::Delete), "expected 0 entries in order, found 700"),
    ] {
        assert!(refusal.contains(expected), "{refusal}");
    }
}
