//! The goals and their required numbers.

use super::measure::Bound::{AtLeast, AtMost};
use super::measure::{Goal, Measure, Measurement};
use crate::round::Fact::{Memory, ReadAmplification, SpaceAmplification, Syncs, WriteAmplification, WriteCalls};
use crate::round::Percentile;
use crate::spec::KeySet::{Descending, Paths, Random, Sequential, Urls};
use crate::spec::Store::{Engine, SmallCache, TenTimesCache};
use crate::spec::Subject::{Btreemap, FastskipPublished, Fjall, Lmdb, Masstree, Rocksdb, Vec};
use crate::spec::Workload::{
    Get, GetMany, Insert, InsertLatency, Load, Miss, Open, Overwrite, Put, PutBatch, Replay, Reverse, Scan, Scan100,
    SeekOne, Sort, SyncedPut, YcsbA, YcsbB, YcsbC, YcsbD, YcsbE, YcsbF,
};
use crate::spec::{Access, Shape, Store, Subject};

const FULL: usize = 3_000_000;

const RANDOM: Shape = Shape::new(Random, FULL);
const ASCENDING: Shape = Shape::new(Sequential, FULL);
const DESCENDING: Shape = Shape::new(Descending, FULL);
const PATHS: Shape = Shape::new(Paths, FULL);
const URLS: Shape = Shape::new(Urls, FULL);
const ZIPFIAN: Shape = Shape { access: Access::Zipfian, ..RANDOM };
const SMALL: Shape = Shape::new(Random, 100_000);

const fn random(entries: usize, threads: usize) -> Shape {
    Shape::new(Random, entries).with_threads(threads)
}

/// From tables that fit into the second-level cache to tables that fit into no cache. 480,000 entries fill a memtable of 64 MiB.
const SIZES: &[Shape] = &[
    random(1000, 1),
    random(100_000, 1),
    random(480_000, 1),
    random(3_000_000, 1),
    random(10_000_000, 1),
    random(1000, 2),
    random(100_000, 2),
    random(480_000, 2),
    random(3_000_000, 2),
    random(10_000_000, 2),
];

/// Tables of the published crate's own README.
const fn published(entries: usize, threads: usize) -> [Shape; 2] {
    [Shape::published(Sequential, entries, threads), Shape::published(Random, entries, threads)]
}

const TABLES_1K: &[Shape] = &published(1000, 1);
const TABLES_10K: &[Shape] = &published(10_000, 1);
const TABLES_4_THREADS: &[Shape] = &published(40_000, 4);
const TABLES_8_THREADS: &[Shape] = &published(80_000, 8);

/// A database of random keys.
const fn database(store: Store, entries: usize) -> Shape {
    Shape::new(Random, entries).in_store(store)
}

const fn synced(threads: usize) -> Shape {
    database(Engine, 3200).with_threads(threads)
}

const DB_100K: Shape = database(Engine, 100_000);
const DB_600K: Shape = database(Engine, 600_000);
const DB_3M: Shape = database(Engine, FULL);
const TEN_TIMES: Shape = database(TenTimesCache, 600_000);

/// The same number of keys in order.
const fn in_order(shape: Shape) -> Shape {
    Shape { keys: Sequential, ..shape }
}

const SINGLE: &[Subject] = &[Subject::Fastskip, Subject::Memtable];
const BATCHED: &[Subject] = &[Subject::FastskipBatch, Subject::MemtableBatch];
const OURS: &[Subject] = &[Subject::Fastskip, Subject::FastskipBatch, Subject::Memtable, Subject::MemtableBatch];
const MINI: &[Subject] = &[Subject::MiniEngine];
const TIERED: &[Subject] = &[Subject::MiniEngineTiered];
const LAZY_OR_PARTIAL: &[Subject] = &[Subject::MiniEngineLazyLeveled, Subject::MiniEnginePartial];

/// A ratio.
const fn x(says: &'static str, of: fn(&Measurement<'_>) -> Option<f64>) -> Measure {
    Measure { says, unit: "x", of }
}

const fn itself(says: &'static str, unit: &'static str, of: fn(&Measurement<'_>) -> Option<f64>) -> Measure {
    Measure { says, unit, of }
}

const PUBLISHED: Measure = x("times as fast as fastskip-published", |at| at.times(FastskipPublished));
const BTREE: Measure = x("times as fast as btreemap", |at| at.times(Btreemap));
const MASSTREE: Measure = x("times as fast as masstree", |at| at.times(Masstree));
const FJALL: Measure = x("times as fast as fjall", |at| at.times(Fjall));
const FJALL_GET: Measure = x("times as fast as fjall get", |at| at.times_at(Fjall, Get));
const ROCKSDB: Measure = x("times as fast as rocksdb", |at| at.times(Rocksdb));
const ROCKSDB_GET: Measure = x("times as fast as rocksdb get", |at| at.times_at(Rocksdb, Get));
const LMDB: Measure = x("times as fast as lmdb", |at| at.times(Lmdb));
const SKIP_LISTS: Measure = x("times as fast as the fastest skip-list peer", |at| at.figure()?.times_close_peer);
const ONE_THREAD: Measure = x("rate divided by that of one thread", |at| Some(at.of_one_thread()? / at.nanos()?));
const OF_LMDB: Measure = x("time divided by that of lmdb", |at| at.share(&[(Lmdb, at.workload.of_peers())]));
const OF_APPEND: Measure = x("time divided by that of vec insert", |at| at.share(&[(Vec, Insert)]));
const OF_SORT: Measure =
    x("time divided by that of vec insert and vec sort", |at| at.share(&[(Vec, Insert), (Vec, Sort)]));
const OF_BTREE: Measure = x("time divided by that of btreemap", |at| at.share(&[(Btreemap, at.workload.of_peers())]));
const ONE_BY_ONE: Measure = x("times as fast as one by one", |at| at.times(at.subject.one_by_one()?));
const OF_SCAN: Measure = x("time divided by that of scan", |at| at.share(&[(at.subject, Scan)]));
const OF_FLOORS: Measure = x("times as fast as the slower of memtable and log", |at| at.of_floors());
const TAIL: Measure = x("p99.9 divided by the median", |at| at.latency(Percentile::TailRatio));
const WRITE_CALLS: Measure = itself("write-calls", "", |at| at.fact(WriteCalls));
const SYNCS: Measure = itself("syncs, times threads", "", |at| Some(at.fact(Syncs)? * at.shape().threads as f64));
const WRITTEN: Measure = itself("write-amplification", "", |at| at.fact(WriteAmplification));
const READ: Measure = itself("read-amplification", "", |at| at.fact(ReadAmplification));
const SPACE: Measure = itself("space-amplification", "", |at| at.fact(SpaceAmplification));
const MEMORY: Measure = itself("memory", "", |at| at.fact(Memory));
const MILLIS: Measure = itself("itself", " ms", |at| Some(at.nanos()? / 1e6));
const RATE: Measure = itself("itself", " MB/s", |at| at.megabytes_per_second());

#[rustfmt::skip]
pub(super) const GOALS: &[Goal] = &[
    Goal { name: "N1", asks: "random inserts, one by one", rows: &[
        (SINGLE, &[Insert], &[RANDOM], &[(PUBLISHED, AtLeast(3.5)), (BTREE, AtLeast(2.5))])] },
    Goal { name: "N2", asks: "random inserts in batches", rows: &[
        (BATCHED, &[Insert], &[RANDOM], &[(PUBLISHED, AtLeast(9.0)), (OF_SORT, AtMost(0.35))])] },
    Goal { name: "N3", asks: "tables of 100K", rows: &[
        (SINGLE, &[Insert], &[SMALL], &[(SKIP_LISTS, AtLeast(2.0)), (BTREE, AtLeast(2.8))])] },
    Goal { name: "N4", asks: "inserts in order, ascending and descending", rows: &[
        (SINGLE, &[Insert], &[ASCENDING], &[(OF_APPEND, AtMost(0.3))]),
        (SINGLE, &[Insert], &[DESCENDING], &[(OF_APPEND, AtMost(0.4))])] },
    Goal { name: "N5", asks: "lookups", rows: &[
        (SINGLE, &[Get, Miss], &[RANDOM], &[(PUBLISHED, AtLeast(5.0)), (BTREE, AtLeast(2.8))]),
        (BATCHED, &[GetMany], &[RANDOM], &[(PUBLISHED, AtLeast(28.0))])] },
    Goal { name: "N6", asks: "scans, forward and back", rows: &[
        (SINGLE, &[Scan], &[RANDOM], &[(PUBLISHED, AtLeast(9.0)), (BTREE, AtLeast(1.0))]),
        (SINGLE, &[Reverse], &[RANDOM], &[(OF_SCAN, AtMost(1.5))])] },
    Goal { name: "N7", asks: "two threads on two cores", rows: &[
        (OURS, &[Insert, Get, GetMany, Miss, Scan, Reverse], &[RANDOM.with_threads(2)], &[(ONE_THREAD, AtLeast(1.7))]),
        (OURS, &[Insert], &[SMALL.with_threads(2), ASCENDING.with_threads(2), DESCENDING.with_threads(2)],
         &[(ONE_THREAD, AtLeast(1.7))])] },
    Goal { name: "N8", asks: "paths, web addresses and skewed access", rows: &[
        (SINGLE, &[Insert], &[PATHS, URLS], &[(PUBLISHED, AtLeast(3.0))]),
        (SINGLE, &[Get], &[PATHS, URLS, ZIPFIAN], &[(PUBLISHED, AtLeast(4.0))]),
        (BATCHED, &[GetMany], &[PATHS, URLS, ZIPFIAN], &[(PUBLISHED, AtLeast(8.0))])] },
    Goal { name: "N9", asks: "small tables, one to 8 threads", rows: &[
        (SINGLE, &[SeekOne], TABLES_1K, &[(PUBLISHED, AtLeast(1.0)), (BTREE, AtLeast(1.0))]),
        (SINGLE, &[Insert, Get, Miss, SeekOne], TABLES_10K, &[(PUBLISHED, AtLeast(1.0)), (BTREE, AtLeast(1.0))]),
        (SINGLE, &[Insert], TABLES_4_THREADS, &[(PUBLISHED, AtLeast(1.0)), (BTREE, AtLeast(1.0))]),
        (SINGLE, &[Insert], TABLES_8_THREADS, &[(PUBLISHED, AtLeast(1.0)), (BTREE, AtLeast(1.0))])] },
    Goal { name: "N11", asks: "the slowest of a thousand inserts", rows: &[
        (&[Subject::Memtable], &[InsertLatency], &[RANDOM], &[(TAIL, AtMost(8.0))])] },
    Goal { name: "T1", asks: "one by one, 1 K to 10 M random keys, one and two threads", rows: &[
        (SINGLE, &[Insert, Get], SIZES, &[(MASSTREE, AtLeast(1.3)), (SKIP_LISTS, AtLeast(2.0)), (BTREE, AtLeast(1.3))])] },
    Goal { name: "T2", asks: "the same in batches", rows: &[
        (BATCHED, &[Insert, GetMany], SIZES, &[(ONE_BY_ONE, AtLeast(1.0))]),
        (BATCHED, &[Insert, GetMany], &[RANDOM], &[(PUBLISHED, AtLeast(9.0)), (MASSTREE, AtLeast(3.0))])] },
    Goal { name: "T3", asks: "scans of random and of ascending keys", rows: &[
        (SINGLE, &[Scan], &[RANDOM, ASCENDING], &[(MASSTREE, AtLeast(2.5)), (OF_BTREE, AtMost(1.3))])] },
    Goal { name: "T4", asks: "paths and web addresses, beside masstree", rows: &[
        (SINGLE, &[Insert, Get], &[PATHS, URLS], &[(MASSTREE, AtLeast(1.8))])] },
    Goal { name: "E1", asks: "engine: puts, one by one", rows: &[
        (MINI, &[Put], &[DB_600K, DB_3M], &[(FJALL, AtLeast(3.0)), (ROCKSDB, AtLeast(5.0)), (WRITE_CALLS, AtMost(0.05))])] },
    Goal { name: "E2", asks: "engine: puts in batches of 100", rows: &[
        (MINI, &[PutBatch], &[DB_600K], &[(LMDB, AtLeast(2.0))])] },
    Goal { name: "E3", asks: "engine: synced puts by 1 to 32 threads", rows: &[
        (MINI, &[SyncedPut], &[synced(1), synced(2), synced(8), synced(32)], &[(ROCKSDB, AtLeast(1.0)), (SYNCS, AtMost(2.0))])] },
    Goal { name: "E4", asks: "engine: lookups in cache, hits and misses", rows: &[
        (MINI, &[Get], &[DB_600K], &[(OF_LMDB, AtMost(1.2)), (ROCKSDB, AtLeast(3.0)), (FJALL, AtLeast(3.0))]),
        (MINI, &[Miss], &[DB_600K], &[(ROCKSDB_GET, AtLeast(5.0)), (FJALL_GET, AtLeast(5.0))])] },
    Goal { name: "E5", asks: "engine: scans of 100", rows: &[
        (MINI, &[Scan100], &[DB_600K], &[(OF_LMDB, AtMost(1.5)), (ROCKSDB, AtLeast(4.0)), (FJALL, AtLeast(4.0))])] },
    Goal { name: "E6", asks: "engine: bulk loads", rows: &[
        (MINI, &[Load], &[DB_100K, DB_600K, DB_3M], &[(OF_FLOORS, AtLeast(0.85)), (FJALL, AtLeast(1.0)), (ROCKSDB, AtLeast(1.0))]),
        (MINI, &[Load], &[in_order(DB_100K), in_order(DB_600K), in_order(DB_3M)], &[(FJALL, AtLeast(1.0)), (ROCKSDB, AtLeast(1.0))])] },
    Goal { name: "E7", asks: "engine: amplifications after overwriting", rows: &[
        (MINI, &[Overwrite], &[TEN_TIMES], &[(WRITTEN, AtMost(10.0)), (READ, AtMost(1.2)), (SPACE, AtMost(1.15))]),
        (TIERED, &[Overwrite], &[TEN_TIMES], &[(WRITTEN, AtMost(3.0)), (READ, AtMost(3.0)), (SPACE, AtMost(1.6))]),
        (LAZY_OR_PARTIAL, &[Overwrite], &[TEN_TIMES], &[(WRITTEN, AtMost(10.0)), (READ, AtMost(3.0)), (SPACE, AtMost(1.6))])] },
    Goal { name: "E8", asks: "engine: YCSB, data ten times the cache", rows: &[
        (MINI, &[YcsbA, YcsbB, YcsbC, YcsbD, YcsbE, YcsbF], &[TEN_TIMES], &[(FJALL, AtLeast(1.0)), (ROCKSDB, AtLeast(1.0))])] },
    Goal { name: "E9", asks: "engine: opening, and replaying the log", rows: &[
        (MINI, &[Open], &[DB_3M], &[(MILLIS, AtMost(50.0))]),
        (MINI, &[Replay], &[database(Engine, 350_000)], &[(RATE, AtLeast(300.0))])] },
    Goal { name: "E10", asks: "engine: memory", rows: &[
        (MINI, &[Put, Get], &[database(SmallCache, 600_000)], &[(MEMORY, AtMost(1.3))])] },
];
