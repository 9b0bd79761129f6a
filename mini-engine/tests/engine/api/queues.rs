//! The counted costs of taking entries at an end, by every call that does so.

use crate::support::*;

/// A name, and a function that finds the entry at an end.
type Find = (&'static str, fn(&Db) -> Option<(Slice, Slice)>);

const FINDS: [Find; 12] = [
    ("first", |db| db.first().unwrap()),
    ("last", |db| db.last().unwrap()),
    ("iter", |db| db.iter().next().transpose().unwrap()),
    ("iter backward", |db| db.iter().next_back().transpose().unwrap()),
    ("prefix", |db| db.prefix("key").next().transpose().unwrap()),
    ("prefix backward", |db| db.prefix("key").next_back().transpose().unwrap()),
    ("range", |db| db.range("key".."l").next().transpose().unwrap()),
    ("range backward", |db| db.range("key".."l").next_back().transpose().unwrap()),
    ("snapshot", |db| db.snapshot().first().unwrap()),
    ("snapshot backward", |db| db.snapshot().last().unwrap()),
    ("transaction", |db| db.transaction().first().unwrap()),
    ("transaction backward", |db| db.transaction().last().unwrap()),
];

fn blocks(db: &Db) -> u64 {
    let metrics = db.metrics();
    metrics.cache_hits + metrics.cache_misses
}

#[test]
fn an_end_costs_the_same_however_much_was_taken_there_before() {
    // Catches a read that steps over the tombstones of all earlier taken entries. Counted in blocks: the values below the tombstones are in a
    // table.
    const COUNT: u64 = 1000;
    for (name, find) in FINDS {
        let (_dir, db) = opened(|b| b.block_bytes(512));
        fill(&db, 0..2 * COUNT, [1; 40]);
        db.flush().unwrap();
        let before = blocks(&db);
        for n in 0..COUNT {
            let (found, _) = find(&db).unwrap();
            let n = if name.ends_with("backward") || name == "last" { 2 * COUNT - 1 - n } else { n };
            assert_eq!(&*found, key(n).as_bytes(), "{name}");
            db.remove(found).unwrap();
        }
        let passed = blocks(&db) - before;
        assert!((COUNT..20 * COUNT).contains(&passed), "{name}: {passed} blocks for {COUNT} items");
    }
}

#[test]
fn taking_all_of_a_queue_passes_each_of_its_tombstones_a_few_times() {
    // Catches a cost that grows with the square of the taken entries: among tombstones in memory and (pops) in a table, from either end, inside of
    // one transaction, and for a snapshot older than later writes. Counted in keys without a value that a read steps over, and in blocks.
    const COUNT: u64 = 20_000;
    type Take = fn(&Db, &Snapshot);
    let takes: [(&str, Take); 6] = [
        ("first", |db, _| (0..COUNT).for_each(|_| db.remove(db.first().unwrap().unwrap().0).unwrap())),
        ("last", |db, _| (0..COUNT).for_each(|_| db.remove(db.last().unwrap().unwrap().0).unwrap())),
        ("pops", |db, _| {
            for n in 0..COUNT / 2 {
                if n == COUNT / 8 {
                    db.flush().unwrap();
                }
                assert!(db.pop_first().unwrap().is_some() && db.pop_last().unwrap().is_some());
            }
        }),
        ("transactions", |db, _| {
            for _ in 0..COUNT {
                db.transact(|tx| tx.pop_first().map(|found| assert!(found.is_some()))).unwrap();
            }
        }),
        ("one transaction", |db, _| {
            let tx = db.transaction();
            (0..COUNT / 2).for_each(|_| assert!(tx.pop_first().unwrap().is_some() && tx.pop_last().unwrap().is_some()));
            assert_eq!((tx.first().unwrap(), tx.last().unwrap()), (None, None));
            tx.commit(Durability::Buffered).unwrap();
        }),
        ("an old snapshot", |db, old| {
            db.remove_prefix("key").unwrap();
            fill(db, 0..COUNT, "");
            (0..100).for_each(|_| assert_eq!(old.first().unwrap().or(old.last().unwrap()), None));
            db.remove_prefix("key").unwrap();
        }),
    ];
    for (name, take) in takes {
        let (_dir, db) = opened(|b| b.block_bytes(512));
        fill(&db, 0..COUNT, "");
        db.compact_range(..).unwrap();
        if name == "an old snapshot" {
            (0..COUNT).for_each(|n| db.remove(key(n)).unwrap());
        }
        let (snapshot, before) = (db.snapshot(), blocks(&db));
        take(&db, &snapshot);
        assert_eq!((db.first().unwrap(), db.last().unwrap()), (None, None), "{name}");
        let (passed, blocks) = (db.metrics().dead_keys_passed, blocks(&db) - before);
        let what = format!("{name}: {passed} keys passed and {blocks} blocks read for {COUNT} items");
        assert!(passed < 50 * COUNT && blocks < 5 * COUNT, "{what}");
    }
}

/// The number of keys, most of which have no value.
const KEYS: u64 = 400;

#[test]
fn scans_among_many_removed_keys_are_those_of_the_model() {
    // Catches a skipped live key that was inserted, loaded or given a later expiry in a range recorded as empty, wherever its version is stored. Also
    // catches an older snapshot, a transaction or an open iterator that skips keys visible to it, and an empty range used in another keyspace.
    for seed in 0..12 {
        let mut now = 1000;
        let clock = Clock::at(second(now));
        let builder = in_memory(&MemFs::default()).time_source(clock.source()).l0_trigger(2).block_bytes(512);
        let db = builder.memtable_bytes(if seed % 2 == 0 { 64 << 20 } else { 16 << 10 }).open().unwrap();
        let spaces = [(*db).clone(), db.keyspace("other").unwrap()];
        let mut random = Random(seed);
        // The value of each key, and the time of its expiry.
        type Model = BTreeMap<u64, (u64, u64)>;
        let mut models = [Model::new(), Model::new()];
        let mut kept: Vec<(Snapshot, Model, u64, usize)> = Vec::new();
        let expected = |model: &Model, now: u64, (from, to): (u64, u64)| -> Vec<(u64, u64)> {
            model
                .range(from..to)
                .filter(|(_, (_, until))| now < *until)
                .map(|(key, (value, _))| (*key, *value))
                .collect()
        };
        let read = |found: Option<Result<(Slice, Slice), Error>>| {
            let number = |bytes: Slice| u64::from_be_bytes(bytes[..].try_into().unwrap());
            found.map(|entry| entry.map(|(key, value)| (number(key), number(value))).unwrap())
        };
        for step in 0..3000u64 {
            let at = random.index(2);
            let (space, model) = (&spaces[at], &mut models[at]);
            let (from, len) = (random.below(KEYS), random.below(120));
            let to = (from + len).min(KEYS);
            match random.below(24) {
                // Removes runs of keys, which make the empty ranges.
                0..=3 => (from..to).for_each(|key| {
                    space.remove(key.to_be_bytes()).unwrap();
                    model.remove(&key);
                }),
                4..=7 => {
                    space.insert(from.to_be_bytes(), step.to_be_bytes()).unwrap();
                    model.insert(from, (step, u64::MAX));
                }
                8 => {
                    let until = now + random.below(9);
                    space.insert_with_expiry(from.to_be_bytes(), step.to_be_bytes(), second(until)).unwrap();
                    model.insert(from, (step, until));
                }
                9 => {
                    now += random.below(3);
                    clock.set(second(now));
                }
                10 => {
                    let lives = model.get(&from).is_some_and(|(_, until)| now < *until);
                    assert_eq!(space.set_expiry(from.to_be_bytes(), None).unwrap(), lives);
                    model.entry(from).and_modify(|(_, until)| *until = if lives { u64::MAX } else { *until });
                }
                11 => {
                    space.remove_range(from.to_be_bytes()..to.to_be_bytes()).unwrap();
                    model.retain(|key, _| !(from..to).contains(key));
                }
                12 if random.one_in(4) => {
                    space.ingest([(from.to_be_bytes(), step.to_be_bytes())]).unwrap();
                    model.insert(from, (step, u64::MAX));
                }
                13 if random.one_in(4) => db.flush().unwrap(),
                14 if random.one_in(8) => db.compact_range(..).unwrap(),
                15 => {
                    let live = expected(model, now, (0, KEYS));
                    let is_first = random.one_in(2);
                    let end = if is_first { live.first() } else { live.last() };
                    let popped = if is_first { space.pop_first() } else { space.pop_last() };
                    assert_eq!(read(popped.transpose()), end.copied(), "step {step} of seed {seed}");
                    end.map(|(key, _)| model.remove(key));
                }
                16 => {
                    kept.push((space.snapshot(), model.clone(), now, at));
                    if kept.len() > 3 {
                        kept.remove(random.index(3));
                    }
                }
                17 => {
                    // A transaction that takes entries and puts some back.
                    let tx = db.transaction();
                    let tx = tx.keyspace(space);
                    let mut own = model.clone();
                    for _ in 0..random.below(60) {
                        let live = expected(&own, now, (0, KEYS));
                        let is_first = random.one_in(2);
                        let popped = if is_first { tx.pop_first() } else { tx.pop_last() };
                        let end = if is_first { live.first() } else { live.last() };
                        assert_eq!(read(popped.transpose()), end.copied(), "step {step} of seed {seed}");
                        end.map(|(key, _)| own.remove(key));
                        if random.one_in(8) {
                            let key = random.below(KEYS);
                            tx.insert(key.to_be_bytes(), step.to_be_bytes()).unwrap();
                            own.insert(key, (step, u64::MAX));
                        }
                    }
                    let iter = tx.range(from.to_be_bytes()..to.to_be_bytes());
                    let found: Vec<_> = iter.map(|entry| read(Some(entry)).unwrap()).collect();
                    assert_eq!(found, expected(&own, now, (from, to)), "step {step} of seed {seed}");
                }
                _ => {
                    let is_kept = !kept.is_empty() && random.one_in(3);
                    let bounds = from.to_be_bytes()..to.to_be_bytes();
                    let (mut iter, live) = match is_kept {
                        true => {
                            let (snapshot, model, then, _) = &kept[random.index(kept.len())];
                            (snapshot.range(bounds), expected(model, *then, (from, to)))
                        }
                        false => (space.range(bounds), expected(model, now, (from, to))),
                    };
                    let (mut live, front) = (std::collections::VecDeque::from(live), random.below(3));
                    // A write that the transaction must not see.
                    let new = random.below(KEYS);
                    space.insert(new.to_be_bytes(), step.to_be_bytes()).unwrap();
                    model.insert(new, (step, u64::MAX));
                    loop {
                        let is_front = front == 0 || (front == 1 && random.one_in(2));
                        let found = if is_front { iter.next() } else { iter.next_back() };
                        let next = if is_front { live.pop_front() } else { live.pop_back() };
                        assert_eq!(read(found), next, "{bounds:?} in step {step} of seed {seed}", bounds = (from, to));
                        if next.is_none() {
                            break;
                        }
                    }
                }
            }
        }
        let passed = db.metrics().dead_keys_passed;
        assert!(passed > 1000, "only {passed} keys were passed with seed {seed}");
    }
}

#[test]
fn what_a_thread_inserts_is_found_at_once_while_others_remove_and_scan_around_it() {
    // Catches a cached empty range that is used after a key was inserted into it and before the writer has cut it, an empty range that a reader
    // of an old view confirms, and a scan that shows half of a batch.
    const THREADS: u64 = 4;
    let (_dir, db) = opened(|b| b.memtable_bytes(64 << 10).l0_trigger(2).block_bytes(512));
    let is_over = AtomicBool::new(false);
    let key = |n: u64| n.to_be_bytes();
    let number = |key: &Slice| u64::from_be_bytes(key[..].try_into().unwrap());
    thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let db = &db;
                scope.spawn(move || {
                    let mut random = Random(thread);
                    // Each thread has one key, which it moves in one batch.
                    let mut at = thread;
                    db.insert(key(at), "").unwrap();
                    for step in 0..3000u64 {
                        let to = random.below(KEYS) * THREADS + thread;
                        let mut batch = WriteBatch::new();
                        batch.remove(key(at)).unwrap();
                        batch.insert(key(to), "").unwrap();
                        db.write(batch, Durability::Buffered).unwrap();
                        at = to;
                        let found = if random.one_in(2) {
                            db.range(key(to)..).next()
                        } else {
                            db.range(..=key(to)).next_back()
                        };
                        let found = found.expect("an entry").unwrap().0;
                        assert_eq!(number(&found), to, "step {step} of thread {thread}");
                    }
                })
            })
            .collect();
        let is_over = &is_over;
        let db = &db;
        for thread in 0..2 {
            scope.spawn(move || {
                let all: Vec<_> = (0..KEYS * THREADS).map(key).collect();
                let mut random = Random(100 + thread);
                while !is_over.load(Ordering::Relaxed) {
                    let is_backward = random.one_in(2);
                    let by_thread = |keys: Vec<(Slice, Slice)>| {
                        let mut numbers: Vec<_> = keys.iter().map(|(key, _)| number(key)).collect();
                        numbers.sort_unstable();
                        numbers
                    };
                    let scan = |iter: Iter| {
                        by_thread(if is_backward {
                            iter.rev().map(Result::unwrap).collect()
                        } else {
                            iter.map(Result::unwrap).collect()
                        })
                    };
                    let snapshot = db.snapshot();
                    let values = snapshot.get_many(&all).unwrap();
                    let there: Vec<u64> =
                        (0..).zip(&values).filter_map(|(n, value)| value.as_ref().map(|_| n)).collect();
                    for _ in 0..3 {
                        assert_eq!(scan(snapshot.iter()), there);
                    }
                    let present = scan(db.iter());
                    let mut threads: Vec<_> = present.iter().map(|n| n % THREADS).collect();
                    threads.sort_unstable();
                    threads.dedup();
                    assert_eq!(threads.len(), present.len(), "a key in two places: {present:?}");
                    assert!(
                        present.len() as u64 >= there.len() as u64,
                        "a key in no place: {present:?} after {there:?}"
                    );
                }
            });
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
    });
}
