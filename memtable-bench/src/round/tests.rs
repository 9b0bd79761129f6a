//! Rounds of every subject that is safe to have in a process with others, and of tables that are wrong on purpose.

use super::*;
use crate::keys::KeySet;
use crate::tables::Record;

const ENTRIES: usize = 700;

fn shape(keys: KeySet, threads: usize) -> Shape {
    Shape { threads, ..Shape::new(keys, ENTRIES) }
}

#[test]
fn lengths_and_payloads_are_those_asked_for() {
    // Catches a round that measures keys or values of another length.
    for (key_len, value_len) in [(16, 8), (64, 1000)] {
        let shape = Shape { key_len, value_len, ..shape(KeySet::Random, 1) };
        let memory = run(Subject::Memtable, shape, &[Workload::Insert]).expect("right").memory;
        assert_eq!(memory.payload, (ENTRIES * (key_len + value_len)) as u64);
        assert!(memory.used >= Some(memory.payload), "{memory:?}");
    }
}

#[test]
fn only_the_workloads_asked_for_are_reported() {
    // Catches the insert that every round needs reported as if it had been asked for.
    let outcome = run(Subject::Memtable, shape(KeySet::Random, 1), &[Workload::Scan]).expect("right");
    assert_eq!(outcome.samples.iter().map(|sample| sample.workload).collect::<Vec<_>>(), [Workload::Scan]);
}

/// A right table behind a fault.
struct Faulty<const FAULT: char>(LockedTree);

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

impl<const FAULT: char> Faulty<FAULT> {
    fn spoil(read: impl FnOnce(&mut dyn FnMut(&[u8], &[u8])), mut each: impl FnMut(&[u8], &[u8])) {
        let mut entries = Vec::new();
        read(&mut |key, value| entries.push((key.to_vec(), value.to_vec())));
        match FAULT {
            UNSORTED => entries.swap(5, 6),
            INCOMPLETE => drop(entries.pop()),
            DOUBLED => entries.extend(entries.last().cloned()),
            _ => {}
        }
        entries.iter().for_each(|(key, value)| each(key, value));
    }
}

impl<const FAULT: char> Table for Faulty<FAULT> {
    fn new(shape: &Shape) -> Self {
        Self(LockedTree::new(shape))
    }

    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize {
        self.0.insert(records)
    }

    fn scan(&self, each: impl FnMut(&[u8], &[u8])) {
        Self::spoil(|each| self.0.scan(each), each);
    }

    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        if FAULT == BLIND { None } else { self.0.get(key, read) }
    }

    fn seek(&self, from: &[u8], most: usize, each: impl FnMut(&[u8], &[u8])) {
        Self::spoil(|each| self.0.seek(from, most, each), each);
    }

    fn delete(&self, key: &[u8], seqno: u64) -> bool {
        FAULT == KEEPING || self.0.delete(key, seqno)
    }
}

#[track_caller]
fn refused<const FAULT: char>(workloads: &[Workload], expected: &str) {
    let round = Round::new(Subject::Btreemap, shape(KeySet::Random, 1), workloads);
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
