//! Rounds of every subject that is safe to have in a process with others, and of tables that are wrong on purpose.

use super::super::presets;
use super::super::shape::Access;
use super::super::subjects::Record;
use super::*;
use crate::keys::KeySet;

const ENTRIES: usize = 700;

fn shape(keys: KeySet, threads: usize) -> Shape {
    Shape { threads, ..presets::shape(keys, ENTRIES) }
}

/// The operations that a workload has to be reported with.
fn operations(workload: Workload, threads: usize) -> u64 {
    let operations = match workload {
        Workload::Scan | Workload::Reverse => ENTRIES * threads,
        Workload::Seek => ENTRIES / 10,
        _ => ENTRIES,
    };
    operations as u64
}

#[test]
fn every_subject_does_every_workload_it_can_and_is_right() {
    // Catches a subject that loses, doubles or misplaces records, a workload left out, and operations miscounted.
    for subject in Subject::ALL.into_iter().filter(|subject| *subject != Subject::FastskipPublished) {
        for keys in [KeySet::Random, KeySet::Sequential, KeySet::Paths] {
            for (threads, access) in [(1, Access::Uniform), (3, Access::Uniform), (2, Access::Zipfian)] {
                let outcome = run(subject, Shape { access, ..shape(keys, threads) }, &Workload::ALL)
                    .unwrap_or_else(|wrong| panic!("{subject:?} {keys:?}: {wrong}"));
                let done: Vec<_> = outcome.samples.iter().map(|sample| (sample.workload, sample.operations)).collect();
                let able = Workload::ALL.into_iter().filter(|workload| subject.can(*workload));
                let expected: Vec<_> = able.map(|workload| (workload, operations(workload, threads))).collect();
                assert_eq!(done, expected, "{subject:?} {keys:?}");
            }
        }
    }
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

/// What a wrong table does.
trait Fault: Sync {
    /// What it says of a key that it has.
    fn found<R>(value: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        Some(read(value))
    }

    /// What it yields instead of `entries`.
    fn yields(_entries: &mut Vec<(Vec<u8>, Vec<u8>)>) {}

    /// Whether it takes a key out that it is told to.
    const DELETES: bool = true;
}

/// A right table behind a fault.
struct Faulty<F> {
    table: LockedTree,
    fault: std::marker::PhantomData<F>,
}

impl<F: Fault> Insert for Faulty<F> {
    fn new(shape: &Shape) -> Self {
        Self { table: LockedTree::new(shape), fault: std::marker::PhantomData }
    }

    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize {
        self.table.insert(records)
    }
}

impl<F: Fault> Get for Faulty<F> {
    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.table.get(key, |value| F::found(value, read))?
    }
}

impl<F: Fault> Ordered for Faulty<F> {
    fn scan(&self, mut each: impl FnMut(&[u8], &[u8])) {
        let mut entries = Vec::new();
        self.table.scan(|key, value| entries.push((key.to_vec(), value.to_vec())));
        F::yields(&mut entries);
        entries.iter().for_each(|(key, value)| each(key, value));
    }
}

impl<F: Fault> Seek for Faulty<F> {
    fn seek(&self, from: &[u8], most: usize, mut each: impl FnMut(&[u8], &[u8])) {
        let mut entries = Vec::new();
        self.table.seek(from, most, |key, value| entries.push((key.to_vec(), value.to_vec())));
        F::yields(&mut entries);
        entries.iter().for_each(|(key, value)| each(key, value));
    }
}

impl<F: Fault> Delete for Faulty<F> {
    fn delete(&self, key: &[u8], seqno: u64) -> bool {
        !F::DELETES || self.table.delete(key, seqno)
    }
}

#[track_caller]
fn refused<F: Fault>(workloads: &[Workload], expected: &str) {
    let mut round = Round::new(shape(KeySet::Random, 1), workloads);
    let refusal = round.one_way::<Faulty<F>>().expect_err("a wrong table");
    assert!(refusal.contains(expected), "{refusal}");
}

struct Unsorted;
impl Fault for Unsorted {
    fn yields(entries: &mut Vec<(Vec<u8>, Vec<u8>)>) {
        entries.swap(5, 6);
    }
}

struct Incomplete;
impl Fault for Incomplete {
    fn yields(entries: &mut Vec<(Vec<u8>, Vec<u8>)>) {
        entries.pop();
    }
}

struct Doubled;
impl Fault for Doubled {
    fn yields(entries: &mut Vec<(Vec<u8>, Vec<u8>)>) {
        entries.extend(entries.last().cloned());
    }
}

struct Blind;
impl Fault for Blind {
    fn found<R>(_: &[u8], _: impl FnOnce(&[u8]) -> R) -> Option<R> {
        None
    }
}

struct Keeping;
impl Fault for Keeping {
    const DELETES: bool = false;
}

#[test]
fn wrong_tables_are_found_out() {
    // Catches a bench that measures whatever a table returns. A scan in wrong order has the right sum, so the last check must
    // see it, also when no scan is measured.
    let all = [Workload::Get, Workload::Scan];
    refused::<Unsorted>(&all, "expected 700 entries in order, found 700, of which 698");
    refused::<Unsorted>(&[Workload::Insert], "expected 700 entries in order");
    refused::<Incomplete>(&all, "scan: expected 700 right values, found 699");
    refused::<Incomplete>(&[Workload::Insert], "found 699");
    refused::<Incomplete>(&[Workload::SeekOne], "seek-one: expected 700 right values, found 0");
    refused::<Doubled>(&[Workload::Seek], "seek: expected");
    refused::<Doubled>(&all, "scan: expected 700 right values, found 701");
    refused::<Doubled>(&[Workload::Insert], "found 701, of which 700");
    refused::<Blind>(&all, "get: expected 700 right values, found 0");
    refused::<Blind>(&[Workload::Mixed], "mixed: expected");
    refused::<Keeping>(&[Workload::Delete], "expected 0 entries in order, found 700");
}
