//! Batches into tables so large that a batch searches for the places of several entries at once.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use fastskip::{
    BatchError, ConcurrentSkipList, InsertError, Kind, Lookup, MAX_KEY_LEN, MAX_TAG, MAX_VALUE_LEN, Memtable, Op,
    Version,
};

/// More entries than the largest table that is searched for one entry at a time.
const MANY: u32 = 40_000;
/// Batches have every length below this: several groups, and parts of a group.
const LONGEST: u32 = 70;

/// The `number`-th key. Keys are unordered, and no two are equal, since the multiplier is odd.
fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9e37_79b1).to_be_bytes()
}

/// Numbers of keys, unordered, many of them repeated.
fn numbers(batch: u32) -> impl Iterator<Item = u32> {
    (0..batch % LONGEST).map(move |index| (batch * 31 + index * index * 17) % (MANY + 3000))
}

fn filled_list() -> ConcurrentSkipList {
    let list = ConcurrentSkipList::with_shards(2);
    (0..MANY).for_each(|number| assert!(list.insert(&key(number), b"a value that fills the table")));
    assert!(list.memory_usage() > 2 << 20);
    list
}

/// Catches an entry of a batch that is lost, stored twice or put in the wrong place, because the same batch stored another entry after the search
/// for its place.
#[test]
fn batches_with_repeated_keys_store_the_first_of_each() {
    let list = filled_list();
    let mut model: BTreeMap<[u8; 4], u32> = (0..MANY).map(|number| (key(number), u32::MAX)).collect();
    for batch in 0..800 {
        let before = list.snapshot();
        let (mut stored, mut of_model) = (0, model.len());
        let entries: Vec<_> = numbers(batch).map(|number| (key(number), batch.to_be_bytes())).collect();
        let mut repeated = Vec::new();
        for (index, (key, _)) in entries.iter().enumerate() {
            model.entry(*key).or_insert(batch);
            match model.len() > of_model {
                true => stored += 1,
                false => repeated.push((index, InsertError::DuplicateKey)),
            }
            of_model = model.len();
        }
        match list.insert_batch(&entries) {
            Ok(all) => assert_eq!((all, stored), (entries.len(), entries.len())),
            Err(BatchError::PartialFailure { succeeded, failed, rejected, .. }) => {
                assert_eq!((succeeded, failed), (stored, entries.len() - stored), "batch {batch}");
                assert_eq!(rejected, repeated, "batch {batch}");
            }
        }
        let seen = entries.iter().filter(|(key, _)| before.get(key).is_some()).count();
        let old = entries.iter().filter(|(key, _)| model[key] != batch).count();
        assert_eq!(seen, old, "batch {batch} shows in a snapshot taken before it");
    }
    assert!(list.iter().map(|entry| entry.key).eq(model.keys().map(|key| &key[..])));
    for (key, batch) in model.iter().filter(|(_, batch)| **batch != u32::MAX) {
        assert_eq!(list.get_live(key), Some(&batch.to_be_bytes()[..]));
    }
    list.validate();
}

/// Catches versions of one key that a batch puts in the wrong order, and a repeated version that takes the first one's place.
#[test]
fn batches_with_versions_of_one_key_keep_them_newest_first() {
    let memtable = Memtable::builder().shards(2).build();
    let mut model = BTreeSet::new();
    for number in 0..MANY {
        memtable.put(&key(number), 0, b"a value that fills the table, and more").unwrap();
        model.insert((key(number), u64::MAX));
    }
    assert!(memtable.memory_usage() > 2 << 20);
    for batch in 0..800 {
        // Every fifth batch repeats the end of the one before it, and gives the first entries there new numbers.
        let (source, later) = if batch % 5 == 4 { (batch - 1, LONGEST / 2) } else { (batch, 0) };
        let mut keys: Vec<_> = numbers(source).map(key).collect();
        let half = keys.len().min(later as usize);
        keys.rotate_left(half);
        let ops: Vec<_> = keys.iter().map(|key| Op::Put { key, value: key }).collect();
        let first = u64::from(source * LONGEST + later + 1);
        let stored = keys.iter().zip(first..).filter(|(key, seqno)| model.insert((**key, u64::MAX - seqno))).count();
        assert_eq!(memtable.reserve(&ops).unwrap().apply(first).stored, stored, "batch {batch}");
    }
    let versions = memtable.all_versions().map(|version| (version.key.to_vec(), u64::MAX - version.seqno));
    assert!(versions.eq(model.iter().map(|(key, seqno)| (key.to_vec(), *seqno))));
    assert!(memtable.all_versions().filter(|version| version.seqno > 0).all(|version| version.value == version.key));
    memtable.validate();
}

/// Catches an entry that is stored although an earlier one of its batch was refused, and a table that is broken by a batch which fills it.
#[test]
fn a_batch_that_fills_the_table_stores_what_comes_first() {
    for (entries, bytes) in [(MANY as usize + 40, 0), (0, 3 << 20)] {
        let list = ConcurrentSkipList::with_capacity_and_shards(4096, 1, bytes, entries);
        let mut batches = (0..).map(|batch| (batch * 64..batch * 64 + 64).map(key));
        let (cut, stored) = batches
            .find_map(|keys| {
                let entries: Vec<_> = keys.map(|key| (key, "a value that fills the table")).collect();
                match list.insert_batch(&entries) {
                    Ok(_) => None,
                    Err(BatchError::PartialFailure { succeeded, .. }) => Some((entries, succeeded)),
                }
            })
            .unwrap();
        assert!(list.memory_usage() > 2 << 20, "too small to search for many places at once");
        let found: Vec<_> = cut.iter().map(|(key, _)| list.contains_key(key)).collect();
        assert_eq!(found.iter().filter(|found| **found).count(), stored);
        assert!(found.is_sorted_by(|before, after| before >= after), "stored behind a refusal");
        assert_eq!(list.try_insert(b"late", b""), Err(InsertError::Full));
        assert!(list.is_under_backpressure());
        list.validate();
    }
}

/// Catches a race of two batches for the same places in which both store a key, or neither does.
#[test]
fn of_racing_batches_exactly_one_stores_each_key() {
    let list = filled_list();
    let racers = 4;
    let write = |racer: u32| {
        let list = &list;
        move || {
            let batches = (0..200).map(|batch| (batch * 50..batch * 50 + 50).map(|number| key(MANY + number)));
            let stored = batches.map(|keys| {
                let entries: Vec<_> = keys.map(|key| (key, [racer as u8])).collect();
                match list.insert_batch(&entries) {
                    Ok(all) => all,
                    Err(BatchError::PartialFailure { succeeded, .. }) => succeeded,
                }
            });
            stored.sum::<usize>()
        }
    };
    let stored: Vec<usize> = thread::scope(|scope| {
        let threads: Vec<_> = (0..racers).map(|racer| scope.spawn(write(racer))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(stored.iter().sum::<usize>(), 10_000);
    for (racer, stored) in (0..racers).zip(stored) {
        assert_eq!(list.iter().filter(|entry| entry.value == [racer as u8]).count(), stored);
    }
    list.validate();
}

/// Catches a reservation that ignores other open reservations of its shard. Reservations are held over other writes, applied on another thread,
/// or applied after a later reservation.
#[test]
fn reservations_may_overlap_in_one_shard_and_be_applied_in_any_order() {
    let memtable = Memtable::builder().shards(1).build();
    let mut stored = 0;
    for round in 0..2000_u32 {
        let keys: [_; 6] = std::array::from_fn(|index| key(round * 10 + index as u32));
        let ops = keys.each_ref().map(|key| Op::Put { key, value: b"v" });
        let (first, rest) = ops.split_at(2);
        let (second, third) = rest.split_at(2);
        let [first, second, third] = [first, second, third].map(|ops| memtable.reserve(ops).unwrap());
        memtable.delete(&key(round * 10 + 8), 1).unwrap();
        match round % 3 {
            0 => drop(first),
            1 => stored += first.apply(1).stored,
            _ => stored += thread::scope(|scope| scope.spawn(|| first.apply(1)).join().unwrap()).stored,
        }
        stored += third.apply(1).stored + 1;
        memtable.put(&key(round * 10 + 9), 1, b"v").unwrap();
        stored += second.apply(1).stored + 1;
    }
    let stats = memtable.stats();
    assert_eq!((stats.entries, stats.tombstones, memtable.all_versions().count()), (stored, 2000, stored));
    assert_eq!(memtable.all_versions().filter(|version| version.kind == Kind::Tombstone).count(), 2000);
    assert_eq!(stats.avg_key_size, 4.0);
    memtable.validate();
}

/// Catches splices that were found together and are used without a check for entries that were stored since.
#[test]
fn entries_of_a_batch_that_belong_behind_one_node_are_all_stored() {
    for entries in [0, 20_u32, 2000] {
        let memtable = Memtable::builder().shards(1).build();
        for number in 0..entries {
            assert!(memtable.put(&(100 * number).to_be_bytes(), 1, &[7; 40]).is_ok());
        }
        let keys: Vec<_> = [3_u32, 1, 4, 1, 5, 9, 2, 6].map(|key| (100 + key).to_be_bytes()).to_vec();
        let ops: Vec<_> = keys.iter().map(|key| Op::Put { key, value: b"" }).collect();
        assert_eq!(memtable.reserve(&ops).unwrap().apply(2).stored, 8);
        assert_eq!(memtable.stats().cas_failures, 0, "a batch does not race with itself");
        assert_eq!(memtable.range((100 + 1_u32).to_be_bytes()..(110_u32).to_be_bytes(), u64::MAX).count(), 7);
        memtable.validate();
    }
}

/// Catches nodes that take more words than their reservation, and so overlap the next node.
#[test]
fn no_batch_uses_more_than_it_reserved() {
    for seed in 0..200 {
        let memtable = Memtable::builder().shards(1).build();
        for batch in 0..4 {
            let keys: Vec<_> = (0..50).map(|index| key(seed * 7919 + batch * 50 + index)).collect();
            let ops: Vec<_> = keys.iter().map(|key| Op::Put { key, value: b"" }).collect();
            assert_eq!(memtable.reserve(&ops).unwrap().apply(1).stored, 50);
        }
        memtable.validate();
    }
}

/// Catches a batch at one sequence number that keeps the first write of a key, for any order of keys and any number of grouped searches. Also
/// catches room that is lost with writes that were not stored.
#[test]
fn of_a_batch_at_one_number_the_last_write_of_a_key_wins() {
    for (filled, writes, keys) in [(0, 2, 1), (0, 40, 7), (MANY, 500, 90)] {
        let memtable = Memtable::builder().shards(1).build();
        (0..filled).for_each(|number| assert!(memtable.put(&key(number), 1, b"old").is_ok()));
        let batch: Vec<_> = (0..writes).map(|write: u32| (key(write * 31 % keys), write.to_be_bytes())).collect();
        let ops: Vec<_> = batch
            .iter()
            .map(|(key, value)| match value[3] % 3 {
                0 => Op::Delete { key },
                _ => Op::Put { key, value },
            })
            .collect();
        let before = memtable.len();
        assert_eq!(memtable.apply_at(&ops, 9).map(|written| written.stored), Ok(keys as usize));
        for op in &ops {
            let last = ops.iter().rfind(|other| other.key() == op.key()).unwrap();
            let found = memtable.get_version(op.key(), u64::MAX).unwrap();
            let kind = if matches!(last, Op::Put { .. }) { Kind::Value } else { Kind::Tombstone };
            assert_eq!((found.seqno, found.kind), (9, kind));
            assert!(!matches!(last, Op::Put { value, .. } if *value != found.value));
        }
        assert_eq!(
            memtable.apply_at(&ops, 9).map(|written| written.stored),
            Ok(0),
            "every key has a version of this number"
        );
        assert_eq!(memtable.len(), before + keys as usize);
        memtable.validate();
    }
}

/// Catches a sorted batch that is stored in another order, with or without a repeated key.
#[test]
fn a_sorted_batch_at_one_number_is_stored_whole() {
    let memtable = Memtable::builder().shards(1).build();
    let ops = [b"a", b"b", b"c"].map(|key| Op::Put { key, value: b"1" });
    assert_eq!(memtable.apply_at(&ops, 1).map(|written| written.stored), Ok(3));
    let ops = [(b"a", b"2"), (b"b", b"2"), (b"b", b"3")].map(|(key, value)| Op::Put { key, value });
    assert_eq!(memtable.apply_at(&ops, 2).map(|written| written.stored), Ok(2));
    let versions: Vec<_> = memtable.iter(2).map(|version| (version.key, version.value)).collect();
    assert_eq!(versions, [(&b"a"[..], &b"2"[..]), (b"b", b"3"), (b"c", b"1")]);
}

/// Catches a batch whose result does not list the entries that were not stored, or lists one with the reason of another.
#[test]
fn a_batch_says_which_entries_were_not_stored_and_why() {
    let list = ConcurrentSkipList::with_capacity_and_shards(0, 1, 0, 4);
    assert!(list.insert(b"b", b""));
    let long = vec![0; MAX_KEY_LEN + 1];
    let keys: [&[u8]; 8] = [b"a", b"b", &long, b"c", b"a", b"d", b"e", &long];
    let batch = keys.map(|key| (key, b"v"));
    let error = list.insert_batch(&batch).unwrap_err();
    let text = "5 of 8 entries were not stored; the first is entry 1: key is already stored";
    assert_eq!(error.to_string(), text);
    let BatchError::PartialFailure { succeeded, failed, rejected, .. } = error;
    assert_eq!((succeeded, failed), (3, 5));
    use InsertError::{DuplicateKey, Full, TooLarge};
    assert_eq!(rejected, [(1, DuplicateKey), (2, TooLarge), (4, DuplicateKey), (6, Full), (7, TooLarge)]);
    list.freeze();
    let BatchError::PartialFailure { succeeded, rejected, .. } = list.insert_batch(&batch[..2]).unwrap_err();
    assert_eq!((succeeded, rejected), (0, vec![(0, InsertError::Frozen), (1, InsertError::Frozen)]));
}

/// Catches an error that does not state the exceeded limit.
#[test]
fn what_is_too_large_is_told_the_limits() {
    let text = InsertError::TooLarge.to_string();
    for limit in [MAX_KEY_LEN, MAX_VALUE_LEN] {
        assert!(text.contains(&format!(" {limit}")), "{text}");
    }
    assert!(InsertError::InvalidTag.to_string().ends_with(&format!(" {MAX_TAG}")));
}

/// Catches an overflow of the sum of refused sizes: the entries are refused one by one, however large their sum is.
#[test]
fn entries_that_are_refused_may_be_larger_together_than_any_table() {
    let list = ConcurrentSkipList::builder().shards(1).max_memory_bytes(1 << 20).build();
    let large = vec![0; MAX_VALUE_LEN];
    let entries: Vec<_> = (0..40_u8).map(|number| ([number], &large[..])).collect();
    let BatchError::PartialFailure { failed, rejected, .. } = list.insert_batch(&entries).unwrap_err();
    assert_eq!((failed, rejected[39], list.len()), (40, (39, InsertError::TooLarge), 0));
}

/// Catches parts that are joined wrongly, at lengths around the stack buffer for keys in parts, and limits that parts can bypass.
#[test]
fn parts_are_stored_as_if_they_were_joined() {
    let memtable = Memtable::builder().shards(1).build();
    let bytes: Vec<u8> = (0..70_000_u32).map(|byte| byte as u8).collect();
    let mut seqno = 0;
    for len in [0, 1, 2, 9, 255, 256, 257, 1000, MAX_KEY_LEN] {
        let key = &bytes[..len];
        for cuts in [vec![], vec![0], vec![len / 2], vec![len / 3, len / 2, len]] {
            let mut parts: Vec<&[u8]> = Vec::new();
            let mut from = 0;
            for cut in cuts.iter().copied().chain([len]) {
                parts.push(&key[from..cut]);
                from = cut;
            }
            seqno += 1;
            assert!(memtable.put_parts(&parts, seqno, &parts).is_ok());
            assert_eq!(memtable.get_version(key, seqno), Some(Version::new(key, seqno, Kind::Value, key)));
        }
    }
    assert!(memtable.put_parts(&[], 100, &[]).is_ok());
    assert_eq!(memtable.get(b"", 100), Lookup::Value(b""));
    let too_long = [&bytes[..MAX_KEY_LEN], b"x"];
    assert_eq!(memtable.put_parts(&too_long, 1, &[]), Err(InsertError::TooLarge));
    assert_eq!(memtable.put_parts(&[b"k"], 1, &vec![&bytes[..65_536]; 16_385]), Err(InsertError::TooLarge));
    let average = memtable.stats().avg_value_size;
    let values = memtable.all_versions().map(|version| version.value.len());
    assert_eq!(average, values.sum::<usize>() as f64 / memtable.len() as f64);
    memtable.validate();
}

/// Catches a tag that is lost, that changes the result of a plain read, or that does not fit.
#[test]
fn tags_are_the_engines_own() {
    let memtable = Memtable::builder().shards(1).build();
    let tagged = |kind, tag| Op::Tagged { key: b"k", value: &[b"va", b"lue"], kind, tag };
    let mut seqno = 0;
    for tag in 0..=MAX_TAG {
        for kind in [Kind::Value, Kind::Tombstone] {
            seqno += 1;
            assert!(memtable.write(&tagged(kind, tag), seqno).is_ok());
            let found = memtable.get_version(b"k", seqno).unwrap();
            assert_eq!((found.seqno, found.kind, found.tag, found.value), (seqno, kind, tag, &b"value"[..]));
            let lookup = if kind == Kind::Value { Lookup::Value(b"value") } else { Lookup::Tombstone };
            assert_eq!(memtable.get(b"k", seqno), lookup);
        }
    }
    assert_eq!(memtable.stats().tombstones, memtable.len() / 2);
    assert_eq!(memtable.write(&tagged(Kind::Value, MAX_TAG + 1), 1), Err(InsertError::InvalidTag));
    assert_eq!(memtable.memory_for(&[tagged(Kind::Value, MAX_TAG + 1)]), Err(InsertError::InvalidTag));
    let batch = [tagged(Kind::Value, 9), Op::Put { key: b"l", value: b"" }];
    assert_eq!(memtable.apply_at(&batch, 1000).map(|written| written.stored), Ok(2));
    assert_eq!(memtable.get_version(b"k", 1000).map(|found| found.tag), Some(9));
    assert_eq!(memtable.apply_at(&[tagged(Kind::Value, 64)], 1001), Err(InsertError::InvalidTag));
    memtable.validate();
}
