//! Every committed input of every target, on any compiler. `cargo run -p fuzz --example seeds` made the first of them.

use std::fs;
use std::path::Path;

use fuzz::{Body, MemtableOp, Met, SkipListOp, TARGETS, memtable_ops, skiplist_ops};

/// What all inputs of a target meet together.
fn replay(target: &str, body: Body) -> Met {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let files = fs::read_dir(folder).unwrap();
    let inputs: Vec<_> = files.map(|file| fs::read(file.unwrap().path()).unwrap()).collect();
    assert!(inputs.len() >= 12, "{target} has only {} inputs", inputs.len());
    assert!(inputs.iter().all(|input| !input.is_empty()), "{target} has an empty input");
    inputs.iter().flat_map(|input| body(input)).collect()
}

fn met<'a>(operations: impl Iterator<Item = String>, refusals: &'a [&'a str]) -> Met {
    operations.chain(refusals.iter().map(|refusal| (*refusal).to_owned())).collect()
}

/// Catches a list that departs from a map, and a corpus that does not reach some operation or some refusal of it.
#[test]
fn skiplist_corpus_replays_and_meets_every_operation_and_refusal() {
    let refusals = [
        "Delete: Full",
        "Delete: Sealed",
        "GetOrInsert: Full",
        "GetOrInsert: Full, memory",
        "GetOrInsert: Sealed",
        "Insert: DuplicateKey",
        "Insert: Full",
        "Insert: Full, memory",
        "Insert: Sealed",
        "Insert: TooLarge",
        "InsertTombstone: Full",
        "InsertTombstone: Full, memory",
        "InsertTombstone: Sealed",
    ];
    let operations = SkipListOp::ALL.iter().map(|op| format!("{op:?}"));
    assert_eq!(replay("skiplist_ops", skiplist_ops), met(operations, &refusals));
}

/// Catches a memtable that departs from a map of versions, and a corpus that does not reach some operation or some
/// refusal of it.
#[test]
fn memtable_corpus_replays_and_meets_every_operation_and_refusal() {
    let refusals = [
        "Apply: Full",
        "Apply: Full, memory",
        "Apply: Sealed",
        "Apply: TooLarge",
        "Apply: TooLarge, memory",
        "DropReservation: Full",
        "DropReservation: Full, memory",
        "DropReservation: Sealed",
        "DropReservation: TooLarge",
        "DropReservation: TooLarge, memory",
        "Put: DuplicateKey",
        "Put: Full",
        "Put: Full, memory",
        "Put: Sealed",
        "Put: TooLarge",
    ];
    let operations = MemtableOp::ALL.iter().map(|op| format!("{op:?}"));
    assert_eq!(replay("memtable_ops", memtable_ops), met(operations, &refusals));
}

/// Catches a target that no test replays.
#[test]
fn every_target_has_a_test() {
    assert_eq!(TARGETS.map(|(target, _)| target), ["skiplist_ops", "memtable_ops"]);
}
