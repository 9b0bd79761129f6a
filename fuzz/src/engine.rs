//! The engine against ordinary maps, on a disk in memory, with reopens, kills and power cuts: the steps of [`proof::model`], read from bytes.

use std::ops::Bound;

use mini_engine::{Compaction, MemtableKind};
use proof::model::{Bounds, Chosen, End, Key, Op, Run, SPACES, Step};

use crate::Met;
use crate::models::input::Input;

/// Takes the steps that `input` stands for.
///
/// # Panics
/// If the engine and the maps differ.
pub fn engine_ops(input: &[u8]) -> Met {
    let mut input = Input::new(input);
    let mut run = Run::in_memory(&chosen(&mut input));
    let mut met = Met::new();
    while !input.is_empty() {
        let step = step(&mut input);
        let mut name = name(&step);
        if let Step::Reopen(end, _) = &step {
            name = self::name(end);
        }
        let has_lost = run.step(step);
        met.insert(if has_lost { format!("{name}: buffered writes lost") } else { name });
    }
    met
}

/// The name of a variant.
fn name(of: &impl std::fmt::Debug) -> String {
    format!("{of:?}").split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

fn chosen(input: &mut Input<'_>) -> Chosen {
    Chosen {
        policy: input.choose(Compaction::ALL),
        ratio: 2 + u64::from(input.byte() % 3),
        memtable: input.choose(&[MemtableKind::SkipList, MemtableKind::Vector]),
        memtable_bytes: input.choose(&[4 << 10, 16 << 10, 256 << 10]),
        filter_bits: input.choose(&[0, 10]),
    }
}

fn len(input: &mut Input<'_>) -> usize {
    usize::from(input.byte()) * 3
}

fn seconds(input: &mut Input<'_>) -> Option<u64> {
    Some(u64::from(input.byte() % 10)).filter(|seconds| *seconds < 9)
}

fn space(input: &mut Input<'_>) -> usize {
    usize::from(input.byte()) % SPACES.len()
}

fn bounds(input: &mut Input<'_>) -> Bounds {
    let bound = |input: &mut Input<'_>| match input.byte() % 3 {
        0 => Bound::Unbounded,
        1 => Bound::Included(input.key()),
        _ => Bound::Excluded(input.key()),
    };
    (bound(input), bound(input))
}

fn bits(input: &mut Input<'_>) -> Vec<bool> {
    (0..input.byte() % 16).map(|_| input.byte() % 2 == 0).collect()
}

fn keys(input: &mut Input<'_>) -> Vec<Key> {
    (0..1 + input.byte() % 8).map(|_| input.key()).collect()
}

fn op(input: &mut Input<'_>) -> Op {
    match input.byte() % 8 {
        0..3 => Op::Insert(input.key(), len(input)),
        3 => Op::InsertFor(input.key(), len(input), seconds(input)),
        4 | 5 => Op::Remove(input.key()),
        6 => Op::RemoveRange(bounds(input)),
        _ => Op::RemovePrefix(input.key()),
    }
}

fn step(input: &mut Input<'_>) -> Step {
    let ops = |input: &mut Input<'_>| (0..input.byte() % 10).map(|_| op(input)).collect();
    match input.byte() % 32 {
        0 => Step::SetExpiry(input.key(), seconds(input)),
        1 => Step::Pass(u64::from(input.byte() % 5)),
        2..5 => Step::Batch(ops(input), input.byte() % 3 == 0),
        5 | 6 => Step::Transact(ops(input), (input.byte() % 2 == 0).then(|| (space(input), input.key()))),
        7 => Step::Load(keys(input), len(input)),
        8 => Step::PopFirst,
        9 => Step::PopLast,
        10 => Step::Flush,
        11 => Step::Persist,
        12 => Step::TakeSnapshot,
        13 => Step::DropSnapshot,
        14 | 15 => Step::Enter(space(input)),
        16 => Step::DropKeyspace,
        17 => Step::Reopen(End::Close, chosen(input)),
        18 => Step::Reopen(End::Drop, chosen(input)),
        19 => Step::Reopen(End::Kill, chosen(input)),
        20 | 21 => Step::Reopen(End::PowerCut(u64::from(input.byte()) << 8 | u64::from(input.byte())), chosen(input)),
        22 => Step::CompactRange(bounds(input)),
        23 => Step::WaitForCompactions,
        24 => Step::Walk(bounds(input), bits(input), Some(input.key())),
        25 => Step::Prefix(input.key()),
        26 => Step::Cursor(input.key(), bits(input)),
        _ => Step::Write(op(input)),
    }
}
