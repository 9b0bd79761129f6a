//! Compares random operations with ordinary maps, one for each keyspace. After every step, all readable data is compared.

use proof::model::{Chosen, End, Op, Run, SPACES, Step, steps};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::*;

const LEVELED: Chosen = Chosen {
    policy: Compaction::Leveled,
    ratio: 10,
    memtable: MemtableKind::SkipList,
    memtable_bytes: 4096,
    filter_bits: 10,
};

proptest! {
    // `MODEL_CASES` sets another number of them.
    #![proptest_config(ProptestConfig {
        cases: proof::environment::number("MODEL_CASES").unwrap_or(48) as u32, ..ProptestConfig::default()
    })]

    #[test]
    fn every_read_agrees_with_an_ordinary_map_after_every_step(
        bytes in vec(any::<u8>(), 1..1400), is_in_memory in any::<bool>(),
    ) {
        // Catches any mistake about order, versions, tombstones, removed ranges, bounds and directions in a memtable of either kind, a flush,
        // a load, a compaction, a recovery or an iterator, under each policy and after any change of policy. Also catches combined reads that
        // differ from single reads or exceed their limit, a wrong cached end for pops, and keyspaces that see each other's keys. Also catches a
        // transaction that does not see its own writes, misses a conflict, reports a false one, or leaves a trace when it is refused. Also catches a
        // write lost by a kill, and a durable one lost by a power cut.
        let (chosen, steps) = steps(&bytes);
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
    // Waits for the due compactions, which end before the next open is closed.
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
    // Catches kills and power cuts of the model test that lose no writes, and so show nothing about durability.
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
