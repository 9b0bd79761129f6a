//! Readers that see the state of one moment, despite later writes: snapshots of a list, sequence numbers of a memtable, and both without a
//! lifetime. `cargo run -p fastskip --example snapshots`

use std::sync::Arc;
use std::thread;

use fastskip::{ConcurrentSkipList, InsertError, Kind, Memtable};

/// A list has a clock of its own. A snapshot is a time of this clock, and costs nothing to take or to keep.
fn of_a_list() {
    let list = Arc::new(ConcurrentSkipList::new());
    list.insert(b"a", b"1");
    list.insert(b"b", b"2");
    let before = list.owned_snapshot();
    list.insert(b"c", b"3");
    list.delete(b"a");

    // An owned snapshot may move to another thread and outlive every borrow of the list.
    let reader = thread::spawn(move || {
        let keys: Vec<_> = before.range(..).map(|entry| (entry.key().to_vec(), entry.is_tombstone())).collect();
        assert_eq!(keys, [(b"a".to_vec(), false), (b"b".to_vec(), false)]);
    });
    assert_eq!((list.get_live(b"a"), list.get_live(b"c")), (None, Some(&b"3"[..])));
    reader.join().expect("the reader");
}

/// In a memtable each write has a sequence number from the engine, and each read passes the sequence number that it reads at.
fn of_a_memtable() -> Result<(), InsertError> {
    let table = Memtable::new();
    table.put(b"k", 1, b"one")?;
    table.put(b"k", 2, b"two")?;
    table.delete(b"k", 3)?;
    for seqno in 0..=3 {
        let version = table.get_version(b"k", seqno);
        let shown =
            version.map(|v| if v.kind == Kind::Value { v.value.escape_ascii().to_string() } else { "removed".into() });
        println!("at {seqno}: {}", shown.unwrap_or_else(|| "absent".into()));
    }

    // A snapshot is a number that the engine keeps. Every version stays until the table is dropped.
    let at_two = table.range(.., 2).map(|version| version.value).collect::<Vec<_>>();
    assert_eq!(at_two, [b"two"]);

    // The value owns the table: it may outlive the handle.
    let owned = table.get_owned(b"k", 1);
    drop(table);
    assert_eq!(owned.as_ref().map(|version| version.value()), Some(&b"one"[..]));
    Ok(())
}

fn main() -> Result<(), InsertError> {
    of_a_list();
    of_a_memtable()
}
