//! Tables in which the last write of a key and sequence number wins.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fastskip::{Duplicates, InsertError, Kind, Lookup, Memtable, Op, Written};

fn table(shards: usize) -> Memtable {
    Memtable::builder().shards(shards).duplicates(Duplicates::Replace).build()
}

/// Catches a replacement that some read does not see, that changes bytes which another read has borrowed, or that adds an entry.
#[test]
fn every_read_shows_the_last_write() {
    let memtable = table(1);
    memtable.put(b"a", 5, b"").unwrap();
    memtable.put(b"k", 5, b"first").unwrap();
    memtable.put(b"k", 4, b"older").unwrap();
    let Lookup::Value(borrowed) = memtable.get(b"k", 5) else { panic!("stored") };
    let (owned, mut cursor) = (memtable.get_owned(b"k", 5).unwrap(), memtable.owned_cursor());
    let mut iterator = memtable.iter(5);
    assert_eq!(iterator.next().map(|version| version.key), Some(&b"a"[..]));

    let written = memtable.delete(b"k", 5).unwrap();
    assert_eq!((written.stored, written.replaced), (1, 1));
    assert_eq!((memtable.get(b"k", 9), memtable.get(b"k", 4)), (Lookup::Tombstone, Lookup::Value(b"older")));
    assert_eq!(iterator.next().map(|version| version.kind), Some(Kind::Tombstone), "what comes is what is there");
    assert_eq!((memtable.stats().tombstones, memtable.len()), (1, 3));

    let tagged = Op::Tagged { key: b"k", value: &[b"la", b"st"], kind: Kind::Value, tag: 63 };
    assert_eq!(memtable.write(&tagged, 5).map(|written| written.replaced), Ok(1));
    let found = memtable.get_version(b"k", 9).unwrap();
    assert_eq!((found.seqno, found.kind, found.tag, found.value), (5, Kind::Value, 63, &b"last"[..]));
    assert_eq!((borrowed, memtable.get_many(&["k"], 9)), (&b"first"[..], vec![Lookup::Value(b"last")]));
    assert_eq!((owned.value(), memtable.get_owned(b"k", 5).unwrap().value()), (&b"first"[..], &b"last"[..]));
    assert!(cursor.seek(b"k", 5) && cursor.version_owned().is_some_and(|version| version.value() == b"last"));
    let all: Vec<_> = memtable.all_versions().map(|version| (version.key, version.seqno, version.value)).collect();
    assert_eq!(all, [(&b"a"[..], 5, &b""[..]), (b"k", 5, b"last"), (b"k", 4, b"older")]);
    assert!(memtable.all_versions().rev().map(|version| version.value).eq([&b"older"[..], b"last", b""]));
    let mut cursor = memtable.cursor();
    assert!(cursor.seek(b"k", 5) && cursor.version() == Some(found));
    let stats = memtable.stats();
    assert_eq!((stats.tombstones, stats.entries, stats.avg_value_size * 3.0), (0, 3, 9.0));
    memtable.validate();
}

/// Catches two writers that both store a key which only one may store, and room for refused entries that does not come back.
#[test]
fn of_racing_writes_of_an_absent_key_exactly_one_stores() {
    const KEYS: usize = 20_000;
    const RACERS: u8 = 4;
    // A racer whose key turns out to be there holds room for it until then.
    let spare = usize::from(RACERS) - 1;
    let memtable = Memtable::builder().shards(4).max_entries(KEYS + spare).duplicates(Duplicates::Replace).build();
    let write = |key: u32, racer| memtable.write_if_absent(&Op::Put { key: &key.to_be_bytes(), value: &[racer] }, 1);
    let stored = AtomicUsize::new(0);
    thread::scope(|scope| {
        for racer in 0..RACERS {
            let (write, stored) = (&write, &stored);
            scope.spawn(move || {
                for key in (0..KEYS as u32).map(|number| number.wrapping_mul(0x9e37_79b1)) {
                    match write(key, racer) {
                        Ok(_) => _ = stored.fetch_add(1, Ordering::Relaxed),
                        Err(refusal) => assert_eq!(refusal, InsertError::DuplicateKey),
                    }
                }
            });
        }
    });
    assert_eq!((stored.into_inner(), memtable.len()), (KEYS, KEYS));
    for last in 0..spare {
        memtable.put(&[last as u8], 1, b"").unwrap();
    }
    assert_eq!(memtable.write_if_absent(&Op::Delete { key: b"more" }, 1), Err(InsertError::Full));
    memtable.validate();
}

/// Catches a batch that every table refuses as `Full`, so that a caller who retries with fresh tables never ends.
#[test]
fn a_batch_of_replacements_that_fits_no_table_is_too_large_at_every_door() {
    let table = Memtable::builder().duplicates(Duplicates::Replace).max_memory_bytes(20_000).max_entries(1000).build();
    let ops = [Op::Put { key: b"k", value: &[0; 8] }; 400];
    assert!(table.memory_for(&ops).unwrap() > 20_000);
    assert_eq!(table.reserve(&ops).err(), Some(InsertError::TooLarge));
    assert_eq!(table.apply_at(&ops, 1), Err(InsertError::TooLarge));
    assert_eq!(table.apply(&ops, 1), Err(InsertError::TooLarge));
    assert_eq!((table.len(), table.apply_at(&ops[..100], 1).map(|written| written.stored)), (0, Ok(100)));
}

/// Catches an earlier item that stays in place when an engine writes the items of a batch one by one under one sequence number.
#[test]
fn items_of_one_number_overwrite_each_other() {
    for way in 0..3 {
        let memtable = table(1);
        let items: Vec<_> = (0..100_u8).map(|item| ([item % 7], [item])).collect();
        let ops: Vec<_> = items.iter().map(|(key, value)| Op::Put { key, value }).collect();
        let (stored, replaced) = match way {
            0 => {
                let written = ops.iter().map(|op| memtable.write(op, 3).unwrap());
                written.fold((0, 0), |sum, written| (sum.0 + written.stored, sum.1 + written.replaced))
            }
            1 => memtable.apply_at(&ops, 3).map(|written| (written.stored, written.replaced)).unwrap(),
            // Applied twice: the second batch replaces all entries of the first.
            _ => {
                memtable.apply_at(&ops[..50], 3).unwrap();
                let written = memtable.reserve(&ops).unwrap().apply_at(3);
                (written.stored, written.replaced - 7)
            }
        };
        assert_eq!((stored, replaced, memtable.len()), (100, 93, 7), "way {way}");
        for key in 0..7_u8 {
            let last = (0..100).rev().find(|item| item % 7 == key).unwrap();
            assert_eq!(memtable.get(&[key], 3), Lookup::Value(&[last]), "way {way}");
        }
        memtable.validate();
    }
}

/// Catches memory of replaced values that no limit counts, a limit on entries that replacements use up, and a table that no longer replaces
/// after a reset.
#[test]
fn replacements_count_for_memory_and_not_for_entries() {
    let mut memtable =
        Memtable::builder().shards(1).max_memory_bytes(64 << 10).max_entries(1).duplicates(Duplicates::Replace).build();
    for _ in 0..2 {
        let mut bytes = 0;
        let refused = (0..1000_u32).find_map(|round| match memtable.put(b"k", 1, &round.to_be_bytes().repeat(25)) {
            Ok(written) => {
                bytes += written.bytes;
                assert_eq!(written.replaced, usize::from(round > 0));
                None
            }
            Err(refusal) => Some((round, refusal)),
        });
        let Some((round, InsertError::Full)) = refused else { panic!("{refused:?}") };
        assert!((64 << 10) - 200 <= bytes && memtable.memory_usage() >= bytes, "{bytes} bytes, {round} rounds");
        assert_eq!(memtable.get(b"k", 1), Lookup::Value(&(round - 1).to_be_bytes().repeat(25)));
        let stats = memtable.stats();
        assert_eq!((stats.len, stats.avg_value_size), (1, 100.0));
        assert!(stats.memory_wasted > bytes * 3 / 4, "{stats:?}");
        memtable.validate();
        memtable = memtable.try_reset().unwrap();
    }
}

/// Catches replacements that take room for entries: from a table without room for more, or for ever from a reservation.
#[test]
fn replacements_are_no_entries() {
    let memtable = Memtable::builder().shards(1).max_entries(3).duplicates(Duplicates::Replace).build();
    let ops: Vec<_> = [b"a", b"b", b"a"].iter().map(|key| Op::Put { key: *key, value: b"v" }).collect();
    let written = memtable.apply_at(&ops, 1).unwrap();
    assert_eq!((written.stored, written.replaced), (3, 1));
    assert_eq!(memtable.put(b"c", 1, b"").map(|written| written.replaced), Ok(0), "the batch gave one entry back");
    assert_eq!(memtable.put(b"c", 1, b"again").map(|written| written.replaced), Ok(1));
    assert_eq!(memtable.put(b"d", 1, b""), Err(InsertError::Full));
    assert_eq!((memtable.len(), memtable.stats().value_bytes), (3, 7));
    memtable.validate();
}

/// Catches a write method that counts a replacement as a new entry: then a table at its limit on entries refuses the replacement.
#[test]
fn a_replacement_is_no_new_entry_at_any_door() {
    type Door = fn(&Memtable) -> Result<Written, InsertError>;
    const A: Op<'_> = Op::Put { key: b"a", value: b"v" };
    const B: Op<'_> = Op::Delete { key: b"b" };
    const C: Op<'_> = Op::Put { key: b"c", value: b"new" };
    let doors: [(Door, usize); 8] = [
        (|table| table.put(b"a", 1, b"v"), 1),
        (|table| table.put_parts(&[b"", b"a"], 1, &[b"v", b"v"]), 1),
        (|table| table.delete(b"a", 1), 1),
        (|table| table.write(&B, 2), 1),
        (|table| table.apply_at(&[A], 1), 1),
        (|table| table.apply_at(&[A, A, B, A], u64::MAX), 4),
        (|table| table.apply(&[A, B, A], 1), 3),
        (|table| table.apply(&[B, A, A, B], u64::MAX - 1), 4),
    ];
    let places = [(b"a", 1), (b"b", 2), (b"a", 3), (b"b", u64::MAX - 1), (b"a", u64::MAX), (b"b", u64::MAX)];
    for max_entries in [6, 7] {
        let memtable = Memtable::builder().shards(2).max_entries(max_entries).duplicates(Duplicates::Replace).build();
        for (key, seqno) in places {
            assert_eq!(memtable.put(key, seqno, b"").map(|written| written.replaced), Ok(0));
        }
        for (number, (door, writes)) in doors.into_iter().enumerate() {
            let written = door(&memtable).map(|written| (written.stored, written.replaced));
            assert_eq!((written, memtable.len()), (Ok((writes, writes)), 6), "door {number}, at most {max_entries}");
        }
        // A new entry needs room, and two new entries need more.
        let one_new = memtable.apply(&[A, C, A], 1).map(|written| (written.stored, written.replaced));
        assert_eq!(one_new, if max_entries == 6 { Err(InsertError::Full) } else { Ok((3, 2)) });
        assert_eq!(memtable.apply_at(&[A, C, B, C], 4), Err(InsertError::Full));
        assert_eq!((memtable.len(), memtable.put(b"d", 1, b"")), (max_entries, Err(InsertError::Full)));
        memtable.validate();
    }
    // More writes of one key and sequence number than the limit allows entries.
    let memtable = Memtable::builder().shards(1).max_entries(1).duplicates(Duplicates::Replace).build();
    assert_eq!(memtable.apply_at(&[A, A, A], 1).map(|written| (written.stored, written.replaced)), Ok((3, 2)));
}

/// A value of a writer: the writer's number and its round, repeated three times.
fn value(writer: u64, round: u64) -> Vec<u8> {
    [writer.to_be_bytes(), round.to_be_bytes()].concat().repeat(1 + (round % 3) as usize)
}

/// The writer and round of a value, which must not be torn.
fn parsed(bytes: &[u8]) -> (usize, u64) {
    let number = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap());
    let (writer, round) = (number(0), number(8));
    assert_eq!(bytes, value(writer, round), "a value that nobody wrote");
    (writer as usize, round)
}

/// Marks a writer as done when dropped, also by a panic, so that the reader ends.
struct Done<'a>(&'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Catches torn values, finished writes that a later read does not see, and replacements that different reads order differently: a read
/// must not see an older value of a writer after a newer one.
#[test]
fn racing_writers_of_one_number_never_go_back() {
    const KEYS: u8 = 4;
    const WRITERS: usize = 3;
    let memtable = table(2);
    let writing = AtomicUsize::new(WRITERS);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (memtable, writing) = (&memtable, &writing);
            scope.spawn(move || {
                let _done = Done(writing);
                for round in 1..=4000 {
                    let key = [round as u8 % KEYS];
                    memtable.put(&key, 7, &value(writer as u64, round)).unwrap();
                    let Lookup::Value(found) = memtable.get(&key, 7) else { panic!("stored") };
                    let (by, seen) = parsed(found);
                    assert!(by != writer || seen == round, "round {seen} after {round}");
                }
            });
        }
        scope.spawn(|| {
            let mut newest = [[0; WRITERS]; KEYS as usize];
            while writing.load(Ordering::Relaxed) > 0 {
                let mut look = |key: usize, bytes: &[u8]| {
                    let (by, round) = parsed(bytes);
                    assert!(round >= newest[key][by], "key {key} went back");
                    newest[key][by] = round;
                };
                memtable.iter(9).for_each(|version| look(version.key[0].into(), version.value));
                for key in 0..KEYS {
                    if let Lookup::Value(bytes) = memtable.get(&[key], 7) {
                        look(key.into(), bytes);
                    }
                }
            }
        });
    });
    assert_eq!((memtable.len(), memtable.freeze().iter(7).count()), (KEYS.into(), KEYS.into()));
    memtable.validate();
}
