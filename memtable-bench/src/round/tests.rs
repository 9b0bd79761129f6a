//! Rounds of our subjects, and of a table and an engine that are wrong on purpose.

use super::*;
use crate::matrix::{Matrix, cells};
use crate::spec::{Shape, Store as Kind, Workload};
use crate::subjects::maps::Trees;
use crate::subjects::mini::Mini;
use crate::subjects::store::{Record, Settings};

const ENTRIES: usize = 700;

fn request(subject: Subject, store: Kind, workloads: &[Workload]) -> Request {
    let shape = Shape { entries: ENTRIES, store, ..Matrix::default().shapes()[0] };
    Request { subject, shape, workloads: workloads.to_vec() }
}

/// The fault of a subject.
const UNSORTED: u8 = 0;
const INCOMPLETE: u8 = 1;
const WRONG_VALUES: u8 = 2;
const BLIND: u8 = 3;
const KEEPS_DELETED: u8 = 4;
const LOSES_A_WRITE: u8 = 5;
const FORGETS_WHEN_OPENED: u8 = 6;
const LOSES_AN_UPDATE: u8 = 7;

/// A correct subject with an added fault. Its batches are single writes.
struct Faulty<S, const FAULT: u8>(S);

impl<S: Store, const FAULT: u8> Store for Faulty<S, FAULT> {
    fn open(settings: &Settings) -> Done<Self> {
        if FAULT == FORGETS_WHEN_OPENED {
            std::fs::remove_dir_all(&settings.dir)?;
            std::fs::create_dir(&settings.dir)?;
        }
        Ok(Self(S::open(settings)?))
    }

    fn put(&self, record: Record<'_>) -> Done {
        let is_lost = FAULT == LOSES_A_WRITE && record.number % 701 == 5;
        if is_lost { Ok(()) } else { self.0.put(record) }
    }

    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Done<Option<R>> {
        match FAULT {
            BLIND => Ok(None),
            WRONG_VALUES => Ok(Some(read(&[7; 100]))),
            _ => self.0.get(key, read),
        }
    }

    fn scan(&self, from: &[u8], most: usize, mut each: impl FnMut(&[u8], &[u8])) -> Done {
        let mut entries = Vec::new();
        self.0.scan(from, most, |key, value| entries.push((key.to_vec(), value.to_vec())))?;
        match FAULT {
            UNSORTED => entries.swap(5, 6),
            INCOMPLETE => drop(entries.pop()),
            WRONG_VALUES if entries.len() > 6 => entries[5].1 = entries[6].1.clone(),
            _ => {}
        }
        entries.iter().for_each(|(key, value)| each(key, value));
        Ok(())
    }

    fn delete(&self, key: &[u8], seqno: u64) -> Done<bool> {
        if FAULT == KEEPS_DELETED { Ok(true) } else { self.0.delete(key, seqno) }
    }

    fn transfer(&self, from: &[u8], to: &[u8]) -> Done<u64> {
        if FAULT == LOSES_AN_UPDATE { self.0.transfer(from, b"elsewhere") } else { self.0.transfer(from, to) }
    }

    fn flush(&self) -> Done {
        self.0.flush()
    }

    fn close(self) -> Done {
        self.0.close()
    }
}

fn table<const FAULT: u8>(workload: Workload) -> String {
    let request = request(Subject::Btreemap, Kind::Table, &[workload]);
    once::<Faulty<Trees, FAULT>>(&request).expect_err("a wrong table").to_string()
}

fn engine<const FAULT: u8>(workload: Workload) -> String {
    let request = request(Subject::MiniEngine, Kind::Engine, &[workload]);
    once::<Faulty<Mini, FAULT>>(&request).expect_err("a wrong engine").to_string()
}

#[test]
fn wrong_subjects_are_found_out() {
    // Catches a bench that accepts wrong results. A scan in wrong order has the right sum, so the last check must detect it, also when no scan is
    // measured.
    use Workload::*;
    for (refusal, expected) in [
        (table::<UNSORTED>(Insert), "expected 700 entries in order, found 700, of which 698"),
        (table::<INCOMPLETE>(Scan), "scan: expected 81200 as bytes read, found 81084"),
        (table::<INCOMPLETE>(SeekOne), "seek-one: expected 81200 as bytes read, found 0"),
        (table::<WRONG_VALUES>(ScanBytes), "as the sum of all bytes"),
        (table::<BLIND>(Get), "get: expected 70000 as bytes read, found 0"),
        (table::<BLIND>(Insert), "expected the newest value of a key"),
        (table::<LOSES_A_WRITE>(InsertLatency), "expected 700 entries in order, found 699"),
        (table::<KEEPS_DELETED>(Delete), "expected 0 entries in order, found 700"),
        (engine::<LOSES_A_WRITE>(Put), "expected 700 entries in order, found 699"),
        (engine::<LOSES_A_WRITE>(PutBatch), "expected 700 entries in order, found 699"),
        (engine::<LOSES_A_WRITE>(Replay), "expected 700 entries in order, found 699"),
        (engine::<LOSES_AN_UPDATE>(Transactions), "expected an account, found none"),
        (engine::<WRONG_VALUES>(Miss), "miss: expected 0 as bytes read"),
        (engine::<INCOMPLETE>(YcsbE), "ycsb-e: expected"),
        (engine::<FORGETS_WHEN_OPENED>(Open), "expected the first key, found none"),
    ] {
        assert!(refusal.contains(expected), "{refusal}");
    }
}

#[test]
fn what_criterion_measures_can_be_measured_again() {
    // Catches a workload in a preset of criterion that cannot be repeated, because it changes its table or database; and a wrong number of operations.
    for preset in ["own-tables", "own-engine"] {
        let cells = Matrix::preset(preset).and_then(|matrices| cells(&matrices, 300)).expect("cells");
        for (cell, &workload) in cells.iter().flat_map(|cell| cell.workloads.iter().map(move |of| (cell, of))) {
            for &subject in cell.subjects.iter().filter(|subject| subject.can(workload)) {
                let request = Request { subject, workloads: vec![workload], shape: cell.shape };
                let mut measure = prepared(&request).expect("prepared");
                let found = [measure(), measure()].map(|sample| sample.expect("right").operations);
                assert_eq!(found, [operations(&cell.shape, workload); 2], "{workload:?}");
            }
        }
    }
}

#[test]
fn samples_are_those_asked_for_with_times_and_facts() {
    // Catches a fill among the samples that was not requested, missing or implausible times and amplifications, records counted
    // instead of seeks, and a database left behind.
    let wanted: Vec<_> = Workload::of(Kind::Engine).filter(|of| *of != Workload::Put).collect();
    let samples = run(&request(Subject::MiniEngine, Kind::TenTimesCache, &wanted)).expect("right");
    let is_there = |of: &&Workload| samples.iter().any(|sample| sample.workload == **of);
    assert_eq!((samples.len(), wanted.iter().filter(is_there).count()), (wanted.len(), wanted.len()));
    let sample = |workload| samples.iter().find(|of| of.workload == workload).expect("asked for");
    let operations = [Workload::Load, Workload::Overwrite, Workload::Scan100, Workload::YcsbA, Workload::Open];
    assert_eq!(operations.map(|of| sample(of).operations), [700, 2100, 7, 140, 1]);
    for workload in [Workload::SyncedPut, Workload::PutBatch, Workload::YcsbD, Workload::ReadWhileWriting] {
        let [p50, p999, max] = ["p50", "p999", "max"].map(|of| sample(workload).latency[of]);
        assert!(p50 > 0.0 && max >= p999, "{workload:?}: {:?}", sample(workload));
    }
    let fact = |workload, name: &str| sample(workload).facts.get(name).copied();
    assert_eq!(fact(Workload::SyncedPut, "syncs"), Some(1.0));
    assert!(fact(Workload::Transactions, "tries") >= Some(1.0));
    // The keys alone are 14 % of the bytes of the records; three of four writes are obsolete at the end.
    for (name, least, most) in
        [("write-amplification", 0.3, 20.0), ("read-amplification", 0.1, 4.0), ("space-amplification", 1.0, 4.0)]
    {
        let found = fact(Workload::Overwrite, name);
        assert!(found.is_some_and(|found| (least..most).contains(&found)), "{name}: {found:?}");
    }
    #[cfg(target_os = "linux")]
    for (workload, name) in [
        (Workload::Load, "disk-space"),
        (Workload::Overwrite, "disk-space"),
        (Workload::ReadWhileWriting, "writer-rate"),
    ] {
        assert!(fact(workload, name) > Some(0.9), "{workload:?} {name:?}: {:?}", fact(workload, name));
    }
    let insert = &run(&request(Subject::Memtable, Kind::Table, &[Workload::Insert])).expect("right")[0];
    // A few bytes for a link and its share of the index, and a share of the table's fixed part, large here because entries are few.
    assert!(
        (20.0..400.0).contains(&insert.facts["own-overhead"]) && insert.facts.contains_key("failed-cas"),
        "{insert:?}"
    );
}
