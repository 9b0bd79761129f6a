//! Rounds of our subjects, and of a table and an engine that are wrong on purpose.

use super::*;
use crate::spec::{KeySet, Shape, Store as Kind, Workload};
use crate::subjects::log::Log;
use crate::subjects::maps::LockedTree;
use crate::subjects::mini::Mini;
use crate::subjects::store::{Record, Settings};

const ENTRIES: usize = 700;

fn request(subject: Subject, kind: Kind, workloads: &[Workload]) -> Request {
    Request { subject, shape: Shape::new(KeySet::Random, ENTRIES).in_store(kind), workloads: workloads.to_vec() }
}

/// The fault of a subject.
const UNSORTED: u8 = 0;
const INCOMPLETE: u8 = 1;
const DOUBLED: u8 = 2;
const WRONG_VALUE: u8 = 3;
const BLIND: u8 = 4;
const KEEPS_DELETED: u8 = 5;
const LOSES_A_WRITE: u8 = 6;
const CUTS_A_BATCH: u8 = 7;
const FINDS_WHAT_IS_ABSENT: u8 = 8;
const ENDS_SCANS_EARLY: u8 = 9;
const KEEPS_OLD_VALUES: u8 = 10;
const FORGETS_WHEN_OPENED: u8 = 11;

/// A correct subject with an added fault.
struct Faulty<S, const FAULT: u8>(S);

impl<S, const FAULT: u8> Faulty<S, FAULT> {
    fn spoil(read: impl FnOnce(&mut dyn FnMut(&[u8], &[u8])) -> Done, mut each: impl FnMut(&[u8], &[u8])) -> Done {
        let mut entries = Vec::new();
        read(&mut |key, value| entries.push((key.to_vec(), value.to_vec())))?;
        match FAULT {
            UNSORTED => entries.swap(5, 6),
            INCOMPLETE => drop(entries.pop()),
            DOUBLED => entries.extend(entries.last().cloned()),
            WRONG_VALUE if entries.len() > 6 => entries[5].1 = entries[6].1.clone(),
            _ => {}
        }
        entries.iter().for_each(|(key, value)| each(key, value));
        Ok(())
    }
}

impl<S: Store, const FAULT: u8> Store for Faulty<S, FAULT> {
    fn open(settings: &Settings) -> Done<Self> {
        if FAULT == FORGETS_WHEN_OPENED {
            std::fs::remove_dir_all(&settings.dir)?;
            std::fs::create_dir(&settings.dir)?;
        }
        Ok(Self(S::open(settings)?))
    }

    fn put(&self, record: Record<'_>) -> Done {
        let is_lost = FAULT == LOSES_A_WRITE && record.number == 5;
        let is_kept = FAULT == KEEPS_OLD_VALUES && self.0.get(record.key, |_| ())?.is_some();
        if is_lost || is_kept { Ok(()) } else { self.0.put(record) }
    }

    fn put_batch<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> Done {
        self.0.put_batch(records.filter(|record| FAULT != CUTS_A_BATCH || record.number % 100 != 99))
    }

    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Done<Option<R>> {
        match FAULT {
            BLIND => Ok(None),
            WRONG_VALUE => self.0.get(key, |_| read(&[7; 100])),
            FINDS_WHAT_IS_ABSENT => Ok(Some(read(&[7; 100]))),
            _ => self.0.get(key, read),
        }
    }

    fn scan(&self, from: &[u8], most: usize, each: impl FnMut(&[u8], &[u8])) -> Done {
        let most = if FAULT == ENDS_SCANS_EARLY { most.min(9) } else { most };
        Self::spoil(|each| self.0.scan(from, most, each), each)
    }

    fn scan_all(&self, each: impl FnMut(&[u8], &[u8])) -> Done {
        Self::spoil(|each| self.0.scan_all(each), each)
    }

    fn delete(&self, key: &[u8], seqno: u64) -> Done<bool> {
        if FAULT == KEEPS_DELETED { Ok(true) } else { self.0.delete(key, seqno) }
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
    of::<Faulty<LockedTree, FAULT>>(&request).expect_err("a wrong table").to_string()
}

fn engine<const FAULT: u8>(workload: Workload) -> String {
    let request = request(Subject::MiniEngine, Kind::Engine, &[workload]);
    of::<Faulty<Mini, FAULT>>(&request).expect_err("a wrong engine").to_string()
}

#[test]
fn wrong_tables_are_found_out() {
    // Catches a bench that accepts wrong results of a table. A scan in wrong order has the right sum, so the last check must
    // detect it, also when no scan is measured.
    use Workload::{Delete, Get, Insert, InsertLatency, Mixed, Scan, Seek, SeekOne};
    for (refusal, expected) in [
        (table::<UNSORTED>(Scan), "expected 700 entries in order, found 700, of which 698"),
        (table::<UNSORTED>(Insert), "expected 700 entries in order, found 700, of which 698"),
        (table::<INCOMPLETE>(Scan), "scan: expected 700 right values, found 699"),
        (table::<INCOMPLETE>(Insert), "found 699"),
        (table::<INCOMPLETE>(SeekOne), "seek-one: expected 700 right values, found 0"),
        (table::<DOUBLED>(Seek), "seek: expected"),
        (table::<DOUBLED>(Scan), "scan: expected 700 right values, found 701"),
        (table::<DOUBLED>(Insert), "found 701, of which 700"),
        (table::<WRONG_VALUE>(Scan), "scan: expected 700 right values, found 700, not all of them right"),
        (table::<BLIND>(Get), "get: expected 700 right values, found 0"),
        (table::<BLIND>(Mixed), "mixed: expected"),
        (table::<LOSES_A_WRITE>(InsertLatency), "expected 700 entries in order, found 699"),
        (table::<KEEPS_DELETED>(Delete), "expected 0 entries in order, found 700"),
    ] {
        assert!(refusal.contains(expected), "{refusal}");
    }
}

#[test]
fn wrong_engines_are_found_out() {
    // Catches a bench that accepts wrong results of an engine, and contents that are not checked when no read is measured.
    use Workload::{Get, Miss, Open, Overwrite, Put, PutBatch, Replay, Scan100, SyncedPut, YcsbA, YcsbE, YcsbF};
    for (refusal, expected) in [
        (engine::<LOSES_A_WRITE>(Put), "expected 700 entries in order, found 699"),
        (engine::<LOSES_A_WRITE>(SyncedPut), "expected 700 entries in order, found 699"),
        (engine::<LOSES_A_WRITE>(Replay), "expected 700 entries in order, found 699"),
        (engine::<CUTS_A_BATCH>(PutBatch), "expected 700 entries in order, found 693"),
        (engine::<WRONG_VALUE>(Get), "get: expected 700 right values, found 700, not all of them right"),
        (engine::<WRONG_VALUE>(YcsbF), "get: expected"),
        (engine::<FINDS_WHAT_IS_ABSENT>(Miss), "get: expected"),
        (engine::<ENDS_SCANS_EARLY>(Scan100), "scan-10: expected"),
        (engine::<ENDS_SCANS_EARLY>(YcsbE), "ycsb-e: expected"),
        (engine::<KEEPS_OLD_VALUES>(Overwrite), "expected 700 entries in order, found 700, of which"),
        (engine::<KEEPS_OLD_VALUES>(YcsbA), "ycsb-a: expected"),
        (engine::<FORGETS_WHEN_OPENED>(Open), "expected the first key, found none"),
        (engine::<FORGETS_WHEN_OPENED>(Replay), "expected the first key, found none"),
    ] {
        assert!(refusal.contains(expected), "{refusal}");
    }
}

#[test]
fn lengths_and_workloads_are_those_asked_for() {
    // Catches a round that measures keys or values of another length, and one that reports an insert that was not requested
    // (every round needs an insert).
    for (key_len, value_len) in [(16, 8), (64, 1000)] {
        let shape = Shape { key_len, value_len, ..Shape::new(KeySet::Random, ENTRIES) };
        assert_eq!(input::Input::new(&shape, 0).payload(), (ENTRIES * (key_len + value_len)) as u64);
        let request = |workload| Request { subject: Subject::Memtable, shape, workloads: vec![workload] };
        let run = |workload| run(&request(workload)).expect("right");
        let workloads = run(Workload::Scan).into_iter().map(|sample| sample.workload).collect::<Vec<_>>();
        assert_eq!(workloads, [Workload::Scan]);
        // The overhead is a few bytes for a link and its share of the index, and a share of the table's fixed part, large here because entries are
        // few.
        let facts = &run(Workload::Insert)[0].facts;
        assert!(
            (20.0..400.0).contains(&facts[&Fact::OwnOverhead]) && facts.contains_key(&Fact::FailedCas),
            "{facts:?}"
        );
    }
}

#[test]
fn samples_are_those_asked_for_with_times_and_facts() {
    // Catches a fill among the samples that was not requested, missing or implausible times and amplifications, records counted
    // instead of seeks, and a database left behind.
    let wanted: Vec<_> = Workload::of(Kind::Engine).filter(|of| *of != Workload::Put).collect();
    let samples = run(&request(Subject::MiniEngine, Kind::TenTimesCache, &wanted)).expect("right");
    let mut done: Vec<_> = samples.iter().map(|sample| sample.workload).collect();
    done.sort_by_key(|workload| *workload as usize);
    assert_eq!(done, wanted);
    let sample = |workload| samples.iter().find(|of| of.workload == workload).expect("asked for");
    let operations = [Workload::Load, Workload::Overwrite, Workload::Scan100, Workload::YcsbA, Workload::Open];
    assert_eq!(operations.map(|of| sample(of).operations), [700, 2100, 7, 140, 1]);
    for workload in
        [Workload::SyncedPut, Workload::PutBatch, Workload::Get, Workload::YcsbD, Workload::ReadWhileWriting]
    {
        let latency = &sample(workload).latency;
        let [p50, p999, max] = [Percentile::P50, Percentile::P999, Percentile::Max].map(|of| latency[&of]);
        assert!(p50 > 0.0 && max >= p999, "{workload:?}: {latency:?}");
    }
    let fact = |workload, fact: Fact| sample(workload).facts.get(&fact).copied();
    assert_eq!(fact(Workload::SyncedPut, Fact::Syncs), Some(1.0));
    // The keys alone are 14 % of the bytes of the records; three of four writes are obsolete at the end.
    for (name, least, most) in [
        (Fact::WriteAmplification, 0.3, 20.0),
        (Fact::ReadAmplification, 0.1, 4.0),
        (Fact::SpaceAmplification, 1.0, 4.0),
    ] {
        let found = fact(Workload::Overwrite, name);
        assert!(found.is_some_and(|found| (least..most).contains(&found)), "{name:?}: {found:?}");
    }
    #[cfg(target_os = "linux")]
    for (workload, name) in [
        (Workload::Load, Fact::DiskSpace),
        (Workload::Overwrite, Fact::DiskSpace),
        (Workload::ReadWhileWriting, Fact::WriterRate),
    ] {
        assert!(fact(workload, name) > Some(0.9), "{workload:?} {name:?}: {:?}", fact(workload, name));
    }
    assert!(sample(Workload::Overwrite).timeline.is_some() && sample(Workload::Get).timeline.is_none());
}

#[test]
fn a_log_and_a_table_without_one_are_checked_as_engines_are() {
    // Catches a floor that drops its records, which would be the fastest of all.
    let directory = tempfile::tempdir().expect("a directory");
    let (dir, shape) = (directory.path().to_owned(), Shape::new(KeySet::Random, 3));
    let log = Log::open(&Settings { subject: Subject::Log, shape, dir, synced: false }).expect("a log");
    let records = [(0, b"b", b"2"), (1, b"a", b"1"), (2, b"b", b"3")];
    let [first, second, third] = records.map(|(number, key, value)| Record { number, key, value });
    log.put(first).and_then(|()| log.put_batch([second, third].into_iter())).expect("written");
    let mut entries = Vec::new();
    log.scan_all(|key, value| entries.push((key.to_vec(), value.to_vec()))).expect("a scan");
    assert_eq!(entries, [(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), b"3".to_vec())]);
    for subject in [Subject::Memtable, Subject::Hashmap, Subject::Vec, Subject::Log] {
        let workloads: Vec<_> = [Workload::Put, Workload::Get].into_iter().filter(|of| subject.can(*of)).collect();
        let samples = run(&request(subject, Kind::Engine, &workloads)).expect("right");
        assert_eq!(samples[0].operations, ENTRIES as u64);
    }
}
