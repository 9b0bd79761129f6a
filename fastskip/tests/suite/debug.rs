//! The `{:?}` text of each type, as people see it in a log or in a failed assertion.

use fastskip::{ConcurrentSkipList, Memtable, Op};

/// Catches a type whose text says nothing of it, or grows with its contents.
#[test]
fn debug_output_names_the_type_and_what_it_is_at() {
    let list = ConcurrentSkipList::with_shards(1);
    list.insert(b"key", b"value");
    let mut cursor = list.cursor_at(b"key").unwrap();
    assert_eq!(format!("{:?}", list.iter()), "Iter { .. }");
    assert!(cursor.next_entry().is_some());
    assert!(format!("{cursor:?}").starts_with("Cursor { entry: Some(Entry"));
    assert!(format!("{:?}", list.snapshot()).starts_with("Snapshot { until: "));
    assert!(format!("{list:?}").starts_with("ConcurrentSkipList { len: 1, memory_usage: "));
    assert!(format!("{:?}", ConcurrentSkipList::builder().shards(3)).contains("shards: 3"));
    assert_eq!(format!("{:?}", list.seal().unwrap().0), "FrozenMemtable { len: 1, .. }");

    let memtable = Memtable::new();
    memtable.put(b"key", 7, b"value").unwrap();
    let ops = [Op::Put { key: b"a", value: b"b" }];
    assert_eq!(format!("{:?}", memtable.reserve(&ops).unwrap()), "Reservation { ops: 1, .. }");
    assert!(format!("{memtable:?}").starts_with("Memtable { len: 1, memory_usage: "));
    assert_eq!(format!("{:?}", memtable.iter(9)), "Versions { .. }");
    assert_eq!(format!("{:?}", Memtable::new().cursor()), "MemtableCursor { version: None, .. }");
    assert!(format!("{:?}", memtable.cursor()).starts_with("MemtableCursor { version: Some(Version"));
    assert!(format!("{:?}", memtable.owned_cursor()).starts_with("OwnedCursor { version: Some(Version"));
    assert_eq!(format!("{:?}", memtable.freeze()), "FrozenVersions { len: 1, .. }");
}
