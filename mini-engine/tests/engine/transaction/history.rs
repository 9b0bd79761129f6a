//! Histories of transactions, and the check that they are serializable: when all committed transactions run one after the other on an ordinary
//! map, in the order of their sequence numbers, each must read what it read before.

use std::ops::RangeBounds;

use crate::support::*;

pub(super) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

#[derive(Clone, Debug)]
pub(super) enum Op {
    Get(Vec<u8>),
    Contains(Vec<u8>),
    GetMany(Vec<Vec<u8>>),
    First,
    Last,
    /// A walk from both ends: each bit selects an end, and its optional write is made after the move.
    Walk(Bounds, Vec<(bool, Option<Op>)>),
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

/// One of 21 keys, of which some begin others.
pub(super) fn key(random: &mut Random) -> Vec<u8> {
    (0..random.below(3)).map(|_| [0, b'a', b'b', 0xff][random.index(4)]).collect()
}

fn bounds(random: &mut Random) -> Bounds {
    let bound = |random: &mut Random| match random.below(5) {
        0 => Bound::Unbounded,
        1 => Bound::Excluded(key(random)),
        _ => Bound::Included(key(random)),
    };
    (bound(random), bound(random))
}

impl Op {
    pub(super) fn random(random: &mut Random, value: &[u8]) -> Op {
        match random.below(17) {
            0..4 => Op::Get(key(random)),
            4 => Op::Contains(key(random)),
            5 => Op::GetMany((0..3).map(|_| key(random)).collect()),
            6 => Op::First,
            7 => Op::Last,
            8..10 => {
                let moved = |random: &mut Random| {
                    let write = random.one_in(4).then(|| Op::random_write(random, value));
                    (random.one_in(2), write)
                };
                Op::Walk(bounds(random), (0..random.below(16)).map(|_| moved(random)).collect())
            }
            10 => Op::RolledBack((0..1 + random.below(5)).map(|_| Op::random(random, value)).collect()),
            _ => Op::random_write(random, value),
        }
    }

    pub(super) fn random_write(random: &mut Random, value: &[u8]) -> Op {
        match random.below(6) {
            0..4 => Op::Insert(key(random), value.to_vec()),
            4 => Op::Remove(key(random)),
            // Never inverted, because a removal of an inverted range is no write.
            _ => {
                let mut ends = [key(random), key(random)];
                ends.sort();
                Op::RemoveRange(ends.map(Bound::Included).into())
            }
        }
    }

    /// Whether the operation is a write without a read.
    pub(super) fn is_write(&self) -> bool {
        matches!(self, Op::Insert(..) | Op::Remove(_) | Op::RemoveRange(_))
    }

    /// Whether the operation writes.
    pub(super) fn writes(&self) -> bool {
        match self {
            Op::Walk(_, moves) => moves.iter().any(|(_, write)| write.is_some()),
            _ => self.is_write(),
        }
    }

    pub(super) fn run(&self, transaction: &Transaction) -> Result<Answer, Error> {
        let value = |value: Option<Slice>| value.map(|value| (Vec::new(), value.to_vec()));
        Ok(match self {
            Op::Get(key) => vec![value(transaction.get(key)?)],
            Op::Contains(key) => vec![transaction.contains_key(key)?.then(Default::default)],
            Op::GetMany(keys) => transaction.get_many(keys)?.into_iter().map(value).collect(),
            Op::First => vec![answer(transaction.first()?)],
            Op::Last => vec![answer(transaction.last()?)],
            Op::Walk(bounds, moves) => {
                let mut iter = transaction.range(bounds.clone());
                let step = |(is_front, write): &(bool, Option<Op>)| {
                    let entry = if *is_front { iter.next() } else { iter.next_back() };
                    write.iter().try_for_each(|write| write.run(transaction).map(drop))?;
                    Ok(answer(entry.transpose()?))
                };
                moves.iter().map(step).collect::<Result<_, Error>>()?
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
            Op::Walk(bounds, moves) => {
                // Each entry is the first or the last one, at that moment, between those already yielded.
                let (mut rest, mut is_over) = (bounds.clone(), false);
                let step = |(is_front, write): &(bool, Option<Op>)| {
                    let mut left = model.iter().filter(|(key, _)| !is_over && rest.contains(*key));
                    let found = entry(if *is_front { left.next() } else { left.next_back() });
                    match &found {
                        Some((key, _)) if *is_front => rest.0 = Bound::Excluded(key.clone()),
                        Some((key, _)) => rest.1 = Bound::Excluded(key.clone()),
                        None => is_over = true,
                    }
                    write.iter().for_each(|write| drop(write.run_on_model(model)));
                    found
                };
                moves.iter().map(step).collect()
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
                model.retain(|key, _| !bounds.contains(key));
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
        self.steps.iter().any(|(op, _)| op.writes())
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
        (Op::Walk((Bound::Unbounded, Bound::Unbounded), vec![(true, None)]), vec![entry])
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
