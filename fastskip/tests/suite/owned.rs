//! Iterators, cursors and values that own their table.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bytes::Bytes;
use fastskip::{
    ConcurrentSkipList, Kind, Memtable, Op, OwnedBytes, OwnedCursor, OwnedEntries, OwnedEntry, OwnedMemtableCursor,
    OwnedSnapshot, OwnedVersion, OwnedVersions,
};
use proptest::prelude::*;

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// `entries` keys, each with the two versions 1 and 2.
fn memtable(entries: u64) -> Memtable {
    let memtable = Memtable::builder().shards(2).build();
    for (number, seqno) in (0..entries).flat_map(|number| [(number, 1), (number, 2)]) {
        memtable.put(&key(number), seqno, &[seqno as u8; 20]).unwrap();
    }
    memtable
}

fn list(entries: u64) -> Arc<ConcurrentSkipList> {
    let list = ConcurrentSkipList::with_shards(2);
    (0..entries).for_each(|number| assert!(list.insert(&key(number), &number.to_le_bytes())));
    Arc::new(list)
}

/// Catches an owned type that is not `Send` or not `'static`.
#[test]
fn owned_types_go_to_any_thread_and_stay_there() {
    fn goes_anywhere<T: Send + Sync + Clone + 'static>() {}
    goes_anywhere::<OwnedBytes>();
    goes_anywhere::<OwnedVersion>();
    goes_anywhere::<OwnedVersions>();
    goes_anywhere::<OwnedMemtableCursor>();
    goes_anywhere::<OwnedEntry>();
    goes_anywhere::<OwnedEntries>();
    goes_anywhere::<OwnedCursor>();
    goes_anywhere::<OwnedSnapshot>();
}

/// Catches bytes that are copied, freed with the table, or taken from another entry.
#[test]
fn owned_values_are_the_tables_bytes_and_outlive_it() {
    let memtable = memtable(100);
    memtable.write(&Op::Tagged { key: b"z", value: &[b"a ", b"value"], kind: Kind::Tombstone, tag: 9 }, 7).unwrap();
    let at = memtable.get_version(b"z", 9).unwrap().value.as_ptr();
    let version = memtable.get_owned(b"z", 9).unwrap();
    assert!(memtable.get_owned(b"z", 6).is_none() && memtable.get_owned(b"y", 9).is_none());
    let mut cursor = memtable.owned_cursor();
    assert!(cursor.seek(&key(7), 1));
    let passed = cursor.version_owned().unwrap();
    cursor.seek_to_last();
    let all: Vec<_> = memtable.owned_all_versions().collect();
    drop((memtable, cursor));
    assert_eq!((version.seqno(), version.kind(), version.tag()), (7, Kind::Tombstone, 9));
    assert_eq!((version.key(), version.value(), version.as_ref()), (&b"z"[..], &b"a value"[..], &b"a value"[..]));
    assert_eq!((passed.key(), passed.seqno(), passed.value()), (&key(7)[..], 1, &[1; 20][..]));
    assert!(all.iter().rev().skip(1).rev().map(OwnedVersion::seqno).eq([2, 1].repeat(100)));
    assert_eq!(all.last(), Some(&version));
    drop(all);
    let (key, value) = (version.to_key(), version.to_value());
    assert_eq!((value.as_ptr(), version.clone().into_value().as_ptr()), (at, at));
    let bytes = Bytes::from_owner(version);
    assert_eq!((bytes.as_ptr(), &bytes[..], &key[..]), (at, &b"a value"[..], &b"z"[..]));

    let list = list(10);
    let entry = list.owned_range(..).next_back().unwrap();
    let mut cursor = list.owned_cursor();
    drop(list);
    assert_eq!((entry.key(), entry.is_tombstone()), (&self::key(9)[..], false));
    assert!(cursor.seek_to_last());
    assert_eq!(cursor.entry_owned().unwrap().into_value(), entry.into_value());
}

/// Catches a part of owned bytes that differs from the same part of the slice, or that does not keep the table alive.
#[test]
fn parts_of_owned_bytes_are_those_of_the_slice() {
    let memtable = Memtable::new();
    memtable.put(b"k", 1, b"0123456789").unwrap();
    let value = memtable.get_owned(b"k", 1).unwrap().into_value();
    let slice = b"0123456789";
    assert_eq!(&*value.slice(..), slice);
    assert_eq!(&*value.slice(3..), &slice[3..]);
    assert_eq!(&*value.slice(..=3), &slice[..=3]);
    assert_eq!(&*value.slice(10..), b"");
    assert!(std::panic::catch_unwind(|| value.slice(3..11)).is_err());
    let part = value.slice(2..8).slice(1..3);
    assert_eq!((part.as_ptr(), format!("{part:?}")), (value[3..].as_ptr(), format!("{:?}", b"34")));
    let (sorted, hashed) = (BTreeSet::from([value.clone(), part.clone()]), HashSet::from([part.clone()]));
    assert!(sorted.first() == Some(&value) && sorted.contains(&b"34"[..]) && hashed.contains(&b"34"[..]));
    assert!(part > value && !hashed.contains(&value));
    drop((memtable, value, sorted, hashed));
    assert_eq!(&*part, b"34");
}

/// Catches a reset that overwrites the bytes of an owned value.
#[test]
fn no_table_is_reset_while_something_owned_lives() {
    let memtable = memtable(3);
    let version = memtable.get_owned(&key(1), 2).unwrap();
    let memtable = memtable.try_reset().unwrap_err();
    let value = version.into_value();
    let memtable = memtable.try_reset().unwrap_err();
    let part = value.slice(3..);
    drop(value);
    let memtable = memtable.try_reset().unwrap_err();
    let versions = memtable.owned_all_versions();
    assert_eq!(&*part, &[2; 17]);
    drop(part);
    let memtable = memtable.try_reset().unwrap_err();
    let cursor = memtable.owned_cursor();
    drop(versions);
    let memtable = memtable.try_reset().unwrap_err();
    drop(cursor);
    assert!(memtable.try_reset().unwrap().is_empty());

    let mut list = list(3);
    type Own = fn(&Arc<ConcurrentSkipList>) -> Box<dyn Any>;
    let owned: [Own; 5] = [
        |list| Box::new(list.get_owned(&key(1))),
        |list| Box::new(list.get_owned(&key(1)).unwrap().to_key().slice(1..)),
        |list| Box::new(list.owned_range(..)),
        |list| Box::new(list.owned_cursor()),
        |list| Box::new(list.owned_snapshot()),
    ];
    for own in owned {
        let owned = own(&list);
        assert!(Arc::get_mut(&mut list).is_none());
        drop(owned);
        assert!(Arc::get_mut(&mut list).is_some());
    }
}

/// Catches a lending step that counts references, and one that yields another entry than a step that counts references.
#[test]
fn lending_steps_count_no_references() {
    let list = list(100);
    let (mut lending, mut owning) = (list.owned_range(..), list.owned_range(..));
    let held = Arc::strong_count(&list);
    for _ in 0..50 {
        let entry = owning.next().unwrap();
        assert_eq!((lending.next_ref(), Arc::strong_count(&list)), (Some(entry.as_entry()), held + 1));
        let entry = owning.next_back().unwrap();
        assert_eq!(lending.next_back_ref(), Some(entry.as_entry()));
    }
    // The iterator has ended for good, at both ends.
    assert!(list.insert(&key(1000), b""));
    assert!(lending.next_ref().is_none() && lending.next_back_ref().is_none() && owning.next_back().is_none());
    let mut versions = memtable(2).owned_versions_between::<&[u8]>(..);
    let mut seqnos = Vec::new();
    while let Some(version) = versions.next_ref() {
        seqnos.push(version.seqno);
    }
    assert_eq!(seqnos, [2, 1, 2, 1]);
    assert!(versions.next_back_ref().is_none());
}

/// Catches a cursor or an iterator that goes wrong after an insert beside its position, or that loses its table with the last handle.
#[test]
fn owned_iterators_leave_their_thread_while_others_write() {
    let (memtable, list) = (memtable(1000), list(1000));
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for worker in 0..2 {
            let (memtable, list, is_done) = (&memtable, &list, &is_done);
            scope.spawn(move || {
                let numbers = (1000 + worker..).step_by(2).map(|number| number * 7919 % 1_000_003);
                for number in numbers.take(100_000).take_while(|_| !is_done.load(Ordering::Relaxed)) {
                    let _ = memtable.put(&key(number), 3, b"later");
                    list.insert(&key(number), b"later");
                }
            });
        }
        let snapshot = list.owned_snapshot();
        let then: Vec<_> = snapshot.range(..).collect();
        for _ in 0..10 {
            let (versions, mut entries) = (memtable.owned_range(.., 2), list.owned_range(..));
            let snapshot = snapshot.clone();
            let moved = thread::spawn(move || {
                assert!(
                    versions
                        .map(|version| (version.key().to_vec(), version.seqno()))
                        .eq((0..1000).map(|n| (key(n).to_vec(), 2)))
                );
                let mut keys = Vec::new();
                while let Some(entry) = entries.next_ref() {
                    keys.push(entry.key.to_vec());
                }
                assert!(keys.is_sorted_by(|a, b| a < b) && keys.len() >= 1000);
                snapshot.range(..)
            });
            assert!(moved.join().unwrap().eq(then.iter().cloned()));
        }
        is_done.store(true, Ordering::Relaxed);
    });
    memtable.validate();
    list.validate();
}

/// Bounds of one-byte keys; each end is closed, open or absent.
fn bounds() -> impl Strategy<Value = (Bound<Vec<u8>>, Bound<Vec<u8>>)> {
    let end = || {
        let bound = |(key, kind): (u8, u8)| match kind {
            0 => Bound::Unbounded,
            1 => Bound::Included(vec![key]),
            _ => Bound::Excluded(vec![key]),
        };
        (0..12_u8, 0..3_u8).prop_map(bound)
    };
    (end(), end())
}

proptest! {
    /// Catches bounds that do not outlive the caller's buffers, inverted bounds that yield entries, ends that pass each other, and a
    /// step that misses an earlier entry. Steps are any mix of owning and lending, at both ends, while the table grows.
    #[test]
    fn steps_at_both_ends_meet_as_those_of_a_map_do(
        first in prop::collection::btree_set(0..12_u8, 0..8),
        bounds in bounds(),
        steps in prop::collection::vec(0..5_u8, 0..20),
    ) {
        let table = Memtable::builder().shards(1).build();
        let mut model: BTreeMap<Vec<u8>, u8> = BTreeMap::new();
        for number in first {
            table.put(&[number], 1, &[number]).unwrap();
            model.insert(vec![number], number);
        }
        let mut versions = {
            let bounds = bounds.clone();
            table.owned_range(bounds, u64::MAX)
        };
        // The remaining entries lie within the bounds, strictly between those that the two ends have yielded.
        let (mut lower, mut upper) = bounds;
        let mut is_spent = false;
        // Existing keys get newer versions.
        let mut more = (0..12_u8).rev().cycle().zip(2..);
        for step in steps {
            if step == 4 {
                let (number, seqno) = more.next().unwrap();
                table.put(&[number], seqno, &[number]).unwrap();
                model.insert(vec![number], number);
                continue;
            }
            let is_left = |key: &&Vec<u8>| RangeBounds::<Vec<u8>>::contains(&(lower.as_ref(), upper.as_ref()), *key);
            let mut left = model.keys().filter(is_left).cloned();
            let expected = if step < 2 { left.next() } else { left.next_back() }.filter(|_| !is_spent);
            let found = match step {
                0 => versions.next().map(|version| version.key().to_vec()),
                1 => versions.next_ref().map(|version| version.key.to_vec()),
                2 => versions.next_back().map(|version| version.key().to_vec()),
                _ => versions.next_back_ref().map(|version| version.key.to_vec()),
            };
            prop_assert_eq!(&found, &expected);
            match found {
                None => is_spent = true,
                Some(key) if step < 2 => lower = Bound::Excluded(key),
                Some(key) => upper = Bound::Excluded(key),
            }
        }
    }
}
