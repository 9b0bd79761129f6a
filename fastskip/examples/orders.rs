//! Orders of your own: descending, latest first, rows of columns, text in any case. `cargo run -p fastskip --example orders`

use std::cmp::Ordering;

use fastskip::{ConcurrentSkipList, InsertError, Memtable, Order};

/// Keys descend: the sort key inverts the first bytes. Behind the end of a key it is 255, because a shorter key now comes later.
pub struct Reversed;

impl Order for Reversed {
    type SortKey<'k> = [u8; 24];

    fn sort_key(key: &[u8]) -> [u8; 24] {
        std::array::from_fn(|at| !key.get(at).copied().unwrap_or(0))
    }

    fn break_tie(a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

/// A name and a timestamp of `LEN` bytes, as in TiKV and CockroachDB: names ascend, and of one name the latest comes first.
pub struct Latest<const LEN: usize = 8>;

impl<const LEN: usize> Order for Latest<LEN> {
    type SortKey<'k> = &'k [u8];

    fn sort_key(key: &[u8]) -> &[u8] {
        &key[..key.len().saturating_sub(LEN)]
    }

    fn break_tie(a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

/// A row `(i32, text)`, as its columns lie in memory: the number little-endian. The sort key is an encoding of the whole row, so there are no ties.
pub struct Columns;

impl Order for Columns {
    type SortKey<'k> = Vec<u8>;

    fn sort_key(row: &[u8]) -> Vec<u8> {
        let (number, text) = row.split_at(row.len().min(4));
        let number = number.iter().rfold(0, |number, byte| number << 8 | u32::from(*byte));
        [&(number ^ 1 << 31).to_be_bytes(), text].concat()
    }
}

/// ASCII text in any case: `B` and `b` are one key.
pub struct Folded;

impl Order for Folded {
    type SortKey<'k> = Vec<u8>;

    fn sort_key(text: &[u8]) -> Vec<u8> {
        text.to_ascii_lowercase()
    }
}

fn main() -> Result<(), InsertError> {
    let list = ConcurrentSkipList::builder().order::<Reversed>().build();
    ["a", "ab", "b"].iter().for_each(|key| assert!(list.insert(key.as_bytes(), b"")));
    assert!(list.iter().map(|entry| entry.key).eq([&b"b"[..], b"ab", b"a"]));

    let memtable = Memtable::builder().order::<Latest>().build();
    for (name, time) in [("a", 1_u64), ("b", 3), ("a", 2)] {
        memtable.put_parts(&[name.as_bytes(), &time.to_be_bytes()], 1, &[])?;
    }
    assert_eq!(memtable.iter(1).next().unwrap().key, b"a\0\0\0\0\0\0\0\x02");

    let rows = ConcurrentSkipList::builder().order::<Columns>().build();
    [7, -1, 300].map(i32::to_le_bytes).iter().for_each(|row| assert!(rows.insert(row, b"")));
    assert!(rows.iter().map(|row| row.key[0]).eq([255, 7, 44]));

    let names = ConcurrentSkipList::builder().order::<Folded>().build();
    assert!(names.insert(b"Beta", b"") && !names.insert(b"BETA", b"") && names.contains_key(b"beta"));
    Ok(())
}
