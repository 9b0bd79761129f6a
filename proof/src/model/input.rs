//! Decodes steps from bytes of a fuzzer, or random bytes of a test. The meaning of the committed inputs depends on this decoding: after a change
//! here, make the inputs again (`fuzz/examples/seeds.rs`).

#[allow(dead_code, reason = "the models of the memtable use the rest")]
#[path = "../../../fastskip/tests/models/input.rs"]
mod bytes;

use std::ops::Bound;

use mini_engine::{Compaction, MemtableKind};

use self::bytes::Input;
use super::steps::{Bounds, Chosen, End, Key, Op, SPACES, Step};

/// Decodes the initial options and the steps.
pub fn steps(bytes: &[u8]) -> (Chosen, impl Iterator<Item = Step>) {
    let mut input = Input::new(bytes);
    (chosen(&mut input), std::iter::from_fn(move || (!input.is_empty()).then(|| step(&mut input))))
}

fn chosen(input: &mut Input<'_>) -> Chosen {
    Chosen {
        policy: input.choose(Compaction::ALL),
        ratio: 2 + u64::from(input.byte() % 3),
        memtable: input.choose(&[MemtableKind::SkipList, MemtableKind::Vector]),
        memtable_bytes: input.choose(&[4 << 10, 4 << 10, 4 << 10, 64 << 10]),
        filter_bits: input.choose(&[0, 10]),
    }
}

/// A short key of few letters, or one of many neighbouring keys, whose shared bytes are copied in one chunk or in several.
fn key(input: &mut Input<'_>) -> Key {
    match input.byte() % 8 {
        0 => input.key(),
        1..5 => (0..input.byte() % 4).map(|_| input.choose(&[0, b'a', b'b', 0xff])).collect(),
        _ => [vec![b'a'; input.choose(&[0, 15, 16, 17, 37])], vec![input.byte() % 60]].concat(),
    }
}

fn len(input: &mut Input<'_>) -> usize {
    usize::from(input.byte()) * 3
}

fn seconds(input: &mut Input<'_>) -> Option<u64> {
    Some(u64::from(input.byte() % 11)).filter(|seconds| *seconds < 9)
}

fn space(input: &mut Input<'_>) -> usize {
    usize::from(input.byte()) % SPACES.len()
}

fn bounds(input: &mut Input<'_>) -> Bounds {
    let bound = |input: &mut Input<'_>| match input.byte() % 3 {
        0 => Bound::Unbounded,
        1 => Bound::Included(key(input)),
        _ => Bound::Excluded(key(input)),
    };
    (bound(input), bound(input))
}

/// Fewer than `most` bits.
fn bits(input: &mut Input<'_>, most: u8) -> Vec<bool> {
    (0..input.byte() % most).map(|_| input.byte().is_multiple_of(2)).collect()
}

fn op(input: &mut Input<'_>) -> Op {
    match input.byte() % 32 {
        0..13 => Op::Insert(key(input), len(input)),
        13..18 => Op::InsertFor(key(input), len(input), seconds(input)),
        18..28 => Op::Remove(key(input)),
        28..31 => Op::RemoveRange(bounds(input)),
        _ => Op::RemovePrefix(key(input)),
    }
}

/// Operations that fill up to several memtables.
fn ops(input: &mut Input<'_>) -> Vec<Op> {
    (0..input.byte() % 20).map(|_| op(input)).collect()
}

fn end(input: &mut Input<'_>) -> End {
    match input.byte() % 4 {
        0 => End::Close,
        1 => End::Drop,
        2 => End::Kill,
        _ => End::PowerCut(u64::from(input.byte()) << 8 | u64::from(input.byte())),
    }
}

fn step(input: &mut Input<'_>) -> Step {
    match input.byte() % 64 {
        0 | 1 => Step::SetExpiry(key(input), seconds(input)),
        2..5 => Step::Pass(1 + u64::from(input.byte() % 4)),
        5..9 => Step::Batch(ops(input), input.byte().is_multiple_of(2)),
        9..12 => Step::Transact(ops(input), (input.byte().is_multiple_of(2)).then(|| (space(input), key(input)))),
        12 | 13 => Step::Load((0..1 + input.byte() % 8).map(|_| key(input)).collect(), len(input)),
        14 | 15 => Step::PopFirst,
        16 | 17 => Step::PopLast,
        18 => Step::Flush,
        19 => Step::Persist,
        20 | 21 => Step::TakeSnapshot,
        22 => Step::DropSnapshot,
        23..28 => Step::Enter(space(input)),
        28 => Step::DropKeyspace,
        29..32 => Step::Reopen(end(input), chosen(input)),
        32 => Step::CompactRange(bounds(input)),
        33 => Step::WaitForCompactions,
        34..38 => Step::Walk(bounds(input), bits(input, 30), (input.byte().is_multiple_of(2)).then(|| key(input))),
        38 => Step::Prefix(key(input)),
        39 | 40 => Step::Cursor(key(input), bits(input, 20)),
        _ => Step::Write(op(input)),
    }
}
