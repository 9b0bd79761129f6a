//! I1, I3, I9: the list after a race of writers for one place, and the reads during the race.

use crate::check::Program;
use crate::models::table::{MEETINGS, holding_each, keys, put, settled, store_and_look};
use crate::{InsertError, Lookup, Memtable};

/// Two threads store neighbouring keys, then each searches for the other's key. The thread whose CAS came second finds that key.
pub(super) fn adjacent() -> Program<Memtable> {
    Program::new(|| holding_each([b"a", b"z"]))
        .threads(2, |memtable, number| store_and_look(memtable, [b"b", b"c"], number))
        .at_rest(|memtable| assert_eq!(settled(memtable), "abcz"))
        .expects(MEETINGS)
}

/// Two threads store different values under one key and sequence number: one thread succeeds, and the other is refused.
pub(super) fn same_key() -> Program<Memtable> {
    Program::new(|| holding_each([b"a", b"z"]))
        .threads(2, |memtable, number| {
            let stored = memtable.put(b"k", 1, &[number as u8]);
            let Lookup::Value(found) = memtable.get(b"k", 1) else { panic!("the key is not there after a put") };
            match stored {
                Ok(_) => assert_eq!(found, [number as u8]),
                Err(refusal) => assert_eq!((refusal, found), (InsertError::DuplicateKey, &[1 - number as u8][..])),
            }
            if stored.is_ok() { "wins" } else { "loses" }
        })
        .at_rest(|memtable| assert_eq!(settled(memtable), "akz"))
        .expects(&["loses | wins", "wins | loses"])
}

/// Two threads store neighbouring keys; a third scans twice.
pub(super) fn scans() -> Program<Memtable> {
    Program::new(|| holding_each([b"a", b"z"]))
        .threads(2, |memtable, number| put(memtable, [b"b", b"c"][number], b"v"))
        .thread(|memtable| format!("{} {}", keys(memtable), keys(memtable)))
        .at_rest(|memtable| assert_eq!(settled(memtable), "abcz"))
        // Both scans are sorted, and the second has all keys of the first.
        .expects(&["abcz abcz", "abz abcz", "abz abz", "acz abcz", "acz acz", "az abcz", "az abz", "az acz", "az az"])
}

/// Two keys.
type Keys = [&'static [u8]; 2];

/// The existing keys, and the keys that two threads store. The partial keys of the changed links encode that the successor shares no byte, one
/// byte, two bytes, or the whole key; then they continue with zeros.
pub(super) const SHARE_NOTHING: [Keys; 2] = [[b"aa", b"c"], [b"ab", b"b"]];
pub(super) const SHARE_MUCH: [Keys; 2] = [[b"abca", b"abcz"], [b"abcc", b"abcccccc"]];
pub(super) const ZEROS: [Keys; 2] = [[b"a", b"a\0\0\0b"], [b"a\0", b"a\0\0"]];
pub(super) const PREFIXES: [Keys; 2] = [[b"", b"ab\xff"], [b"a", b"ab"]];

/// Two threads store a pair of keys between two others. All of them share some bytes at the beginning.
pub(super) fn partial_keys([before, stored]: [Keys; 2]) -> Program<Memtable> {
    Program::new(move || holding_each(before))
        .threads(2, move |memtable, number| put(memtable, stored[number], b"v"))
        .at_rest(move |memtable| {
            memtable.validate();
            let mut keys = [before, stored].concat();
            keys.sort_unstable();
            assert!(memtable.iter(1).map(|version| version.key).eq(keys.iter().copied()));
            assert!(keys.iter().all(|key| memtable.get(key, 1) != Lookup::Absent));
        })
}
