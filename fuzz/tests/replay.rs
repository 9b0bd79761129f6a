//! Replays every committed input of every target, on any compiler. `cargo run -p fuzz --example seeds` made the first inputs.

use std::fs;
use std::path::Path;

use fuzz::{Body, MemtableOp, Met, SkipListOp, TARGETS, memtable_ops, skiplist_ops};

/// The union of the operations and outcomes of all inputs of a target.
fn replay(target: &str, body: Body) -> Met {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let files = fs::read_dir(folder).unwrap();
    let inputs: Vec<_> = files.map(|file| fs::read(file.unwrap().path()).unwrap()).collect();
    assert!(inputs.len() >= 12, "{target} has only {} inputs", inputs.len());
    assert!(inputs.iter().all(|input| !input.is_empty()), "{target} has an empty input");
    inputs.iter().flat_map(|input| body(input)).collect()
}

/// All required outcomes: the operations, and `others`, which are separated by `|`.
fn met(operations: impl Iterator<Item = String>, others: &str) -> Met {
    operations.chain(others.split('|').map(str::to_owned)).collect()
}

/// Catches a list that differs from a map, and a corpus that does not reach some operation or some refusal of it.
#[test]
fn skiplist_corpus_replays_and_meets_every_operation_and_refusal() {
    let refusals = "Delete: Full|Delete: Frozen|GetOrInsert: Full|GetOrInsert: Frozen|Insert: DuplicateKey|Insert: Full|\
         Insert: Frozen|Insert: TooLarge|Insert: TooLarge, memory|InsertTombstone: Full|InsertTombstone: Frozen";
    let operations = SkipListOp::ALL.iter().map(|op| format!("{op:?}"));
    assert_eq!(replay("skiplist_ops", skiplist_ops), met(operations, refusals));
}

/// Catches a memtable that differs from a map of versions, and a corpus that does not reach some operation or some refusal of it.
#[test]
fn memtable_corpus_replays_and_meets_every_operation_and_refusal() {
    let refusals = "Apply: Full|Apply: Full, memory|Apply: Frozen|Apply: TooLarge|Apply: TooLarge, memory|\
         DropReservation: Full|DropReservation: Full, memory|DropReservation: Frozen|DropReservation: TooLarge|\
         DropReservation: TooLarge, memory|Put: DuplicateKey|Put: Full|Put: Frozen|Put: TooLarge|\
         Put: TooLarge, memory";
    let operations = MemtableOp::ALL.iter().map(|op| format!("{op:?}"));
    assert_eq!(replay("memtable_ops", memtable_ops), met(operations, refusals));
}

/// Catches an engine that differs from a map across reopens, kills and power cuts, and a corpus that does not reach each of them.
#[test]
fn engine_corpus_replays_and_meets_every_operation_and_ending() {
    let steps = "Batch|Close|CompactRange|Cursor|Drop|DropKeyspace|DropSnapshot|Enter|Flush|Kill|Load|Pass|Persist|PopFirst|\
         PopLast|PowerCut|PowerCut: buffered writes lost|Prefix|SetExpiry|TakeSnapshot|Transact|WaitForCompactions|Walk|\
         Write";
    assert_eq!(replay("engine_ops", fuzz::engine_ops), met([].into_iter(), steps));
}

/// The kinds of damage to the bytes of files.
const CHANGES: &str = "copy|flip|set|set to an end|zeros";

/// Damaged files: the outcomes of each target's inputs, with right checksums over the damage and without.
const DAMAGED: [(&str, Body, &str); 6] = [
    ("log_replay", fuzz::log_replay, "not sealed: other contents|sealed: corruption|sealed: other contents"),
    (
        "table_block",
        fuzz::table_block,
        "not sealed: reads fail, verify says so|sealed: harmless|sealed: other contents|\
         sealed: reads fail, verify says so|sealed: verify finds something",
    ),
    (
        "table_partition",
        fuzz::table_partition,
        "not sealed: reads fail, verify says so|sealed: harmless|sealed: reads fail, verify says so|\
         sealed: verify finds something",
    ),
    (
        "table_root",
        fuzz::table_root,
        "not sealed: reads fail, verify says so|sealed: harmless|sealed: reads fail, verify says so",
    ),
    (
        "table_footer",
        fuzz::table_footer,
        "not sealed: reads fail, verify says so|sealed: harmless|sealed: reads fail, verify says so",
    ),
    ("manifest", fuzz::manifest, "not sealed: corruption|sealed: corruption|sealed: harmless|sealed: unsupported"),
];

/// Catches a decoder that panics, a wrong value that is read without an error, and a corpus that does not get past the checksums.
#[test]
fn damage_corpora_replay_and_meet_every_outcome() {
    for (target, body, outcomes) in DAMAGED {
        assert_eq!(replay(target, body), met(CHANGES.split('|').map(str::to_owned), outcomes), "{target}");
    }
}

/// Catches a decoder that panics or does not end, a dump that shows data that was never written, and a corpus that does not reach each of the
/// decoders.
#[test]
fn dump_corpus_replays_and_meets_every_outcome() {
    let outcomes = "Block, not sealed: corruption|Block, sealed: corruption|Block, sealed: told|Block, sealed: unsupported|\
         Partition, not sealed: corruption|Partition, sealed: corruption|Partition, sealed: told|\
         Partition, sealed: unsupported|Footer, not sealed: corruption|Footer, sealed: corruption|\
         Footer, sealed: unsupported version|Root, not sealed: corruption|Root, sealed: corruption|\
         Root, sealed: unsupported|Log, not sealed: told|Log, sealed: corruption|Log, sealed: told|\
         Manifest, not sealed: corruption|Manifest, not sealed: told|Manifest, sealed: corruption|\
         Manifest, sealed: told|Properties, not sealed: corruption|Properties, sealed: corruption|\
         Properties, sealed: told|Properties, sealed: unsupported";
    assert_eq!(replay("file_dump", fuzz::file_dump), met(CHANGES.split('|').map(str::to_owned), outcomes));
}

/// Catches a session that panics, sends a reply that no client understands, or depends on how its input arrives; and a corpus that does not reach
/// each command and each refusal.
#[test]
fn server_corpus_replays_and_meets_every_command_and_refusal() {
    let refusals = "-ERR|-EXECABORT|-MISCONF|-NOAUTH|-NOPROTO|-WRONGPASS|malformed";
    let commands = fuzz::COMMANDS.iter().map(|command| (*command).to_owned());
    assert_eq!(replay("server_requests", fuzz::server_requests), met(commands, refusals));
}

/// Catches a target that no test replays.
#[test]
fn every_target_has_a_test() {
    let tested = ["skiplist_ops", "memtable_ops", "engine_ops"].into_iter();
    let tested = tested.chain(DAMAGED.map(|(target, ..)| target)).chain(["file_dump", "server_requests"]);
    assert!(TARGETS.iter().map(|(target, _)| *target).eq(tested));
}
