//! Rounds of every engine, and of one that is wrong on purpose.

use std::iter::once;

use super::*;
use crate::engines::floors::Log;
use crate::engines::mini::Mini;
use crate::spec::{KeySet, Store, Subject};
use crate::tables::Record;

const ENTRIES: usize = 700;

fn request(workloads: &[Workload], store: Store) -> Request {
    let shape = Shape { store, ..Shape::new(KeySet::Random, ENTRIES) };
    Request { subject: Subject::MiniEngine, shape, workloads: workloads.to_vec() }
}

/// What is wrong with an engine.
const LOSES_A_WRITE: u8 = 0;
const CUTS_A_BATCH: u8 = 1;
const MIXES_VALUES_UP: u8 = 2;
const FINDS_WHAT_IS_ABSENT: u8 = 3;
const ENDS_SCANS_EARLY: u8 = 4;
const KEEPS_OLD_VALUES: u8 = 5;
const FORGETS_WHEN_OPENED: u8 = 6;

struct Faulty<const FAULT: u8>(Mini);

impl<const FAULT: u8> Engine for Faulty<FAULT> {
    fn open(settings: &Settings) -> Done<Self> {
        if FAULT == FORGETS_WHEN_OPENED {
            fs::remove_dir_all(&settings.dir)?;
            fs::create_dir(&settings.dir)?;
        }
        Ok(Self(Mini::open(settings)?))
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
            MIXES_VALUES_UP => self.0.get(key, |_| read(&[7; 100])),
            FINDS_WHAT_IS_ABSENT => Ok(Some(read(&[7; 100]))),
            _ => self.0.get(key, read),
        }
    }

    fn scan(&self, from: &[u8], most: usize, each: impl FnMut(&[u8], &[u8])) -> Done {
        self.0.scan(from, if FAULT == ENDS_SCANS_EARLY { most.min(9) } else { most }, each)
    }

    fn flush(&self) -> Done {
        self.0.flush()
    }

    fn close(self) -> Done {
        self.0.close()
    }
}

fn refusal<const FAULT: u8>(workload: Workload) -> String {
    run::<Faulty<FAULT>>(&request(&[workload], Store::Engine)).expect_err("a wrong engine")
}

#[test]
fn wrong_engines_are_found_out() {
    // Catches a bench that measures whatever an engine returns, and contents that nobody looks at where no read is measured.
    use Workload::{Get, Miss, Open, Overwrite, Put, PutBatch, Replay, Scan100, SyncedPut, YcsbA, YcsbE, YcsbF};
    for (refusal, expected) in [
        (refusal::<LOSES_A_WRITE>(Put), "expected 700 entries in order, found 699"),
        (refusal::<LOSES_A_WRITE>(SyncedPut), "expected 700 entries in order, found 699"),
        (refusal::<LOSES_A_WRITE>(Replay), "expected 700 entries in order, found 699"),
        (refusal::<CUTS_A_BATCH>(PutBatch), "expected 700 entries in order, found 693"),
        (refusal::<MIXES_VALUES_UP>(Get), "get: expected 700 right values, found 700, not all of them right"),
        (refusal::<MIXES_VALUES_UP>(YcsbF), "get: expected"),
        (refusal::<FINDS_WHAT_IS_ABSENT>(Miss), "get: expected"),
        (refusal::<ENDS_SCANS_EARLY>(Scan100), "scan-100: expected"),
        (refusal::<ENDS_SCANS_EARLY>(YcsbE), "ycsb-e: expected"),
        (refusal::<KEEPS_OLD_VALUES>(Overwrite), "expected 700 entries in order, found 700, of which"),
        (refusal::<KEEPS_OLD_VALUES>(YcsbA), "ycsb-a: expected"),
        (refusal::<FORGETS_WHEN_OPENED>(Open), "expected the first key, found none"),
        (refusal::<FORGETS_WHEN_OPENED>(Replay), "expected the first key, found none"),
    ] {
        assert!(refusal.contains(expected), "{refusal}");
    }
}

#[test]
fn samples_are_those_asked_for_with_times_and_facts() {
    // Catches a fill that nobody asked for among the samples, times and amplifications that are missing or not plausible, records
    // counted instead of seeks, and a database left behind.
    let wanted: Vec<_> = Workload::of(Store::Engine).filter(|of| *of != Workload::Put).collect();
    let outcome = run::<Mini>(&request(&wanted, Store::TenTimesCache)).expect("right");
    let mut done: Vec<_> = outcome.samples.iter().map(|sample| sample.workload).collect();
    done.sort_by_key(|workload| *workload as usize);
    assert_eq!(done, wanted);
    let sample = |workload| outcome.sample(workload).expect("asked for");
    let operations = [Workload::Load, Workload::Overwrite, Workload::Scan100, Workload::YcsbA, Workload::Open];
    assert_eq!(operations.map(|of| sample(of).operations), [700, 2100, 7, 140, 1]);
    for workload in
        [Workload::SyncedPut, Workload::PutBatch, Workload::Get, Workload::YcsbD, Workload::ReadWhileWriting]
    {
        let latency = sample(workload).latency.expect("timed");
        assert!(latency.p50 > 0.0 && latency.max >= latency.p999, "{workload:?}: {latency:?}");
    }
    let fact = |workload, fact: Fact| sample(workload).facts.get(&fact).copied();
    assert_eq!(fact(Workload::SyncedPut, Fact::Syncs), Some(1.0));
    // The keys alone are 14 % of the records; three in four writes are obsolete in the end.
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
    // Catches a floor that drops what it is given, which would be the fastest of all.
    let directory = tempfile::tempdir().expect("a directory");
    let settings = |subject| {
        let dir = directory.path().to_owned();
        Settings { subject, dir, cache_bytes: 1, memtable_bytes: 1, synced: false }
    };
    let record = |number, key, value| Record { number, key, value };
    let log = Log::open(&settings(Subject::Log)).expect("a log");
    log.put(record(0, b"b", b"2")).and_then(|()| log.put_batch(once(record(1, b"a", b"1")))).expect("written");
    log.put(record(2, b"b", b"3")).expect("written");
    let expected = [(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), b"3".to_vec())];
    let mut entries = Vec::new();
    log.scan(&[], usize::MAX, |key, value| entries.push((key.to_vec(), value.to_vec()))).expect("a scan");
    assert_eq!(entries, expected);
    for subject in [Subject::Memtable, Subject::Hashmap, Subject::Vec, Subject::Log] {
        let workloads = [Workload::Put, Workload::Get].into_iter().filter(|of| subject.can(*of)).collect();
        let request = Request { subject, workloads, ..request(&[], Store::Engine) };
        let outcome = crate::round::run(&request).expect("right");
        assert_eq!(outcome.samples[0].operations, ENTRIES as u64);
    }
}
