//! The `{:?}` text of each type, as people see it in a log or in a failed assertion.

use std::sync::Arc;

use fastskip::{ConcurrentSkipList, Memtable, Op};

/// Catches a `{:?}` text that lacks the type's name or state, or that grows with its contents.
#[test]
fn debug_output_names_the_type_and_what_it_is_at() {
    let list = ConcurrentSkipList::with_shards(1);
    list.insert(b"key", b"value");
    let mut cursor = list.cursor_at(b"key").unwrap();
    assert_eq!(format!("{:?}", list.iter()), "TableIter { .. }");
    assert!(cursor.next_entry().is_some());
    assert!(format!("{cursor:?}").starts_with("TableCursor { entry: Some(Entry"));
    assert!(format!("{:?}", list.snapshot()).starts_with("Snapshot { until: "));
    assert!(format!("{list:?}").starts_with("ConcurrentSkipList { len: 1, memory_usage: "));
    assert!(format!("{:?}", ConcurrentSkipList::builder().shards(3)).contains("shards: 3"));
    let list = Arc::new(list);
    assert_eq!(format!("{:?}", list.owned_range(..)), "TableIter { .. }");
    assert!(format!("{:?}", list.owned_cursor()).starts_with("TableCursor { entry: Some(Entry"));
    assert!(format!("{:?}", list.owned_snapshot()).starts_with("OwnedSnapshot { until: "));
    assert!(format!("{:?}", list.get_owned(b"key")).starts_with("Some(OwnedItem(Entry { key: "));
    let list = Arc::into_inner(list).unwrap();
    assert_eq!(format!("{:?}", list.seal().unwrap().0), "FrozenList { len: 1, .. }");

    let memtable = Memtable::new();
    memtable.put(b"key", 7, b"value").unwrap();
    let ops = [Op::Put { key: b"a", value: b"b" }];
    assert_eq!(format!("{:?}", memtable.reserve(&ops).unwrap()), "Reservation { ops: 1, .. }");
    assert!(format!("{memtable:?}").starts_with("Memtable { len: 1, memory_usage: "));
    assert_eq!(format!("{:?}", memtable.iter(9)), "TableIter { .. }");
    assert_eq!(format!("{:?}", Memtable::new().cursor()), "TableCursor { entry: None, .. }");
    assert!(format!("{:?}", memtable.cursor()).starts_with("TableCursor { entry: Some(Version"));
    assert!(format!("{:?}", memtable.owned_cursor()).starts_with("TableCursor { entry: Some(Version"));
    assert_eq!(format!("{:?}", memtable.owned_all_versions()), "TableIter { .. }");
    let version = memtable.get_owned(b"key", 9).unwrap();
    assert!(format!("{version:?}").starts_with("OwnedItem(Version { key: "));
    assert_eq!(format!("{:?}", version.into_value()), format!("{:?}", b"value"));
    assert_eq!(format!("{:?}", memtable.freeze()), "FrozenMemtable { len: 1, .. }");
}
