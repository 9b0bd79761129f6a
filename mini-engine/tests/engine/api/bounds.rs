//! The forms in which callers may write a range, a prefix and a batch, and the memory and files that an iterator holds.

use crate::support::*;

/// The keys `a` to `e`.
fn five() -> (TempDir, Db) {
    let (dir, db) = fresh();
    ["a", "b", "c", "d", "e"].iter().for_each(|key| db.insert(key, "").unwrap());
    (dir, db)
}

fn keys(iter: Iter) -> String {
    iter.map(|entry| String::from_utf8(entry.unwrap().0.to_vec()).unwrap()).collect()
}

#[test]
fn a_range_is_written_as_in_the_standard_library() {
    // Catches a kind of range or key that does not compile without a type annotation, or whose end is interpreted wrongly.
    let (_dir, db) = five();
    let (from, to) = (String::from("b"), String::from("d"));
    assert_eq!(keys(db.range(&from..&to)), "bc");
    assert_eq!(keys(db.range(&from..=&to)), "bcd");
    assert_eq!(keys(db.range(from.clone()..)), "bcde");
    assert_eq!(keys(db.range(..to.clone())), "abc");
    assert_eq!(keys(db.range(..=to.into_bytes())), "abcd");
    assert_eq!(keys(db.range(..)), "abcde");
    assert_eq!(keys(db.range([b'b']..[b'd'])), "bc");
    assert_eq!(keys(db.range(from.as_bytes()..)), "bcde");
    assert_eq!(keys(db.range((Bound::Excluded("b"), Bound::Unbounded))), "cde");
    assert_eq!(keys(db.range("d".."b")), "");
    let first = db.first().unwrap().unwrap().0;
    assert_eq!(keys(db.snapshot().range(&first..=&first)), "a");
    db.compact_range("a"..="c").unwrap();
    db.compact_range(..).unwrap();
    assert_eq!(keys(db.iter()), "abcde");
}

#[test]
fn a_prefix_is_anything_that_lends_bytes() {
    // Catches a common type of key that callers would have to convert.
    let (_dir, db) = five();
    let owned = String::from("c");
    let found = [db.prefix("c"), db.prefix(&owned), db.prefix(b"c"), db.prefix([b'c']), db.prefix(vec![b'c'])];
    assert!(found.into_iter().chain([db.prefix(owned)]).all(|iter| keys(iter) == "c"));
}

#[test]
fn a_batch_is_filled_and_written_again_and_again() {
    // Catches a batch that keeps operations after `clear`, or that a write consumes.
    let (_dir, db) = fresh();
    let mut batch = WriteBatch::new();
    for n in 0..3u8 {
        batch.insert([n], "").unwrap();
        assert_eq!(db.write(&batch, Durability::Buffered).unwrap(), u64::from(n) + 1);
        batch.clear();
    }
    assert_eq!(db.iter().count(), 3);
}

#[test]
fn an_iterator_at_its_end_holds_nothing() {
    // Catches files and memtables that an iterator still holds after its end, at either side, or after an error.
    let (_dir, db) = five();
    let is_held = || db.metrics().oldest_view_age.is_some();
    let (mut forwards, mut backwards) = (db.iter(), db.range("b".."d").rev());
    assert_eq!((forwards.by_ref().count(), is_held()), (5, true));
    assert_eq!((backwards.by_ref().count(), is_held()), (2, false));
    assert!(forwards.next().is_none() && forwards.next_back().is_none() && backwards.next().is_none());
    forwards.seek("a");
    assert!(forwards.next().is_none() && !is_held());
    let mut met = db.iter();
    assert!(met.next().is_some() && met.next_back().is_some() && is_held());
    assert_eq!(met.by_ref().count(), 3);
    assert!(!is_held());
}
