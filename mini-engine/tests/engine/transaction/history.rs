//! Histories of transactions, and the check that they are serializable: when all committed transactions run one after the other on an ordinary
//! map, in the order of their sequence numbers, each must read what it read before.

use std::collections::VecDeque;

use crate::support::*;

pub(super) const KEYS: u64 = 12;

pub(super) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

#[derive(Clone, Debug)]
pub(super) enum Op {
    Get(Vec<u8>),
    Contains(Vec<u8>),
    GetMany(Vec<Vec<u8>>),
    First,
    Last,
    /// A walk from both ends; each bit selects an end.
    Walk(Bounds, Vec<bool>),
    Insert(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    RemoveRange(Bounds),
    /// Operations after a savepoint, to which the transaction then returns.
    RolledBack(Vec<Op>),
}

/// The entries that an operation has returned; a read of one key has a value without a key.
pub(super) type Answer = Vec<Option<(Vec<u8>, Vec<u8>)>>;

fn answer(entry: Option<(Slice, Slice)>) -> Option<(Vec<u8>, Vec<u8>)> {
    entry.map(|(key, value)| (key.to_vec(), value.to_vec()))
}

impl Op {
    pub(super) fn random(random: &mut Random, value: &[u8]) -> Op {
        let key = |random: &mut Random| vec![b'a' + random.below(KEYS) as u8];
        let bounds = |random: &mut Random| {
            let bound = |random: &mut Random| match random.below(5) {
                0 => Bound::Unbounded,
                1 => Bound::Excluded(vec![b'a' + random.below(KEYS) as u8]),
                _ => Bound::Included(vec![b'a' + random.below(KEYS) as u8]),
            };
            (bound(random), bound(random))
        };
        match random.below(17) {
            0..4 => Op::Get(key(random)),
            4 => Op::Contains(key(random)),
            5 => Op::GetMany((0..3).map(|_| key(random)).collect()),
            6 => Op::First,
            7 => Op::Last,
            8..10 => Op::Walk(bounds(random), (0..random.below(5)).map(|_| random.one_in(2)).collect()),
            10..14 => Op::Insert(key(random), value.to_vec()),
            14 => Op::Remove(key(random)),
            15 => Op::RolledBack((0..1 + random.below(5)).map(|_| Op::random(random, value)).collect()),
            _ => {
                // Never inverted, because a removal of an inverted range is no write.
                let (from, more) = (random.below(KEYS), random.below(KEYS));
                let end = |n: u64| vec![b'a' + n as u8];
                Op::RemoveRange((Bound::Included(end(from)), Bound::Included(end(from + more))))
            }
        }
    }

    /// Whether the operation is a write without a read.
    pub(super) fn is_write(&self) -> bool {
        matches!(self, Op::Insert(..) | Op::Remove(_) | Op::RemoveRange(_))
    }

    pub(super) fn run(&self, transaction: &Transaction) -> Result<Answer, Error> {
        let value = |value: Option<Slice>| value.map(|value| (Vec::new(), value.to_vec()));
        Ok(match self {
            Op::Get(key) => vec![value(transaction.get(key)?)],
            Op::Contains(key) => vec![transaction.contains_key(key)?.then(Default::default)],
            Op::GetMany(keys) => transaction.get_many(keys)?.into_iter().map(value).collect(),
            Op::First => vec![answer(transaction.first()?)],
            Op::Last => vec![answer(transaction.last()?)],
            Op::Walk(bounds, ends) => {
                let mut iter = transaction.range(bounds.clone());
                let step = |front: &bool| if *front { iter.next() } else { iter.next_back() };
                ends.iter().map(step).map(|entry| Ok(answer(entry.transpose()?))).collect::<Result<_, Error>>()?
            }
            Op::Insert(key, value) => transaction.insert(key, value).map(|()| Vec::new())?,
            Op::Remove(key) => transaction.remove(key).map(|()| Vec::new())?,
            Op::RemoveRange(bounds) => transaction.remove_range(bounds.clone()).map(|()| Vec::new())?,
            Op::RolledBack(ops) => {
                let savepoint = transaction.savepoint();
                let answers = ops.iter().map(|op| op.run(transaction)).collect::<Result<Vec<_>, _>>()?;
                transaction.roll_back_to(&savepoint)?;
                answers.concat()
            }
        })
    }

    pub(super) fn run_on_model(&self, model: &mut Map) -> Answer {
        let get = |key: &Vec<u8>| model.get(key).map(|value| (Vec::new(), value.clone()));
        let entry = |entry: Option<(&Vec<u8>, &Vec<u8>)>| entry.map(|(key, value)| (key.clone(), value.clone()));
        match self {
            Op::Get(key) => vec![get(key)],
            Op::Contains(key) => vec![model.contains_key(key).then(Default::default)],
            Op::GetMany(keys) => keys.iter().map(get).collect(),
            Op::First => vec![entry(model.iter().next())],
            Op::Last => vec![entry(model.iter().next_back())],
            Op::Walk(bounds, ends) => {
                let within = model.iter().filter(|(key, _)| std::ops::RangeBounds::contains(bounds, *key));
                let mut rest: VecDeque<_> = within.collect();
                let mut is_over = false;
                let step = |front: &bool| {
                    let found = if *front { rest.pop_front() } else { rest.pop_back() };
                    is_over |= found.is_none();
                    entry(found.filter(|_| !is_over))
                };
                ends.iter().map(step).collect()
            }
            Op::Insert(key, value) => {
                model.insert(key.clone(), value.clone());
                Vec::new()
            }
            Op::Remove(key) => {
                model.remove(key);
                Vec::new()
            }
            Op::RemoveRange(bounds) => {
                model.retain(|key, _| !std::ops::RangeBounds::contains(bounds, key));
                Vec::new()
            }
            Op::RolledBack(ops) => {
                let mut copy = model.clone();
                ops.iter().flat_map(|op| op.run_on_model(&mut copy)).collect()
            }
        }
    }
}

/// A committed transaction, or another write.
#[derive(Clone, Debug)]
pub(super) struct Committed {
    /// The sequence number that its commit has returned.
    pub(super) seqno: u64,
    /// The greatest sequence number that was acknowledged before it began.
    pub(super) after: u64,
    pub(super) steps: Vec<(Op, Answer)>,
}

impl Committed {
    fn writes(&self) -> bool {
        self.steps.iter().any(|(op, _)| op.is_write())
    }
}

/// Replays the history in the order of its sequence numbers. Returns the contents at its end, or the first difference.
pub(super) fn replay(mut history: Vec<Committed>) -> Result<Map, String> {
    let mut model = Map::new();
    // A read-only transaction has the sequence number of the last write that it sees.
    history.sort_by_key(|of| (of.seqno, !of.writes()));
    for of in &history {
        if of.seqno < of.after {
            return Err(format!("before write {}, which had been acknowledged: {of:?}", of.after));
        }
        for (op, found) in &of.steps {
            let expected = op.run_on_model(&mut model);
            if expected != *found {
                return Err(format!("{op:?}: expected {expected:?}, found {found:?} in {of:?}"));
            }
        }
    }
    Ok(model)
}

#[test]
fn what_is_not_serial_is_found() {
    // Catches a check that accepts every history: it must reject write skew, a phantom, a lost update, and a read of the past.
    let (a, b) = (b"a".to_vec(), b"b".to_vec());
    let insert = |key: &[u8], value: &[u8]| (Op::Insert(key.to_vec(), value.to_vec()), Vec::new());
    let get = |key: &Vec<u8>, value: Option<&[u8]>| (Op::Get(key.clone()), vec![value.map(|v| (vec![], v.to_vec()))]);
    let of = |seqno, after, steps| Committed { seqno, after, steps };
    let walk = |found: Option<&[u8]>| {
        let entry = found.map(|key| (key.to_vec(), b"1".to_vec()));
        (Op::Walk((Bound::Unbounded, Bound::Unbounded), vec![true]), vec![entry])
    };
    let serial = vec![
        of(1, 0, vec![get(&a, None), insert(b"b", b"1")]),
        of(2, 1, vec![get(&b, Some(b"1")), insert(b"a", b"2")]),
    ];
    assert_eq!(replay(serial).unwrap().len(), 2);
    let refused = [
        vec![of(2, 0, vec![get(&b, None), insert(b"a", b"1")]), of(1, 0, vec![get(&a, None), insert(b"b", b"1")])],
        vec![of(1, 0, vec![insert(b"c", b"1")]), of(2, 0, vec![walk(None), insert(b"d", b"1")])],
        vec![of(1, 0, vec![get(&a, None), insert(b"a", b"1")]), of(2, 0, vec![get(&a, None), insert(b"a", b"1")])],
        vec![of(1, 0, vec![insert(b"a", b"1")]), of(0, 1, vec![get(&a, None)])],
    ];
    for history in refused {
        assert!(replay(history.clone()).is_err(), "{history:?}");
    }
}
