//! Limits are exact: returned room can be used again, and a refused write closes nothing.

use std::sync::Barrier;
use std::thread;

use fastskip::{ConcurrentSkipList, InsertError, Memtable, Op};
use proptest::prelude::*;

fn key(number: usize) -> [u8; 8] {
    (number as u64).to_be_bytes()
}

fn put<'a>(key: &'a [u8], value: &'static [u8]) -> Op<'a> {
    Op::Put { key, value }
}

/// A table of `shards` shards, each of which holds a chunk that is nearly empty.
fn spread(shards: usize, limit: usize) -> Memtable {
    let memtable = Memtable::builder().shards(shards).max_memory_bytes(limit).build();
    let barrier = Barrier::new(shards);
    thread::scope(|scope| {
        for number in 0..shards {
            let (memtable, barrier) = (&memtable, &barrier);
            scope.spawn(move || {
                barrier.wait();
                memtable.put(&key(1_000_000 + number), 1, b"").unwrap();
                barrier.wait();
            });
        }
    });
    memtable
}

/// Stores small entries until one is refused; returns how many.
fn fill(memtable: &Memtable) -> usize {
    (0..).take_while(|number| memtable.put(&key(*number), 2, &[3; 100]).is_ok()).count()
}

/// Catches batches whose room is lost when they are dropped because they were larger than a shard's chunk.
#[test]
fn dropped_batches_of_any_size_leave_the_table_empty() {
    for size in [1_usize, 100, 5_000, 27_000, 300_000, 3_000_000] {
        let memtable = Memtable::builder().shards(16).max_memory_bytes(8 << 20).build();
        memtable.put(b"first", 1, b"").unwrap();
        let (before, value) = (memtable.memory_usage(), vec![1; size]);
        for round in 0..3000 {
            let ops = [Op::Put { key: b"a", value: &value }, Op::Delete { key: b"b" }];
            let reserved = memtable.reserve(&ops);
            assert!(reserved.is_ok(), "{size} bytes, round {round}: {reserved:?}");
        }
        assert!(memtable.memory_usage() - before < 128 << 10, "{size} bytes: {:?}", memtable.stats());
        memtable.validate();
        assert!(fill(&memtable) > 40_000, "{size} bytes: {:?}", memtable.stats());
    }
}

/// Catches room that is lost where reservations overlap in time and the older one is dropped first, or the newer one.
#[test]
fn reservations_dropped_in_any_order_leave_their_room() {
    for size in [10, 500, 20_000] {
        for oldest_first in [true, false] {
            let memtable = Memtable::builder().shards(1).max_memory_bytes(1 << 20).build();
            let value = vec![1; size];
            let ops = [Op::Put { key: b"a", value: &value }];
            for round in 0..5000 {
                let mut held: Vec<_> = (0..4).map(|_| memtable.reserve(&ops)).collect();
                assert!(held.iter().all(Result::is_ok), "{size} bytes, round {round}");
                while !held.is_empty() {
                    drop(held.remove(if oldest_first { 0 } else { held.len() - 1 }));
                }
            }
            assert!(fill(&memtable) > 6_000, "{size} bytes: {:?}", memtable.stats());
            memtable.validate();
        }
    }
}

/// Catches returned pieces that are never used again, if an entry is stored behind each reservation before it is dropped. Also catches small
/// returned pieces that become chunks, which wastes the rest of the previous chunk each time.
#[test]
fn reservations_dropped_behind_entries_leave_their_room() {
    const LIMIT: usize = 4 << 20;
    for (reserved, stored, wasted) in [
        (1000, 900, LIMIT),
        (100, 1000, LIMIT),
        (1000, 20, LIMIT),
        (20_000, 5000, LIMIT),
        (1000, 100, 64 << 10),
        (10_000, 100, 64 << 10),
    ] {
        let memtable = Memtable::builder().shards(1).max_memory_bytes(LIMIT).build();
        let values = [vec![1; reserved], vec![2; stored]];
        let ops = [Op::Put { key: b"dropped", value: &values[0] }];
        let is_open = |number: &u64| {
            let held = memtable.reserve(&ops);
            held.is_ok() && memtable.put(&number.to_be_bytes(), 1, &values[1]).is_ok()
        };
        let entries = (0..).take_while(is_open).count();
        let stats = memtable.stats();
        assert!(stats.memory_usage > LIMIT - LIMIT / 8, "{reserved} and {stored}: {stats:?}, {entries} entries");
        assert!(stats.memory_wasted < wasted, "{reserved} and {stored}: {stats:?}, {entries} entries");
        memtable.validate();
    }
}

/// Stores entries of 500 bytes until one is refused, and checks that nearly all of the limit is used then.
#[track_caller]
fn fills(memtable: &Memtable, limit: usize, context: &str) {
    let entries = (0..).take_while(|number| memtable.put(&key(*number), 9, &[3; 500]).is_ok()).count();
    let used = memtable.memory_usage();
    assert!(used * 100 >= limit * 95, "{context}: {used} of {limit} bytes, {entries} entries: {:?}", memtable.stats());
    memtable.validate();
}

/// Catches addresses that are lost where many reservations are held at once: their pieces do not join, and not all are kept.
#[test]
fn many_reservations_dropped_in_any_order_leave_their_room() {
    const LIMIT: usize = 16 << 20;
    type Order = fn(usize) -> usize;
    let orders: [(&str, Order); 3] =
        [("in order", |index| index), ("even, odd", |index| index % 2), ("scattered", |index| index * 7919 % 4093)];
    for held in [64, 512, 4096] {
        for (name, order) in orders {
            let memtable = Memtable::builder().shards(1).max_memory_bytes(LIMIT).build();
            for round in 0..100 {
                // The value grows from round to round, so it fits only into returned pieces that were joined.
                let value = vec![1; 600 + 11 * round];
                let ops = [Op::Put { key: b"a", value: &value }];
                let mut reserved: Vec<_> = (0..held).map(|index| (order(index), memtable.reserve(&ops))).collect();
                let are_all = reserved.iter().all(|(_, one)| one.is_ok());
                assert!(are_all, "{held} held, {name}, round {round}: {:?}", memtable.stats());
                reserved.sort_by_key(|(place, _)| *place);
            }
            fills(&memtable, LIMIT, &format!("{held} held, {name}"));
        }
    }
}

/// Catches lost addresses where some reservations are applied, so that dropped ones lie between entries, and where several threads do this.
#[test]
fn reservations_dropped_between_entries_leave_their_room() {
    const LIMIT: usize = 16 << 20;
    for threads in [1, 2, 4] {
        let memtable = Memtable::builder().max_memory_bytes(LIMIT).build();
        thread::scope(|scope| {
            for thread in 0..threads {
                let memtable = &memtable;
                scope.spawn(move || {
                    for round in 0..40 {
                        let value = vec![1; 100 + 37 * (round % 11)];
                        let keys: Vec<_> =
                            (0..256).map(|index| key(1_000_000 * (thread + 1) + 1000 * round + index)).collect();
                        let ops: Vec<_> = keys.iter().map(|key| [Op::Put { key, value: &value }]).collect();
                        let held: Vec<_> = ops.iter().filter_map(|ops| memtable.reserve(ops).ok()).collect();
                        for (index, one) in held.into_iter().enumerate() {
                            if index % 4 == 0 {
                                one.apply(1);
                            }
                        }
                    }
                });
            }
        });
        memtable.validate();
        fills(&memtable, LIMIT, &format!("{threads} threads"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Catches any sequence of reserving, dropping and applying that loses room.
    #[test]
    fn whatever_is_reserved_and_dropped_the_limit_is_stored(
        steps in prop::collection::vec((0..3_u8, 1..1500_usize, any::<prop::sample::Index>()), 1..3000)
    ) {
        const LIMIT: usize = 1 << 20;
        let value = vec![5; 1500];
        let keys: Vec<_> = (0..steps.len()).map(|number| key(1_000_000 + number)).collect();
        let ops: Vec<_> = keys.iter().zip(&steps).map(|(key, (_, len, _))| [Op::Put { key, value: &value[..*len] }]).collect();
        let memtable = Memtable::builder().shards(1).max_memory_bytes(LIMIT).build();
        let mut held = Vec::new();
        for ((step, len, index), ops) in (0..20).flat_map(|_| steps.iter().zip(&ops)) {
            match step {
                0 | 1 => held.extend(memtable.reserve(ops).ok()),
                _ if held.is_empty() => {}
                _ => {
                    let one = held.swap_remove(index.index(held.len()));
                    if len % 8 == 0 {
                        one.apply(1);
                    }
                }
            }
        }
        drop(held);
        fills(&memtable, LIMIT, "random");
    }
}

/// Catches lost room of a batch that stored nothing because all its entries existed.
#[test]
fn batch_of_duplicates_gives_its_room_back() {
    let memtable = Memtable::builder().shards(4).max_memory_bytes(4 << 20).build();
    let value = vec![1; 100_000];
    let ops = [Op::Put { key: b"a", value: &value }, put(b"b", b"")];
    for round in 0..500 {
        let stored = memtable.reserve(&ops).unwrap().apply(1).stored;
        assert_eq!(stored, if round == 0 { 2 } else { 0 });
    }
    assert!(memtable.memory_usage() < 300_000, "{:?}", memtable.stats());
    memtable.validate();
}

/// Catches a value that is refused although the unused room in other shards' chunks is as large, and a table that is closed by such a refusal.
#[test]
fn large_value_finds_the_room_that_other_shards_hold() {
    for large in [30_000, 200_000] {
        let memtable = spread(16, 1 << 20);
        let before = memtable.memory_usage();
        let chunk = vec![2; 1000];
        let until = (1 << 20) - 100_000 - large;
        let mut number = 0;
        while memtable.memory_usage() < until {
            memtable.put(&key(number), 5, &chunk).unwrap();
            number += 1;
        }
        assert!(before < 1 << 16);
        assert!(memtable.put(b"large", 1, &vec![4; large]).is_ok(), "{:?}", memtable.stats());
        assert!(memtable.put(b"after", 1, b"").is_ok(), "{:?}", memtable.stats());
        assert!(fill(&memtable) > 400, "{:?}", memtable.stats());
        let stats = memtable.stats();
        assert!(stats.memory_reserved >= 1 << 20 && stats.memory_idle < 4096, "{stats:?}");
        memtable.validate();
    }
}

/// Catches a refusal of a large value that closes a table which has room for smaller ones.
#[test]
fn refused_value_leaves_the_table_open() {
    let memtable = spread(16, 1 << 20);
    // Only the last entry may exceed the limit, so the entries before it must fit.
    let (most, huge) = (vec![1; 600_000], vec![1; 500_000]);
    memtable.put(b"most", 1, &most).unwrap();
    let ops = [Op::Put { key: b"huge", value: &huge }, put(b"last", b"")];
    for _ in 0..100 {
        assert_eq!(memtable.reserve(&ops).err(), Some(InsertError::Full));
    }
    assert!(memtable.put(b"x", 2, b"").is_ok());
    assert!(fill(&memtable) > 2_000, "{:?}", memtable.stats());
    memtable.validate();
}

/// Catches a batch of too many entries whose refusal closes the table.
#[test]
fn batch_refused_for_its_entry_count_closes_nothing() {
    let memtable = Memtable::builder().shards(4).max_entries(1000).max_memory_bytes(1 << 20).build();
    let ops: Vec<_> = (0..600).map(|_| put(b"k", b"")).collect();
    // Nearly all memory is reserved in chunks, although there is only one entry.
    memtable.put(b"large", 1, &vec![1; 990_000]).unwrap();
    assert_eq!(memtable.reserve(&ops).unwrap().apply(2).stored, 600);
    for _ in 0..3 {
        assert_eq!(memtable.reserve(&ops).err(), Some(InsertError::Full));
    }
    assert_eq!(memtable.reserve(&ops[..389]).unwrap().apply(1000).stored, 389);
    for number in 0..10 {
        assert!(memtable.put(&key(number), 1, b"").is_ok());
    }
    assert_eq!(memtable.put(b"late", 1, b""), Err(InsertError::Full));
    memtable.validate();
}

/// Catches a reservation that reaches the limit on memory or entries, is dropped, and still closes the table.
#[test]
fn reservation_past_the_limit_that_is_dropped_leaves_the_table_open() {
    let memtable = Memtable::builder().shards(2).max_memory_bytes(1 << 20).max_entries(1000).build();
    let large = vec![1; 700_000];
    memtable.put(b"first", 1, &large).unwrap();
    let ops = [put(b"small", b""), Op::Put { key: b"large", value: &large }];
    for round in 0..10 {
        let passed = memtable.reserve(&ops).unwrap();
        assert_eq!(memtable.put(b"beside", round, b""), Err(InsertError::Full));
        drop(passed);
        assert!(memtable.put(b"beside", round, b"").is_ok());
    }
    let many: Vec<_> = (0..989).map(|_| put(b"k", b"")).collect();
    drop(memtable.reserve(&many).unwrap());
    assert_eq!(memtable.reserve(&ops).unwrap().apply(10).stored, 2);
    assert_eq!(memtable.put(b"late", 1, b""), Err(InsertError::Full));
    memtable.validate();
}

/// Catches a group of writes that is refused as a whole and then also one by one, although the first of them fit.
#[test]
fn group_that_is_refused_is_stored_one_by_one_as_far_as_it_fits() {
    for (bytes, entries) in [(1 << 20, 0), (0, 150)] {
        let memtable = Memtable::builder().shards(1).max_memory_bytes(bytes).max_entries(entries).build();
        let value = [1; 8000];
        let keys: Vec<_> = (0..100).map(key).collect();
        let ops: Vec<_> = keys.iter().map(|key| Op::Put { key, value: &value }).collect();
        assert_eq!(memtable.reserve(&ops).unwrap().apply(1).stored, 100);
        assert_eq!(memtable.reserve(&ops).err(), Some(InsertError::Full));
        let stored = ops
            .iter()
            .take_while(|op| memtable.reserve(std::slice::from_ref(*op)).is_ok_and(|r| r.apply(1000).stored == 1));
        let stored = stored.count();
        assert!((30..100).contains(&stored), "{stored} of the second group, {:?}", memtable.stats());
        memtable.validate();
    }
}

/// Catches a table that refuses a delete as full while it has room for an insert.
#[test]
fn refused_insert_does_not_stop_deletes() {
    let list = ConcurrentSkipList::with_capacity_and_shards(0, 1, 1 << 20, 0);
    assert!(list.insert(b"a", &vec![1; 700_000]));
    assert_eq!(list.try_insert(b"b", &vec![1; 1 << 21]), Err(InsertError::Full));
    assert_eq!(list.try_delete(b"a"), Ok(true));
    assert_eq!(list.try_insert(b"c", b""), Ok(()));
}
