//! A sorted map of bytes: writes, reads, ranges in both directions, and refused writes. `cargo run -p fastskip --example basic`

use fastskip::{ConcurrentSkipList, InsertError};

fn main() -> Result<(), InsertError> {
    // A limit is optional. A list that has reached its limit refuses writes, and stays readable.
    let list = ConcurrentSkipList::builder().max_memory_bytes(64 << 20).build();
    for (fruit, colour) in [("plum", "blue"), ("apple", "red"), ("pear", "green"), ("peach", "pink")] {
        list.try_insert(fruit.as_bytes(), colour.as_bytes())?;
    }

    // Values borrow from the list: they are not copied, and their memory is freed only with the list.
    let colour: Option<&[u8]> = list.get_live(b"apple");
    assert_eq!(colour, Some(&b"red"[..]));

    // The first write of a key wins. `Memtable` is the table whose keys can be overwritten.
    assert_eq!(list.try_insert(b"apple", b"yellow"), Err(InsertError::DuplicateKey));
    assert_eq!(list.get_or_insert(b"apple", b"yellow"), (&b"red"[..], false));
    assert_eq!(list.get_or_insert(b"quince", b"yellow"), (&b"yellow"[..], true));

    // One lookup of many keys is faster than many lookups of one key.
    assert_eq!(list.get_many(&["pear", "kiwi"]), [Some(&b"green"[..]), None]);

    // Ranges and prefixes, forward and backward.
    for entry in list.range("b".."q") {
        println!("{}: {}", entry.key.escape_ascii(), entry.value.escape_ascii());
    }
    let backward: Vec<&[u8]> = list.prefix(b"p").rev().map(|entry| entry.key).collect();
    assert_eq!(backward, [&b"plum"[..], b"pear", b"peach"]);

    // A cursor steps in both directions, and can seek to another place.
    let mut cursor = list.cursor();
    assert!(cursor.seek(b"peb") && cursor.prev().is_some());
    assert_eq!(cursor.entry().map(|entry| entry.key), Some(&b"pear"[..]));

    // A deleted key is a tombstone: iterators show it as such, `get_live` does not.
    assert!(list.delete(b"plum"));
    assert_eq!((list.get_live(b"plum"), list.get(b"plum")), (None, Some((&b"blue"[..], true))));
    println!("{} live keys in {} bytes", list.len(), list.memory_usage());

    // After this, every write is refused, and everything can still be read.
    list.freeze();
    assert_eq!(list.try_insert(b"lemon", b"yellow"), Err(InsertError::Frozen));
    Ok(())
}
