//! Every committed input of every target, on any compiler.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use fuzz::{MemtableOp, SkipListOp, memtable_ops, skiplist_ops};

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let inputs: Vec<_> = fs::read_dir(folder).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap()).collect();
    assert!(inputs.len() >= 10, "{target} has only {} inputs", inputs.len());
    inputs
}

/// Catches a list that departs from a map, and a corpus that does not reach some operation.
#[test]
fn skiplist_corpus_replays_and_covers_every_operation() {
    let met: BTreeSet<_> = corpus("skiplist_ops").iter().flat_map(|input| skiplist_ops(input)).collect();
    assert_eq!(met, SkipListOp::ALL.into());
}

/// Catches a memtable that departs from a map of versions, and a corpus that does not reach some operation.
#[test]
fn memtable_corpus_replays_and_covers_every_operation() {
    let met: BTreeSet<_> = corpus("memtable_ops").iter().flat_map(|input| memtable_ops(input)).collect();
    assert_eq!(met, MemtableOp::ALL.into());
}
