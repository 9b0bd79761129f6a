//! The view of a transaction: the database at its beginning, and its own writes.

use std::rc::Rc;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::*;

type Key = Vec<u8>;
type Bounds = (Bound<Key>, Bound<Key>);

#[derive(Clone, Debug)]
enum Step {
    Insert(Key),
    Remove(Key),
    RemoveRange(Bounds),
    /// A walk from both ends: each bit selects an end, and its optional step is taken after the move.
    Walk(Bounds, Vec<(bool, Option<Step>)>),
    Flush,
    /// A write by another writer, which the transaction does not see.
    Foreign(Key),
}

fn key() -> impl Strategy<Value = Key> {
    vec(prop::sample::select(&[0u8, b'a', b'b', 0xff][..]), 0..3)
}

fn bounds() -> impl Strategy<Value = Bounds> {
    let bound =
        || prop_oneof![Just(Bound::Unbounded), key().prop_map(Bound::Included), key().prop_map(Bound::Excluded)];
    (bound(), bound())
}

fn write() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => key().prop_map(Step::Insert),
        3 => key().prop_map(Step::Remove),
        1 => bounds().prop_map(Step::RemoveRange),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let walk = (bounds(), vec((any::<bool>(), prop::option::weighted(0.3, write())), 0..16));
    prop_oneof![
        4 => write(),
        3 => walk.prop_map(|(bounds, moves)| Step::Walk(bounds, moves)),
        1 => Just(Step::Flush),
        1 => key().prop_map(Step::Foreign),
    ]
}

struct Run {
    db: Db,
    transaction: Rc<Transaction>,
    model: Map,
    written: u8,
}

impl Run {
    fn new(db: Db) -> Run {
        Run { transaction: Rc::new(db.transaction()), model: entries(&db), db, written: 0 }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Insert(key) => {
                self.written += 1;
                let value = vec![self.written; usize::from(self.written) % 40];
                self.transaction.insert(&key, &value).unwrap();
                self.model.insert(key, value);
            }
            Step::Remove(key) => {
                self.transaction.remove(&key).unwrap();
                self.model.remove(&key);
            }
            Step::RemoveRange(bounds) => {
                self.transaction.remove_range(bounds.clone()).unwrap();
                self.model.retain(|key, _| !std::ops::RangeBounds::contains(&bounds, key));
            }
            Step::Walk(bounds, moves) => self.walk(bounds, moves),
            Step::Flush => self.db.flush().unwrap(),
            Step::Foreign(key) => self.db.insert(key, "foreign").unwrap(),
        }
    }

    /// Compares each entry with the model: it must be the first or the last one, at that moment, between the entries already yielded.
    fn walk(&mut self, mut rest: Bounds, moves: Vec<(bool, Option<Step>)>) {
        let transaction = Rc::clone(&self.transaction);
        let mut iter = transaction.range(rest.clone());
        let mut is_over = false;
        for (is_front, step) in moves {
            let is_left = |key: &Key| !is_over && std::ops::RangeBounds::contains(&rest, key);
            let mut left = self.model.iter().filter(|(key, _)| is_left(key));
            let expected = if is_front { left.next() } else { left.next_back() };
            let expected = expected.map(|(key, value)| (key.clone(), value.clone()));
            let found = if is_front { iter.next() } else { iter.next_back() };
            assert_eq!(found.map(|entry| entry.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())), expected);
            is_over |= expected.is_none();
            if let Some((key, _)) = expected {
                let end = if is_front { &mut rest.0 } else { &mut rest.1 };
                *end = Bound::Excluded(key);
            }
            step.into_iter().for_each(|step| self.run(step));
        }
    }

    fn compare(&self) {
        let (transaction, model) = (&self.transaction, &self.model);
        let all: Vec<_> = model.clone().into_iter().collect();
        assert_eq!(pairs(transaction.iter()), all);
        assert_eq!(pairs(transaction.iter().rev()), all.iter().rev().cloned().collect::<Vec<_>>());
        let keys = [&[][..], b"a", b"b", b"ab", b"\xff", b"\xff\xff", b"b\0", b"never", b"b"];
        let values = transaction.get_many(keys).unwrap();
        for (key, many) in keys.into_iter().zip(values) {
            let expected = model.get(key).map(Vec::as_slice);
            assert_eq!((transaction.get(key).unwrap().as_deref(), many.as_deref()), (expected, expected));
            assert_eq!(transaction.contains_key(key).unwrap(), expected.is_some());
            let within: Vec<_> = all.iter().filter(|(of, _)| of.starts_with(key)).cloned().collect();
            assert_eq!(pairs(transaction.prefix(key)), within);
        }
        let ends = [transaction.first(), transaction.last()].map(|end| end.unwrap().map(|(key, _)| key.to_vec()));
        assert_eq!(ends, [all.first(), all.last()].map(|end| end.map(|(key, _)| key.clone())));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_transaction_reads_its_own_writes_over_the_database_as_it_was(
        stored in vec((key(), 0..30usize), 0..20), steps in vec(step(), 1..40), is_committed in any::<bool>(),
    ) {
        // Catches an own write that does not hide a committed entry, or hides another key, and a removed range that hides later inserts. Also
        // catches an iterator that yields a key twice, skips one, or fails where its ends meet, and visible writes of others. Also catches a
        // commit that changes the order of writes, or leaves a trace of dropped ones.
        let (_dir, db) = opened(|b| b.memtable_bytes(4096).l0_trigger(2).block_bytes(512));
        for (at, (key, len)) in stored.into_iter().enumerate() {
            db.insert(key, vec![at as u8; len]).unwrap();
        }
        let mut run = Run::new(db);
        let mut foreign = Vec::new();
        for step in steps {
            if let Step::Foreign(key) = &step {
                foreign.push(key.clone());
            }
            run.run(step);
            run.compare();
        }
        let Run { db, transaction, model, written } = run;
        let transaction = Rc::into_inner(transaction).expect("no iterator is left");
        let mut expected = entries(&db);
        if is_committed && foreign.is_empty() {
            let seqno = transaction.commit(Durability::Buffered).unwrap();
            prop_assert_eq!(seqno, db.snapshot().seqno());
            expected = model;
        } else if is_committed && written > 0 {
            // The transaction has read all keys, so any other write is a conflict.
            let refused = transaction.commit(Durability::Buffered);
            let is_refused = matches!(refused, Err(Error::Conflict { ref key, .. }) if foreign.contains(key));
            prop_assert!(is_refused, "{:?} after {:?}", refused, foreign);
        }
        prop_assert_eq!(entries(&db), expected);
    }
}
