//! The view of a transaction: the database at its beginning, and its own writes.

use super::history::{Op, key};
use super::serial::rounds;
use crate::support::*;

/// Compares all reads of a transaction with the model.
fn compare(transaction: &Transaction, model: &Map) {
    let all: Vec<_> = model.clone().into_iter().collect();
    assert_eq!(pairs(transaction.iter()), all);
    assert_eq!(pairs(transaction.iter().rev()), all.iter().rev().cloned().collect::<Vec<_>>());
    let keys = [&[][..], b"a", b"b", b"ab", b"\xff", b"\xff\xff", b"b\0", b"never", b"b"];
    let reads = keys.map(|key| Op::Get(key.to_vec())).into_iter().chain(keys.map(|key| Op::Contains(key.to_vec())));
    for read in reads.chain([Op::GetMany(keys.map(<[u8]>::to_vec).to_vec()), Op::First, Op::Last]) {
        assert_eq!(read.run(transaction).unwrap(), read.run_on_model(&mut model.clone()), "{read:?}");
    }
    for prefix in keys {
        let within: Vec<_> = all.iter().filter(|(key, _)| key.starts_with(prefix)).cloned().collect();
        assert_eq!(pairs(transaction.prefix(prefix)), within);
    }
}

#[test]
fn a_transaction_reads_its_own_writes_over_the_database_as_it_was() {
    // Catches an own write that does not hide a committed entry, or hides another key, and a removed range that hides later inserts. Also catches an
    // iterator that yields a key twice, skips one, or fails where its ends meet, and visible writes of others. Also catches a commit that changes
    // the order of writes, or leaves a trace of dropped ones.
    for seed in 0..16 * rounds() {
        let mut random = Random(seed);
        let (_dir, db) = opened(|b| b.memtable_bytes(4096).l0_trigger(2).block_bytes(512));
        (0..random.below(20)).for_each(|n| db.insert(key(&mut random), vec![n as u8; n as usize]).unwrap());
        let (transaction, mut model, mut is_writer) = (db.transaction(), entries(&db), false);
        let (has_foreign, mut foreign) = (random.one_in(2), BTreeSet::new());
        for step in 0..1 + random.below(40) {
            let op = Op::random(&mut random, &vec![step as u8; step as usize]);
            match random.below(9) {
                0 => db.flush().unwrap(),
                // The transaction does not see it.
                1 if has_foreign => {
                    let key = key(&mut random);
                    db.insert(&key, "foreign").unwrap();
                    foreign.insert(key);
                }
                _ => {
                    assert_eq!(op.run(&transaction).unwrap(), op.run_on_model(&mut model), "{op:?} of seed {seed}");
                    is_writer |= op.writes();
                }
            }
            compare(&transaction, &model);
        }
        let (before, is_committed) = (entries(&db), random.one_in(2));
        let expected = match is_committed.then(|| transaction.commit(Durability::Buffered)) {
            Some(Ok(seqno)) if foreign.is_empty() => {
                assert_eq!(seqno, db.snapshot().seqno());
                model
            }
            // The transaction has read all keys, so each write of another one is a conflict, unless it only reads.
            Some(Err(Error::Conflict { key, .. })) if is_writer && foreign.contains(&key) => before,
            Some(Ok(_)) if !is_writer => before,
            None => before,
            other => panic!("{other:?} after {foreign:?} of seed {seed}"),
        };
        assert_eq!(entries(&db), expected, "seed {seed}");
    }
}
