//! Named sets of cells, so that one word repeats a result.

use clap::ValueEnum;
use itertools::iproduct;

use crate::spec::{Access, Cell, KeySet, Shape, Store, Subject, Workload};

/// The names of sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// The tables of the published crate's own README: small, keys of 64 bytes, up to 8 threads
    Published,
    /// What goals N1 to N9, N11 and T1 to T4 need, and no more
    Goals,
    /// Goals, and what the page draws as curves: 10K to 10M entries, 1 to 8 threads
    Full,
}

impl Preset {
    /// The cells of the preset, including subjects that this build lacks.
    pub(crate) fn cells(self) -> Vec<Cell> {
        match self {
            Self::Published => published(),
            Self::Goals => [goals(), published()].concat(),
            Self::Full => [goals(), published(), curves()].concat(),
        }
    }
}

/// The cells in which these subjects (all if none are given) do these workloads on tables of each shape.
fn each(subjects: &[Subject], workloads: &[Workload], shapes: impl IntoIterator<Item = Shape>) -> Vec<Cell> {
    shapes.into_iter().map(|shape| Cell::new(shape, subjects, workloads)).collect()
}

fn goals() -> Vec<Cell> {
    use KeySet::{Descending, Paths, Random, Sequential, Urls};
    use Subject::{
        Btreemap, CrossbeamSkiplist, Fastskip, FastskipBatch, FastskipPublished, Masstree, Memtable, MemtableBatch, Vec,
    };
    use Workload::{Get, GetMany, Insert, InsertLatency, Miss, Reverse, Scan, Sort};
    let full = |keys| Shape::new(keys, 3_000_000);
    let of_all_sizes = |threads| {
        [1000, 100_000, 480_000, 3_000_000, 10_000_000].map(|of| Shape::new(Random, of).with_threads(threads))
    };
    let ours = &[Fastskip, FastskipBatch, Memtable, MemtableBatch][..];
    let with = |peers: &[Subject]| [ours, peers].concat();
    let two_threads = [Sequential, Descending].map(|keys| full(keys).with_threads(2));
    let all = [Insert, Get, GetMany, Miss, Scan, Reverse];
    [
        each(&with(&[FastskipPublished, Btreemap, Vec]), &[&all[..], &[Sort]].concat(), [full(Random)]),
        each(&with(&[Vec]), &[Insert], [Sequential, Descending].map(full)),
        each(ours, &all, [full(Random).with_threads(2)]),
        each(ours, &[Insert], two_threads),
        each(&with(&[FastskipPublished]), &[Insert, Get, GetMany], [Paths, Urls].map(full)),
        each(&with(&[FastskipPublished]), &[Get, GetMany], [Shape { access: Access::Zipfian, ..full(Random) }]),
        each(&[Fastskip, Memtable, FastskipPublished, CrossbeamSkiplist, Btreemap], &[InsertLatency], [full(Random)]),
        each(
            &with(&[FastskipPublished, CrossbeamSkiplist, Masstree, Btreemap]),
            &[Insert, Get, GetMany],
            [1, 2].map(of_all_sizes).concat(),
        ),
        each(&[Fastskip, Memtable, Masstree, Btreemap], &[Scan], [Random, Sequential].map(full)),
        each(&with(&[Masstree]), &[Insert, Get], [Paths, Urls].map(full)),
    ]
    .concat()
}

fn published() -> Vec<Cell> {
    use Workload::{Get, Insert, Miss, SeekOne};
    let of =
        |entries, threads| [KeySet::Sequential, KeySet::Random].map(|keys| Shape::published(keys, entries, threads));
    [
        each(&[], &[SeekOne], of(1000, 1)),
        each(&[], &[Insert, Get, Miss, SeekOne], of(10_000, 1)),
        each(&[], &[Insert], [of(40_000, 4), of(80_000, 8)].concat()),
    ]
    .concat()
}

fn curves() -> Vec<Cell> {
    use Workload::{Delete, FrozenScan, Get, GetMany, Insert, Miss, Mixed, Mixed95, Scan, Seek, Sort};
    let random = [10_000, 1_000_000, 10_000_000].map(|entries| Shape::new(KeySet::Random, entries));
    let keys = [KeySet::Random, KeySet::Sequential, KeySet::Paths];
    let others = iproduct!(keys, [100_000, 600_000, 3_000_000]).map(|(keys, entries)| Shape::new(keys, entries));
    let threads = [1, 2, 4, 8].map(|threads| random[1].with_threads(threads));
    [
        each(&[], &[Insert, Sort, Get, GetMany, Miss, Scan, Seek, FrozenScan], random.into_iter().chain(others)),
        each(&[], &[Insert, Get, GetMany, Mixed, Mixed95, Delete], threads),
    ]
    .concat()
}

/// The cells for goals E1 to E10, and every engine at 100K entries.
pub(crate) fn engine() -> Vec<Cell> {
    use KeySet::{Random, Sequential};
    use Store::{Engine, SmallCache, TenTimesCache};
    use Subject::{
        Fjall, Leveldb, Lmdb, Log, Memtable, MiniEngine, MiniEngineLazyLeveled, MiniEngineMmap, MiniEnginePartial,
        MiniEngineTiered, MiniEngineVector, Redb, Rocksdb, Sled, Vec,
    };
    use Workload::{
        Get, Load, Miss, Open, Overwrite, Put, PutBatch, ReadWhileWriting, Replay, Scan10, Scan10k, Scan100, SyncedPut,
        YcsbA, YcsbB, YcsbC, YcsbD, YcsbE, YcsbF,
    };
    let shape = |store, keys, entries| Shape::new(keys, entries).in_store(store);
    let [small, middle, large] = [100_000, 600_000, 3_000_000].map(|entries| shape(Engine, Random, entries));
    let reads = [Get, Miss, Scan10, Scan100, Scan10k, ReadWhileWriting, Open];
    let ycsb = [YcsbA, YcsbB, YcsbC, YcsbD, YcsbE, YcsbF];
    let readers = [MiniEngine, MiniEngineMmap, Fjall, Rocksdb, Leveldb, Lmdb];
    let policies =
        [MiniEngine, MiniEngineTiered, MiniEngineLazyLeveled, MiniEnginePartial, Fjall, Rocksdb, Leveldb, Lmdb];
    [
        each(&[], &[&reads[..], &[Put, Load, PutBatch]].concat(), [small]),
        each(&[], &[Put, Load], [shape(Engine, Sequential, 100_000)]),
        each(
            &[Memtable, Vec, MiniEngine, MiniEngineVector, Fjall, Rocksdb, Leveldb, Lmdb, Log],
            &[Put, Load, PutBatch],
            [middle],
        ),
        each(
            &[Memtable, MiniEngine, Fjall, Rocksdb, Leveldb, Lmdb],
            &[Put, Load],
            [shape(Engine, Sequential, 600_000)],
        ),
        each(&[Memtable, MiniEngine, Fjall, Rocksdb, Log], &[Put, Load], [large]),
        each(&[MiniEngine, Fjall, Rocksdb], &[Put, Load], [shape(Engine, Sequential, 3_000_000)]),
        each(&readers, &[Put, Get], [middle.with_threads(2)]),
        each(&[], &[SyncedPut], [1, 2, 8, 32].map(|threads| shape(Engine, Random, 3200).with_threads(threads))),
        each(&readers, &reads, [middle]),
        each(&[MiniEngine, Fjall, Rocksdb], &[Get, Scan100, Open], [large]),
        each(&[MiniEngine], &[Put, Get], [shape(SmallCache, Random, 600_000)]),
        each(&policies, &[&ycsb[..], &[Overwrite]].concat(), [shape(TenTimesCache, Random, 600_000)]),
        each(&[MiniEngine, Redb, Sled], &[&ycsb[..], &[Overwrite]].concat(), [shape(TenTimesCache, Random, 100_000)]),
        each(&[], &[Replay], [shape(Engine, Random, 350_000)]),
    ]
    .concat()
}
