//! Lookups stay cheap however full the table is and however it was filled. The cost is the number of nodes and blocks that they read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fastskip::{Duplicates, InsertError, Lookup, Memtable, Op, Reservation};

/// The finaliser of splitmix64.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

const VALUE: [u8; 20] = [7; 20];

type Keys = fn(u64) -> Vec<u8>;

/// Orders in which keys arrive: some fill the index's blocks well, some leave them almost empty.
const ORDERS: [(&str, Keys); 7] = [
    ("ascending", |i| i.to_be_bytes().to_vec()),
    ("descending", |i| (u64::MAX - i).to_be_bytes().to_vec()),
    ("random", |i| mix(i).to_be_bytes().to_vec()),
    ("two gaps in turns", |i| ((i % 2) << 60 | i).to_be_bytes().to_vec()),
    ("descending pairs that ascend", |i| (u64::MAX - (i | 1) + (i & 1)).to_be_bytes().to_vec()),
    ("ascending between random ones", |i| if i % 2 == 0 { i } else { mix(i) >> 1 }.to_be_bytes().to_vec()),
    ("tied", |i| format!("/common/{}/config/{}/{i}.log", mix(i) % 9, mix(i) / 9 % 9).into_bytes()),
];

/// The operations for the first `count` keys of an order.
fn with_ops<R>(key: Keys, count: usize, then: impl FnOnce(&[Vec<u8>], &[Op<'_>]) -> R) -> R {
    let keys: Vec<_> = (0..count as u64).map(key).collect();
    let ops: Vec<_> = keys.iter().map(|key| Op::Put { key, value: &VALUE }).collect();
    then(&keys, &ops)
}

/// The longest prefix of `ops` for which the table has room.
fn largest<'a>(memtable: &Memtable, ops: &'a [Op<'a>]) -> &'a [Op<'a>] {
    &ops[..(1..=ops.len()).collect::<Vec<_>>().partition_point(|count| memtable.reserve(&ops[..*count]).is_ok())]
}

/// Validates the table, and checks that each lookup of `keys` reads few nodes and blocks, and that their mean is lower still.
#[track_caller]
fn validate_quick(memtable: &Memtable, keys: &[Vec<u8>], context: &str) {
    validate_costs(memtable, keys, 150, context);
}

#[track_caller]
fn validate_costs(memtable: &Memtable, keys: &[Vec<u8>], limit: usize, context: &str) {
    let costs = keys.iter().map(|key| memtable.search_cost(key, u64::MAX));
    let costs: Vec<_> = costs.map(|cost| cost.nodes + cost.blocks).collect();
    let (most, mean) = (costs.iter().max().unwrap(), costs.iter().sum::<usize>() / costs.len());
    println!("{context}: {most} at most, {mean} in the mean, of {} entries", memtable.len());
    assert!(*most <= limit && mean <= 30, "{context}: {most} at most, {mean} in the mean");
    let values = memtable.get_many(keys, u64::MAX);
    assert!(
        values.iter().all(|found| *found == Lookup::Value(&VALUE[..])) && memtable.get(&keys[0], u64::MAX) == values[0]
    );
    memtable.validate();
}

/// Catches a batch that takes all room below the limit and leaves none for the index: each of its entries would step over those before it.
#[test]
fn a_batch_that_fills_the_table_leaves_lookups_quick() {
    for (limit, shards) in [(64 << 10, 1), (1 << 20, 4)] {
        for duplicates in [Duplicates::Reject, Duplicates::Replace] {
            for (name, key) in ORDERS {
                for filled in [0, 1, 2] {
                    let builder = Memtable::builder().shards(shards).max_memory_bytes(limit).duplicates(duplicates);
                    let memtable = builder.build();
                    for older in 0..limit as u64 / 200 * filled {
                        memtable.put(&(older << 40).to_be_bytes(), 1, b"").unwrap();
                    }
                    with_ops(key, limit / 24, |keys, ops| {
                        let batch = largest(&memtable, ops);
                        assert_eq!(memtable.reserve(batch).unwrap().apply(2).stored, batch.len());
                        validate_quick(&memtable, &keys[..batch.len()], &format!("{limit} bytes, {name}, {filled}"));
                        // The room that the index did not need is free again.
                        let (used, room) = (memtable.memory_usage(), limit / 8);
                        assert!(
                            used > limit - room || memtable.put(b"last", 1, &vec![0; room - 1000]).is_ok(),
                            "{used}"
                        );
                    });
                }
            }
        }
    }
}

/// Catches a batch that fits into the current chunk of its shard, and leaves no room for the index anywhere.
#[test]
fn a_batch_that_fills_a_chunk_leaves_lookups_quick() {
    for (name, key) in ORDERS {
        let memtable = Memtable::builder().shards(1).max_memory_bytes(8 << 20).build();
        let is_idle = |number: &u64| {
            memtable.put(&number.to_be_bytes(), 1, &[0; 1000]).unwrap();
            memtable.memory_usage() > 4 << 20 && memtable.stats().memory_idle > 400 << 10
        };
        assert!((0..8000).any(|number| is_idle(&number)));
        let left = (8 << 20) - memtable.stats().memory_reserved;
        memtable.put(b"rest", 1, &vec![0; left - 100]).unwrap();
        with_ops(key, 10_000, |keys, ops| {
            let batch = largest(&memtable, ops);
            assert!((4000..10_000).contains(&batch.len()), "{name}: {} entries", batch.len());
            assert_eq!(memtable.reserve(batch).unwrap().apply(2).stored, batch.len());
            validate_quick(&memtable, &keys[..batch.len()], &format!("{name}, in a chunk"));
        });
    }
}

/// Catches entries that take the last addresses while the free pieces of dropped reservations are too small for the index's blocks.
#[test]
fn puts_into_small_pieces_leave_lookups_quick() {
    const LIMIT: usize = 16 << 20;
    let older: Vec<_> = (0..LIMIT as u32 / 300).map(u32::to_be_bytes).collect();
    let stored: Vec<_> = older.iter().map(|key| [Op::Delete { key }]).collect();
    // One word less than a block and its largest alignment gap.
    let dropped = [Op::Put { key: b"dropped", value: &[0; 38 * 8 - 32] }];
    for (name, key) in &ORDERS[..3] {
        let memtable = Memtable::builder().shards(1).max_memory_bytes(LIMIT).build();
        let pair = |ops| Some((memtable.reserve(ops).ok()?, memtable.reserve(&dropped).ok()?));
        let held: Vec<_> = stored.iter().map_while(|ops| pair(ops)).collect();
        held.into_iter().for_each(|(stored, _)| assert_eq!(stored.apply(1).stored, 1));
        let large = |number: &u32| memtable.put(&[&number.to_be_bytes()[..], b"large"].concat(), 2, &[0; 1000]).is_ok();
        let large = (0..).take_while(large).count();
        let keys: Vec<_> = (0..).map(key).take_while(|key| memtable.put(key, 2, &VALUE).is_ok()).collect();
        assert!(large > 2000 && keys.len() > 10_000, "{large} large, {} small", keys.len());
        validate_quick(&memtable, &keys, &format!("{name}, in small pieces"));
    }
}

/// Catches writers that take the index room of a batch while it is applied. First every key is looked up once, which adds the hints that the batch
/// had to skip because a writer held the block of the index.
#[test]
fn a_batch_is_applied_quickly_beside_threads_that_fill_the_table() {
    const LIMIT: usize = 1 << 20;
    for (name, key) in ORDERS {
        let memtable = Memtable::builder().shards(4).max_memory_bytes(LIMIT).build();
        with_ops(key, LIMIT / 50, |keys, ops| {
            let (batch, is_applied) = (largest(&memtable, &ops[..ops.len() / 2]), AtomicBool::new(false));
            let reservation = memtable.reserve(batch).unwrap();
            thread::scope(|scope| {
                for writer in 0..2_u64 {
                    let (memtable, is_applied) = (&memtable, &is_applied);
                    scope.spawn(move || {
                        let mut numbers = (0..).map(|number: u64| mix(number << 1 | writer).to_be_bytes());
                        while !is_applied.load(Ordering::Relaxed) {
                            _ = memtable.put(&numbers.next().unwrap(), 1, &VALUE);
                        }
                    });
                }
                reservation.apply(2);
                is_applied.store(true, Ordering::Relaxed);
            });
            keys[..batch.len()].iter().for_each(|key| assert_ne!(memtable.get(key, u64::MAX), Lookup::Absent));
            // With gaps between nodes, for address sanitizer, other nodes have hints, and writers are suspended longer while they hold a block.
            let limit = if cfg!(fastskip_poisoned) { 500 } else { 150 };
            validate_costs(&memtable, &keys[..batch.len()], limit, &format!("{name}, beside others"));
        });
    }
}

/// Catches an open reservation that takes the index room of others, and index room that is lost with dropped reservations.
#[test]
fn reservations_that_fill_the_table_together_leave_lookups_quick() {
    const LIMIT: usize = 1 << 20;
    for size in [1, 2, 31, 1000] {
        for (name, key) in ORDERS {
            for drops in [usize::MAX, 3] {
                let memtable = Memtable::builder().shards(2).max_memory_bytes(LIMIT).build();
                with_ops(key, LIMIT / 24, |keys, ops| {
                    let reserve = |ops| match memtable.reserve(ops) {
                        Err(InsertError::Full) => None,
                        reserved => Some(reserved.unwrap()),
                    };
                    let held: Vec<_> = ops.chunks(size).map_while(reserve).collect();
                    let mut stored = Vec::new();
                    for (number, reservation) in held.into_iter().enumerate() {
                        match number % drops == 1 {
                            true => drop(reservation),
                            false => {
                                assert_eq!(Reservation::apply(reservation, 1).stored, size);
                                stored.extend_from_slice(&keys[number * size..][..size]);
                            }
                        }
                    }
                    assert!(stored.len() > 4000, "{name}, {size} each: {} stored", stored.len());
                    validate_quick(&memtable, &stored, &format!("{name}, {size} each, one of {drops} dropped"));
                });
            }
        }
    }
}

/// Catches entries that take the last room, or the free pieces of dropped reservations, one by one and leave none for the index.
#[test]
fn puts_to_the_limit_leave_lookups_quick() {
    const LIMIT: usize = 1 << 20;
    for shards in [1, 64] {
        for (name, key) in ORDERS {
            for dropped in [0, 1, 3] {
                let memtable = Memtable::builder().shards(shards).max_memory_bytes(LIMIT).build();
                let (stored, mut held) = (AtomicBool::new(true), Vec::new());
                let keys: Vec<_> = (0..)
                    .map(key)
                    .take_while(|key| {
                        let ops = [Op::Put { key: b"dropped", value: &[0; 3] }];
                        held.extend((0..dropped).filter_map(|_| memtable.reserve(&ops).ok().map(drop)));
                        stored.load(Ordering::Relaxed) && memtable.put(key, 1, &VALUE).is_ok()
                    })
                    .collect();
                assert!(memtable.memory_usage() > LIMIT - 4000, "{:?}", memtable.stats());
                validate_quick(&memtable, &keys, &format!("{shards} shards, {name}, {dropped}"));
            }
        }
    }
}
