//! The goals themselves, and the numbers that they ask for.

use super::measure::Bound::{AtLeast, AtMost};
use super::measure::Measure::{
    FactTimesThreads, Itself, MegabytesPerSecond, Millis, ShareOfFloors, TailRatio, TimeIn, Times, TimesOneThread,
    TimesSkipLists,
};
use super::measure::{Base, Goal, Row};
use crate::round::Fact::{Memory, ReadAmplification, SpaceAmplification, Syncs, WriteAmplification, WriteCalls};
use crate::spec::KeySet::{Descending, Paths, Random, Sequential, Urls};
use crate::spec::Store::{Engine, SmallCache, TenTimesCache};
use crate::spec::Workload::{
    Get, GetMany, Insert, InsertLatency, Load, Miss, Open, Overwrite, Put, PutBatch, Replay, Reverse, Scan, Scan100,
    SeekOne, Sort, SyncedPut, YcsbA, YcsbB, YcsbC, YcsbD, YcsbE, YcsbF,
};
use crate::spec::{Access, Shape, Store, Subject, Workload};

const FULL: usize = 3_000_000;

const RANDOM: Shape = Shape::new(Random, FULL);
const ASCENDING: Shape = Shape::new(Sequential, FULL);
const DESCENDING: Shape = Shape::new(Descending, FULL);
const PATHS: Shape = Shape::new(Paths, FULL);
const URLS: Shape = Shape::new(Urls, FULL);
const ZIPFIAN: Shape = Shape { access: Access::Zipfian, ..RANDOM };
const SMALL: Shape = Shape::new(Random, 100_000);

/// A database of random keys.
const fn database(store: Store, entries: usize) -> Shape {
    Shape::new(Random, entries).in_store(store)
}

const fn synced(threads: usize) -> Shape {
    database(Engine, 3200).with_threads(threads)
}

const SINGLE: &[Subject] = &[Subject::Fastskip, Subject::Memtable];
const BATCHED: &[Subject] = &[Subject::FastskipBatch, Subject::MemtableBatch];
const OURS: &[Subject] = &[Subject::Fastskip, Subject::FastskipBatch, Subject::Memtable, Subject::MemtableBatch];
const MINI: &[Subject] = &[Subject::MiniEngine];

/// The same workload, as peers do it, by this subject.
const fn by(subject: Subject) -> Base {
    (Some(subject), None)
}

const fn at(subject: Subject, workload: Workload) -> Base {
    (Some(subject), Some(workload))
}

const PUBLISHED: Base = by(Subject::FastskipPublished);
const BTREE: Base = by(Subject::Btreemap);
const FJALL: Base = by(Subject::Fjall);
const ROCKSDB: Base = by(Subject::Rocksdb);
const LMDB: Base = by(Subject::Lmdb);
const APPEND: Base = at(Subject::Vec, Insert);

#[rustfmt::skip]
pub(super) const GOALS: &[Goal] = &[
    Goal { name: "N1", asks: "random inserts, one by one", rows: &[
        Row { subjects: SINGLE, workloads: &[Insert], shapes: &[RANDOM],
              checks: &[(Times(PUBLISHED), AtLeast(3.5)), (Times(BTREE), AtLeast(2.5))] }] },
    Goal { name: "N2", asks: "random inserts in batches", rows: &[
        Row { subjects: BATCHED, workloads: &[Insert], shapes: &[RANDOM],
              checks: &[(Times(PUBLISHED), AtLeast(9.0)), (TimeIn(&[APPEND, at(Subject::Vec, Sort)]), AtMost(0.35))] }] },
    Goal { name: "N3", asks: "tables of 100K", rows: &[
        Row { subjects: SINGLE, workloads: &[Insert], shapes: &[SMALL],
              checks: &[(TimesSkipLists, AtLeast(2.0)), (Times(BTREE), AtLeast(2.8))] }] },
    Goal { name: "N4", asks: "inserts in order, ascending and descending", rows: &[
        Row { subjects: SINGLE, workloads: &[Insert], shapes: &[ASCENDING], checks: &[(TimeIn(&[APPEND]), AtMost(0.3))] },
        Row { subjects: SINGLE, workloads: &[Insert], shapes: &[DESCENDING], checks: &[(TimeIn(&[APPEND]), AtMost(0.4))] }] },
    Goal { name: "N5", asks: "lookups", rows: &[
        Row { subjects: SINGLE, workloads: &[Get, Miss], shapes: &[RANDOM],
              checks: &[(Times(PUBLISHED), AtLeast(5.0)), (Times(BTREE), AtLeast(2.8))] },
        Row { subjects: BATCHED, workloads: &[GetMany], shapes: &[RANDOM], checks: &[(Times(PUBLISHED), AtLeast(28.0))] }] },
    Goal { name: "N6", asks: "scans, forward and back", rows: &[
        Row { subjects: SINGLE, workloads: &[Scan], shapes: &[RANDOM],
              checks: &[(Times(PUBLISHED), AtLeast(9.0)), (Times(BTREE), AtLeast(1.0))] },
        Row { subjects: SINGLE, workloads: &[Reverse], shapes: &[RANDOM], checks: &[(TimeIn(&[(None, Some(Scan))]), AtMost(1.5))] }] },
    Goal { name: "N7", asks: "two threads on two cores", rows: &[
        Row { subjects: OURS, workloads: &[Insert, Get, GetMany, Miss, Scan, Reverse], shapes: &[RANDOM.with_threads(2)],
              checks: &[(TimesOneThread, AtLeast(1.7))] },
        Row { subjects: OURS, workloads: &[Insert],
              shapes: &[SMALL.with_threads(2), ASCENDING.with_threads(2), DESCENDING.with_threads(2)],
              checks: &[(TimesOneThread, AtLeast(1.7))] }] },
    Goal { name: "N8", asks: "paths, web addresses and skewed access", rows: &[
        Row { subjects: SINGLE, workloads: &[Insert], shapes: &[PATHS, URLS], checks: &[(Times(PUBLISHED), AtLeast(3.0))] },
        Row { subjects: SINGLE, workloads: &[Get], shapes: &[PATHS, URLS, ZIPFIAN], checks: &[(Times(PUBLISHED), AtLeast(4.0))] },
        Row { subjects: BATCHED, workloads: &[GetMany], shapes: &[PATHS, URLS, ZIPFIAN], checks: &[(Times(PUBLISHED), AtLeast(8.0))] }] },
    Goal { name: "N9", asks: "small tables, one to 8 threads", rows: &[
        Row { subjects: SINGLE, workloads: &[SeekOne], shapes: &[Shape::published(Sequential, 1000, 1), Shape::published(Random, 1000, 1)],
              checks: &[(Times(PUBLISHED), AtLeast(1.0)), (Times(BTREE), AtLeast(1.0))] },
        Row { subjects: SINGLE, workloads: &[Insert, Get, Miss, SeekOne],
              shapes: &[Shape::published(Sequential, 10_000, 1), Shape::published(Random, 10_000, 1)],
              checks: &[(Times(PUBLISHED), AtLeast(1.0)), (Times(BTREE), AtLeast(1.0))] },
        Row { subjects: SINGLE, workloads: &[Insert],
              shapes: &[Shape::published(Sequential, 40_000, 4), Shape::published(Random, 40_000, 4),
                        Shape::published(Sequential, 80_000, 8), Shape::published(Random, 80_000, 8)],
              checks: &[(Times(PUBLISHED), AtLeast(1.0)), (Times(BTREE), AtLeast(1.0))] }] },
    Goal { name: "N11", asks: "the slowest of a thousand inserts", rows: &[
        Row { subjects: &[Subject::Memtable], workloads: &[InsertLatency], shapes: &[RANDOM], checks: &[(TailRatio, AtMost(8.0))] }] },
    Goal { name: "E1", asks: "engine: puts, one by one", rows: &[
        Row { subjects: MINI, workloads: &[Put], shapes: &[database(Engine, 600_000), database(Engine, FULL)],
              checks: &[(Times(FJALL), AtLeast(3.0)), (Times(ROCKSDB), AtLeast(5.0)), (Itself(WriteCalls), AtMost(0.05))] }] },
    Goal { name: "E2", asks: "engine: puts in batches of 100", rows: &[
        Row { subjects: MINI, workloads: &[PutBatch], shapes: &[database(Engine, 600_000)], checks: &[(Times(LMDB), AtLeast(2.0))] }] },
    Goal { name: "E3", asks: "engine: synced puts by 1 to 32 threads", rows: &[
        Row { subjects: MINI, workloads: &[SyncedPut], shapes: &[synced(1), synced(2), synced(8), synced(32)],
              checks: &[(Times(ROCKSDB), AtLeast(1.0)), (FactTimesThreads(Syncs), AtMost(2.0))] }] },
    Goal { name: "E4", asks: "engine: lookups in cache, hits and misses", rows: &[
        Row { subjects: MINI, workloads: &[Get], shapes: &[database(Engine, 600_000)],
              checks: &[(TimeIn(&[LMDB]), AtMost(1.2)), (Times(ROCKSDB), AtLeast(3.0)), (Times(FJALL), AtLeast(3.0))] },
        Row { subjects: MINI, workloads: &[Miss], shapes: &[database(Engine, 600_000)],
              checks: &[(Times(at(Subject::Rocksdb, Get)), AtLeast(5.0)), (Times(at(Subject::Fjall, Get)), AtLeast(5.0))] }] },
    Goal { name: "E5", asks: "engine: scans of 100", rows: &[
        Row { subjects: MINI, workloads: &[Scan100], shapes: &[database(Engine, 600_000)],
              checks: &[(TimeIn(&[LMDB]), AtMost(1.5)), (Times(ROCKSDB), AtLeast(4.0)), (Times(FJALL), AtLeast(4.0))] }] },
    Goal { name: "E6", asks: "engine: bulk loads", rows: &[
        Row { subjects: MINI, workloads: &[Load],
              shapes: &[database(Engine, 100_000), database(Engine, 600_000), database(Engine, FULL)],
              checks: &[(ShareOfFloors, AtLeast(0.85)), (Times(FJALL), AtLeast(1.0)), (Times(ROCKSDB), AtLeast(1.0))] },
        Row { subjects: MINI, workloads: &[Load],
              shapes: &[Shape::new(Sequential, 100_000).in_store(Engine), Shape::new(Sequential, 600_000).in_store(Engine),
                        ASCENDING.in_store(Engine)],
              checks: &[(Times(FJALL), AtLeast(1.0)), (Times(ROCKSDB), AtLeast(1.0))] }] },
    Goal { name: "E7", asks: "engine: amplifications after overwriting", rows: &[
        Row { subjects: MINI, workloads: &[Overwrite], shapes: &[database(TenTimesCache, 600_000)],
              checks: &[(Itself(WriteAmplification), AtMost(10.0)), (Itself(ReadAmplification), AtMost(1.2)),
                        (Itself(SpaceAmplification), AtMost(1.15))] },
        Row { subjects: &[Subject::MiniEngineTiered], workloads: &[Overwrite], shapes: &[database(TenTimesCache, 600_000)],
              checks: &[(Itself(WriteAmplification), AtMost(3.0)), (Itself(ReadAmplification), AtMost(3.0)),
                        (Itself(SpaceAmplification), AtMost(1.6))] },
        Row { subjects: &[Subject::MiniEngineLazyLeveled, Subject::MiniEnginePartial], workloads: &[Overwrite],
              shapes: &[database(TenTimesCache, 600_000)],
              checks: &[(Itself(WriteAmplification), AtMost(10.0)), (Itself(ReadAmplification), AtMost(3.0)),
                        (Itself(SpaceAmplification), AtMost(1.6))] }] },
    Goal { name: "E8", asks: "engine: YCSB, data ten times the cache", rows: &[
        Row { subjects: MINI, workloads: &[YcsbA, YcsbB, YcsbC, YcsbD, YcsbE, YcsbF], shapes: &[database(TenTimesCache, 600_000)],
              checks: &[(Times(FJALL), AtLeast(1.0)), (Times(ROCKSDB), AtLeast(1.0))] }] },
    Goal { name: "E9", asks: "engine: opening, and replaying the log", rows: &[
        Row { subjects: MINI, workloads: &[Open], shapes: &[database(Engine, FULL)], checks: &[(Millis, AtMost(50.0))] },
        Row { subjects: MINI, workloads: &[Replay], shapes: &[database(Engine, 350_000)], checks: &[(MegabytesPerSecond, AtLeast(300.0))] }] },
    Goal { name: "E10", asks: "engine: memory", rows: &[
        Row { subjects: MINI, workloads: &[Put, Get], shapes: &[database(SmallCache, 600_000)], checks: &[(Itself(Memory), AtMost(1.3))] }] },
];
