//! Both kinds of memtable, compared with lists of their entries.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::iter::model::{Entry, Move, SortedVec, assert_few_moves, assert_same, many_versions};
use crate::types::{shown, system_time};

const KINDS: [MemtableKind; 2] = [MemtableKind::SkipList, MemtableKind::Vector];

/// The result of a read of `key`, and when the value expires. The instant of the read is 2.
fn get(memtable: &LoggedMemtable, key: &[u8], seqno: SeqNo) -> Option<Option<(Vec<u8>, Option<Millis>)>> {
    memtable.get(key, seqno, || 2, |value, at| (value.to_vec(), at))
}

/// The results of `get_many` for `key` and another key.
fn get_both(memtable: &LoggedMemtable, key: &[u8], seqno: SeqNo) -> Vec<(usize, Option<Slice>)> {
    let mut found = Vec::new();
    let note = |at, value| {
        found.push((at, value));
        ControlFlow::Continue(())
    };
    assert!(memtable.get_many(&[key, b"a"], seqno, 2, note).is_continue());
    found.sort_by_key(|(at, _)| *at);
    found
}

#[test]
fn a_key_with_many_versions_takes_few_moves_in_either_direction() {
    // Catches an iterator that steps through all versions of a key: a counter that was often increased would stall every backward scan.
    for kind in KINDS {
        let memtable = LoggedMemtable::new(kind, 1, 1 << 24).unwrap();
        for Entry { key, seqno, value, .. } in many_versions() {
            memtable.table.reserve(&[Op::Put { key: &key, value: &value }]).unwrap().apply(seqno);
        }
        memtable.table.freeze();
        assert_few_moves(|| vec![memtable.iter()]);
    }
}

#[test]
fn a_memtable_is_full_at_its_limit_and_takes_one_batch_of_any_size() {
    // Catches a memtable that grows without limit, and one that rejects a batch larger than itself.
    let table = VectorTable::new(10_000);
    let value = vec![1; 4000];
    let put = [Op::Put { key: b"k", value: &value }];
    for seqno in [1, 2] {
        table.reserve(&put).unwrap().apply(seqno);
    }
    assert_eq!(table.reserve(&put).unwrap_err(), InsertError::Full);
    assert!((8000..10_000).contains(&table.memory_usage()));
    let large = vec![1; 100_000];
    VectorTable::new(10_000).reserve(&[Op::Put { key: b"k", value: &large }]).unwrap().apply(1);
}

/// A key, and its value with the instant at which it expires, if it does; `None` for a removal.
type Write = (Vec<u8>, Option<(Option<Millis>, Vec<u8>)>);

#[test]
fn the_memory_of_a_memtable_for_a_large_batch_is_not_kept() {
    // Catches a database that keeps the memory of its largest batch instead of that of later memtables.
    let factory = MemtableFactory::new(MemtableKind::SkipList, 1 << 20);
    drop(factory.make(1, 0).unwrap());
    assert_eq!(factory.pool.len(), 1);
    let large = factory.make(2, 100 << 20).unwrap();
    assert_eq!(factory.pool.len(), 1);
    drop(large);
    let usual = factory.make(3, 1 << 20).unwrap();
    assert_eq!(factory.pool.len(), 0, "another one's memory was kept");
    drop(usual);
}

fn write() -> impl Strategy<Value = Write> {
    let value = (prop::option::weighted(0.3, 0u64..5), vec(any::<u8>(), 0..4));
    (vec(prop::sample::select(&[0u8, b'a', 0xff][..]), 0..3), prop::option::of(value))
}

/// The common prefixes of keys: none, one shorter than a head, and one longer.
const BEGINNINGS: [&[u8]; 3] = [b"", b"shared", b"a longer beginning"];

/// The entry that a write makes.
fn entry(op: BatchOp<'_>, seqno: SeqNo) -> Entry {
    let (key, kind, value) = match op {
        BatchOp::Insert { key, value } => (key, Kind::Value, value),
        BatchOp::InsertExpiring { key, stored } => (key, Kind::Expiring, stored),
        BatchOp::Remove { key } => (key, Kind::Tombstone, &[][..]),
        BatchOp::RemoveRange { .. } => unreachable!("none is written"),
    };
    Entry { key: key.to_vec(), seqno, kind, value: value.to_vec() }
}

proptest! {
    #[test]
    fn a_memtable_of_either_kind_reads_as_a_list_of_its_entries(
        batches in vec(vec(write(), 1..6), 0..12),
        reads in vec((write(), 0..40u64, vec(any::<bool>(), 0..12)), 1..8),
        // The prefix of most stored keys, and that of the searched key.
        (usual, other) in (0..BEGINNINGS.len(), 0..BEGINNINGS.len()),
        frozen in any::<bool>(),
    ) {
        // Catches a version that is missed or returned too early, a removed key that seems absent (so that older tables are searched), a wrong order,
        // a copy that was not sorted, and keys distinguished by shared bytes, or by zeros after the end of one. Also catches an expired entry that is
        // returned, an entry that is missing before it expires, an entry in a frozen memtable, and a cursor that reads freed memory.
        let begin = |key: &[u8], with: usize| [BEGINNINGS[with], key].concat();
        let [list, vector] = KINDS.map(|kind| LoggedMemtable::new(kind, 1, 1 << 16).unwrap());
        let (mut builder, mut entries, mut next) = (MemtableBuilder::default(), Vec::new(), 1);
        for batch in &batches {
            let mut writes = WriteBatch::new();
            for (key, value) in batch {
                let key = begin(key, usual);
                match value {
                    Some((Some(at), value)) => writes.insert_with_expiry(key, value, system_time(*at)),
                    Some((None, value)) => writes.insert(key, value),
                    None => writes.remove(key),
                }
                .unwrap();
            }
            let expiring: Vec<&[u8]> = writes.iter().filter_map(BatchOp::expiring).collect();
            let ops: Vec<Op<'_>> = super::ops(&writes, &expiring).collect();
            for memtable in [&list, &vector] {
                memtable.table.reserve(&ops).unwrap().apply(next);
                if writes.expiring() > 0 {
                    memtable.note_expiring();
                }
            }
            writes.iter().zip(next..).for_each(|(op, seqno)| builder.push(op, seqno));
            entries.extend(writes.iter().zip(next..).map(|(op, seqno)| entry(op, seqno)));
            next += ops.len() as u64;
        }
        for memtable in [&list, &vector].into_iter().filter(|_| frozen) {
            memtable.table.freeze();
            let refused = memtable.table.reserve(&[Op::Delete { key: b"a" }]).err();
            prop_assert_eq!(refused, Some(InsertError::Frozen));
        }
        let model = SortedVec::new(entries);
        let expected = |key: &[u8], seqno| {
            let newest = model.entries().iter().find(|entry| entry.key == key && entry.seqno <= seqno)?;
            Some(shown(newest.kind, &newest.value, || 2).map(|(value, at)| (value.to_vec(), at)))
        };
        let reads = reads.iter().enumerate().map(|(at, ((key, _), seqno, moves))| {
            (begin(key, if at == 0 { other } else { usual }), *seqno, moves)
        });
        for memtable in [list, vector, builder.finish(1)] {
            prop_assert_eq!(memtable.table.len(), model.entries().len());
            let mut moves = Vec::new();
            for (key, seqno, steps) in reads.clone() {
                let both = [&key[..], b"a"].into_iter().enumerate().filter_map(|(at, key)| Some((at, expected(key, seqno)?)));
                let both: Vec<_> = both.map(|(at, found)| (at, found.map(|(value, _)| Slice::from(value)))).collect();
                prop_assert_eq!(get(&memtable, &key, seqno), expected(&key, seqno));
                for seek in [Move::Seek(key.clone(), seqno), Move::SeekForPrev(key.clone(), seqno)] {
                    let steps = steps.iter().map(|forward| if *forward { Move::Next } else { Move::Prev });
                    moves.extend([seek].into_iter().chain(steps));
                }
                assert_same(&mut memtable.iter(), &mut model.clone(), &moves);
                prop_assert_eq!(get_both(&memtable, &key, seqno), both);
                // Repeated, since the first scan may have sorted the entries.
                prop_assert_eq!(get(&memtable, &key, seqno), expected(&key, seqno));
            }
            let mut iter = memtable.iter();
            drop(memtable);
            assert_same(&mut iter, &mut model.clone(), &moves);
        }
    }
}

#[test]
fn what_is_reserved_counts_before_it_is_applied_and_not_after_it_was_given_up() {
    // Catches writers that together exceed the limit several times, since none of them has applied its batch yet.
    let value = vec![7; 90_000];
    let ops = [Op::Put { key: b"a", value: &value }];
    for kind in KINDS {
        let memtable = LoggedMemtable::new(kind, 1, 1 << 20).unwrap();
        let reservations: Vec<_> = (0..1000).map_while(|_| memtable.table.reserve(&ops).ok()).collect();
        assert!((20..40).contains(&reservations.len()), "{} reservations of {kind:?}", reservations.len());
        assert!(memtable.table.memory_usage() > 20 * value.len());
        assert!(memtable.table.is_empty());
        drop(reservations);
        let again: Vec<_> = (0..20).map(|_| memtable.table.reserve(&ops).unwrap()).collect();
        for (reservation, first) in again.into_iter().zip(1..) {
            reservation.apply(first);
        }
        assert_eq!(memtable.entries(), 20);
        assert!(memtable.table.memory_usage() > 20 * value.len());
    }
}

#[test]
fn a_built_memtable_holds_entries_of_any_size_in_the_order_of_their_keys() {
    // Catches an entry that is cut at the end of a chunk, or searched for in another chunk; and entries in the order of arrival.
    let sizes = [0, 1, 100, 65_519, 65_520, 65_521, 65_536, 300_000];
    let mut builder = VectorBuilder::default();
    let key = |n: u64| format!("{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let value = |n: u64| vec![n as u8; sizes[n as usize % sizes.len()]];
    for n in 1..400 {
        builder.push(&Op::Put { key: key(n).as_bytes(), value: &value(n) }, n);
    }
    let bytes: usize = (1..400).map(|n| value(n).len() + 16).sum();
    assert!((bytes..bytes + 400 * 64).contains(&builder.memory_usage()));
    let memtable = LoggedMemtable::built(builder, 7);
    assert_eq!(memtable.table.reserve(&[Op::Delete { key: b"a" }]).err(), Some(InsertError::Frozen));
    let mut iter = memtable.iter();
    iter.seek_to_first().unwrap();
    let mut sorted: Vec<(String, u64)> = (1..400).map(|n| (key(n), n)).collect();
    sorted.sort();
    for (key, n) in &sorted {
        assert_eq!((iter.key(), iter.seqno()), (key.as_bytes(), *n));
        assert!(iter.value() == value(*n) && !iter.repeats(), "{n}");
        assert_eq!(get(&memtable, key.as_bytes(), *n), Some(Some((value(*n), None))));
        assert_eq!(get(&memtable, key.as_bytes(), *n - 1), None);
        iter.next().unwrap();
    }
    assert!(!iter.valid());
    assert_eq!(memtable.entries(), 399);
}
