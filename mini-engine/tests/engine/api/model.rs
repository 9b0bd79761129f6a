//! Random operations against ordinary maps, one for each keyspace; after every step, everything readable is compared.

use proof::model::{Bounds, Chosen, End, Key, Op, Run, SPACES, Step};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::*;

/// Short keys of few letters, or many neighbours that share so much that they are copied in one chunk, or in several.
fn key() -> impl Strategy<Value = Key> {
    let neighbour = (prop::sample::select(&[0usize, 15, 16, 17, 37][..]), 0u8..60);
    prop_oneof![
        3 => vec(prop::sample::select(&[0u8, b'a', b'b', 0xff][..]), 0..4),
        2 => neighbour.prop_map(|(shared, last)| [std::vec![b'a'; shared], std::vec![last]].concat()),
    ]
}

fn bounds() -> impl Strategy<Value = Bounds> {
    let bound =
        || prop_oneof![Just(Bound::Unbounded), key().prop_map(Bound::Included), key().prop_map(Bound::Excluded)];
    (bound(), bound())
}

const LEVELED: Chosen = Chosen {
    policy: Compaction::Leveled,
    ratio: 10,
    memtable: MemtableKind::SkipList,
    memtable_bytes: 4096,
    filter_bits: 10,
};

const MEMTABLES: [MemtableKind; 2] = [MemtableKind::SkipList, MemtableKind::Vector];

fn chosen() -> impl Strategy<Value = Chosen> {
    let options = (prop::sample::select(&POLICIES[..]), 2..5u64, prop::sample::select(&MEMTABLES[..]), any::<bool>());
    options.prop_map(|(policy, ratio, memtable, is_filtered)| Chosen {
        policy,
        ratio,
        memtable,
        memtable_bytes: 4096,
        filter_bits: if is_filtered { 10 } else { 0 },
    })
}

fn step() -> impl Strategy<Value = Step> {
    let len = 0..900usize;
    let seconds = || prop::option::weighted(0.8, 0..9u64);
    let op = prop_oneof![
        12 => (key(), len.clone()).prop_map(|(key, len)| Op::Insert(key, len)),
        5 => (key(), len.clone(), seconds()).prop_map(|(key, len, seconds)| Op::InsertFor(key, len, seconds)),
        9 => key().prop_map(Op::Remove),
        2 => bounds().prop_map(Op::RemoveRange),
        1 => key().prop_map(Op::RemovePrefix),
    ]
    .boxed();
    let batch = || vec(op.clone(), 0..20);
    let foreign = prop::option::of((0..SPACES.len(), key()));
    let end = prop_oneof![Just(End::Close), Just(End::Drop), Just(End::Kill), any::<u64>().prop_map(End::PowerCut)];
    prop_oneof![
        25 => op.clone().prop_map(Step::Write),
        2 => (key(), prop::option::of(0..9u64)).prop_map(|(key, seconds)| Step::SetExpiry(key, seconds)),
        3 => (1..5u64).prop_map(Step::Pass),
        // Up to several memtables in one batch.
        4 => (batch(), any::<bool>()).prop_map(|(ops, synced)| Step::Batch(ops, synced)),
        3 => (batch(), foreign).prop_map(|(ops, foreign)| Step::Transact(ops, foreign)),
        2 => (vec(key(), 1..9), len).prop_map(|(keys, len)| Step::Load(keys, len)),
        2 => Just(Step::PopFirst),
        2 => Just(Step::PopLast),
        1 => Just(Step::Flush),
        1 => Just(Step::Persist),
        2 => Just(Step::TakeSnapshot),
        1 => Just(Step::DropSnapshot),
        5 => (0..SPACES.len()).prop_map(Step::Enter),
        1 => Just(Step::DropKeyspace),
        3 => (end, chosen()).prop_map(|(end, chosen)| Step::Reopen(end, chosen)),
        1 => bounds().prop_map(Step::CompactRange),
        1 => Just(Step::WaitForCompactions),
        4 => (bounds(), vec(any::<bool>(), 0..30), prop::option::of(key()))
            .prop_map(|(bounds, ends, seek)| Step::Walk(bounds, ends, seek)),
        1 => key().prop_map(Step::Prefix),
        2 => (key(), vec(any::<bool>(), 0..20)).prop_map(|(key, moves)| Step::Cursor(key, moves)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_read_agrees_with_an_ordinary_map_after_every_step(
        chosen in chosen(), steps in vec(step(), 1..120), is_in_memory in any::<bool>(),
    ) {
        // Catches any mistake of a memtable of either kind, a flush, a load, a compaction, a recovery or an iterator about order, versions,
        // tombstones, removed ranges, bounds and directions, under each policy and after a change from any policy to any other; combined reads that
        // differ from single reads, or that exceed their limit; an end of the order that pops remember wrongly; keyspaces that see each other; a
        // transaction that does not see its own writes, misses a conflict, meets one that is none, or leaves a trace when it is refused; a write that
        // a kill loses, or a power cut although it was durable.
        let mut run = if is_in_memory { Run::in_memory(&chosen) } else { Run::on_system(&chosen) };
        for step in steps {
            run.step(step);
        }
        prop_assert!(run.db().verify().unwrap().problems.is_empty());
    }
}

#[test]
fn the_model_workload_rotates_flushes_and_compacts() {
    // Catches a model test that never leaves the first memtable, and so shows nothing about tables.
    let mut run = Run::on_system(&LEVELED);
    for n in 0..200u32 {
        run.step(Step::Write(Op::Insert(n.to_be_bytes()[3..].to_vec(), 500)));
    }
    run.step(Step::Flush);
    let metrics = run.db().metrics();
    assert!(metrics.flushes > 5, "{metrics:?}");
    // The compactions that are still due end before the close of the next open does.
    wait_while(|| run.db().metrics().compactions == 0);
    run.step(Step::WaitForCompactions);
}

#[test]
fn the_model_workload_commits_and_refuses_transactions() {
    // Catches transactions of the model test that are never refused, or never committed, and so show nothing about conflicts.
    let mut run = Run::on_system(&LEVELED);
    for n in 0..40u8 {
        let ops = || (0..6).map(|at| Op::InsertFor(vec![n, at], 50, Some(3))).collect();
        run.step(Step::Enter(usize::from(n) % SPACES.len()));
        run.step(Step::Transact(ops(), (n % 2 == 0).then(|| (usize::from(n / 2) % SPACES.len(), vec![n]))));
        run.step(Step::Pass(1));
    }
    let (committed, refused) = run.transactions();
    assert!(committed > 5 && refused > 5, "{committed} committed, {refused} refused");
}

#[test]
fn the_model_workload_loses_writes_that_were_not_synced_and_no_others() {
    // Catches kills and power cuts of the model test that cost nothing, and so show nothing about durability.
    let mut run = Run::in_memory(&LEVELED);
    let insert = |n: u64| Step::Write(Op::Insert(vec![n as u8 % 50], 60));
    let mut lost = 0;
    for seed in 0..40 {
        for n in 0..9 {
            run.step(insert(seed + n));
        }
        let is_lost = run.step(Step::Reopen(if seed % 4 == 3 { End::Kill } else { End::PowerCut(seed) }, LEVELED));
        assert!(!(is_lost && seed % 4 == 3), "a kill loses nothing");
        lost += u64::from(is_lost);
        run.step(insert(seed));
        run.step(Step::Persist);
        assert!(!run.step(Step::Reopen(End::PowerCut(seed), LEVELED)), "all of it was synced");
    }
    assert!(lost > 5, "{lost} losses");
}
